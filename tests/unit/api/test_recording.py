"""The leader's inputs and decisions, line by line."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs

from hascheduler.api.edge import Edge
from hascheduler.api.ops import cluster
from hascheduler.dispatch.config import DispatchConfig
from hascheduler.dispatch.decisions import Dispatch
from hascheduler.dispatch.inputs import TransportSeen
from hascheduler.dispatch.recording import RecordedStep, RecordingEnd, RecordingHeading, read_recording
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import check_problem

PATH = "/v1/cluster/recording"
HEADING = RecordingHeading(NOW, "replica-1.aa", 7, DispatchConfig())
STEPS: list[RecordedStep | RecordingEnd] = [
    RecordedStep(NOW, (TransportSeen(True),), (Dispatch("a", 1, "p"),)),
    RecordingEnd("over"),
]


async def test_a_recording_can_be_read_back(client: httpx.AsyncClient, world: World) -> None:
    world.view.heading, world.view.recorded = HEADING, [*STEPS]
    answer = await client.get(PATH, params={"for": "90s"})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/x-ndjson")
    heading, steps = read_recording(answer.text.splitlines())
    assert (heading, list(steps)) == (HEADING, STEPS)
    assert world.view.recorded_for_ms == 90_000


async def test_a_replica_that_does_not_lead_cannot_be_recorded(client: httpx.AsyncClient) -> None:
    check_problem(await client.get(PATH), 409)


@pytest.mark.parametrize("span", ["forever", "-1s", "0", "2h", ""])
async def test_a_span_that_makes_no_sense_is_refused(client: httpx.AsyncClient, world: World, span: str) -> None:
    world.view.heading = HEADING
    check_problem(await client.get(PATH, params={"for": span}), 422)


class Gone(Exception):
    """What a test lets happen."""


def _fails(*_: object) -> Any:
    raise Gone


ENDS: dict[str, tuple[object, str, object] | None] = {
    "it ends by itself": None,
    "the leader's state cannot be copied": ("view", "record", _fails),
    "no answer is made of it": (cluster, "_Closing", _fails),
    "its first line cannot be written": (cluster, "heading_line", _fails),
    "it is cut off before the answer begins": (cluster._Closing, "__call__", "stands still"),
    "it is cut off before the first line": ("lines", "", "stands still"),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("leaves", [False, True])
async def test_a_place_for_a_recording_is_given_back_however_it_ends(
    app: Edge, world: World, monkeypatch: pytest.MonkeyPatch, end: str, leaves: bool
) -> None:
    """``leaves``: nothing can be sent either, as its client is gone."""
    app.services = world.services()
    world.view.heading, world.view.recorded = HEADING, [*STEPS]
    limit, reached = world.limits["recordings"], asyncio.Event()

    async def stands_still(*_: object) -> None:
        reached.set()
        await asyncio.Event().wait()

    async def lines(_: object) -> AsyncIterator[bytes]:
        await stands_still()
        yield b""

    match ENDS[end]:
        case ("lines", _, _):
            monkeypatch.setattr(cluster, "_lines", lines)
        case (where, str() as name, "stands still"):
            monkeypatch.setattr(where, name, stands_still)
        case (where, str() as name, instead):
            monkeypatch.setattr(world.view if where == "view" else where, name, instead)
    received: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    received.put_nowait({"type": "http.request"})

    async def send(_: object) -> None:
        if leaves:
            raise OSError("the client is gone")

    scope = {
        "type": "http", "method": "GET", "scheme": "http", "path": PATH, "raw_path": PATH.encode(), "root_path": "",
        "query_string": b"", "headers": [(b"host", b"api")], "client": ("127.0.0.1", 1), "server": ("api", 1),
        "http_version": "1.1", "asgi": {"version": "3.0", "spec_version": "2.4"},
    }  # fmt: skip
    with capture_logs():
        request = asyncio.create_task(app(scope, received.get, send))
        still = asyncio.create_task(reached.wait())
        await asyncio.wait({request, still}, return_when=asyncio.FIRST_COMPLETED)
        if reached.is_set():
            assert (request.done(), limit.in_use) == (False, 1)
        request.cancel()
        still.cancel()
        await asyncio.gather(request, still, return_exceptions=True)
    assert limit.in_use == 0
    assert reached.is_set() == ("cut off" in end and not (leaves and "first line" in end))
