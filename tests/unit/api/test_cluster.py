"""What a replica reports of itself, the cluster, pauses, failovers and recordings, and its answers to failures."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from hascheduler.api.edge import Edge
from hascheduler.api.ops import cluster, processors
from hascheduler.dispatch.config import DispatchConfig
from hascheduler.dispatch.decisions import Dispatch
from hascheduler.dispatch.inputs import TransportSeen
from hascheduler.dispatch.recording import RecordedStep, RecordingEnd, RecordingHeading, read_recording
from hascheduler.model.collection import Collection
from hascheduler.schema.noun import document_of
from hascheduler.schema.pause import DRAIN_FORGOTTEN_AFTER_MS, drain_id
from tests.factories import make_pause
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import NOW_TEXT, Client, check_problem, get, post, scope_of


async def test_the_cluster_is_shown(client: Client) -> None:
    shown = (await client.get("/v1/cluster")).json()
    assert shown["leader"] == {
        "holder": "replica-1.aa",
        "term": 7,
        "endpoint": "127.0.0.1:9",
        "since": "2030-01-01T00:00:00.000Z",
    }
    assert (shown["replica_id"], shown["leading"], shown["ready"]) == ("replica-1.aa", True, True)
    assert (shown["journal_seq"], shown["stream_lag_ms"]) == (41, 3)
    assert [replica["name"] for replica in shown["replicas"]] == ["replica-1"]
    assert shown["counts"] == {"pending": 1, "schedules": 2}
    assert shown["quarantine"] == [{"collection": "jobs", "id": "bad", "reason": "state: missing"}]
    assert shown["findings"] == {"at": "2030-01-01T00:00:00.000Z", "counts": {"overdue": 2}}
    assert shown["mirrors_differ"] == ["replica-2.bb"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/schedules", None), ("GET", "/v1/schedules/tick/preview", None), ("GET", "/v1/jobs", None),
        ("GET", "/v1/schedules/tick/verdicts", None), ("POST", "/v1/schedules/tick/resume", {"catch_up": True}),
    ],
)  # fmt: skip
async def test_a_database_that_is_away_is_503_with_a_time_to_come_again(
    client: Client, world: World, method: str, path: str, body: object
) -> None:
    """`test_every_route` has the other writes."""
    world.go_away()
    answer = await client.request(method, path, json=body)
    check_problem(answer, 503, None)
    assert int(answer.headers["retry-after"]) > 0
    assert ("unknown" in answer.json()["detail"]) == (method != "GET")


async def test_a_defect_reveals_nothing(client: Client, world: World) -> None:
    world.view.broken = True
    with capture_logs() as logs:
        answer = await client.get("/v1/cluster")
    check_problem(answer, 500, None)
    assert "secret" not in answer.text
    assert [line["event"] for line in logs] == ["request_failed"]


DRAIN = "/v1/processors/p-1/drain"


async def test_drains_of_names_that_are_long_gone_are_forgotten(client: Client, world: World) -> None:
    drained_before(world, "long-gone", since_ms=NOW - DRAIN_FORGOTTEN_AFTER_MS - 1)
    drained_before(world, "gone", since_ms=NOW - DRAIN_FORGOTTEN_AFTER_MS)
    await post(client, DRAIN)
    assert {one["_id"] for one in world.database.documents(Collection.PAUSES)} == {drain_id("gone"), drain_id("p-1")}


async def test_no_more_names_than_the_bound_are_drained(
    client: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processors, "DRAINS_MAX", 2)
    for name in ("a", "b"):
        drained_before(world, name, since_ms=NOW)
    assert "2 names are drained" in check_problem(await client.post(DRAIN), 409)["detail"]
    await post(client, "/v1/processors/a/undrain")
    await post(client, DRAIN)
    await post(client, DRAIN)


def drained_before(world: World, name: str, *, since_ms: int) -> None:
    pause = make_pause(drain_id(name), rev=1, since_ms=since_ms)
    world.database.insert(Collection.PAUSES, document_of(pause))


RECORDING = "/v1/cluster/recording"
HEADING = RecordingHeading(NOW, "replica-1.aa", 7, DispatchConfig())
STEPS: list[RecordedStep | RecordingEnd] = [
    RecordedStep(NOW, (TransportSeen(True),), (Dispatch("a", 1, "p"),)),
    RecordingEnd("over"),
]


async def test_a_recording_can_be_read_back(client: Client, world: World) -> None:
    world.view.heading, world.view.recorded = HEADING, [*STEPS]
    answer = await client.get(RECORDING, params={"for": "90s"})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/x-ndjson")
    heading, steps = read_recording(answer.text.splitlines())
    assert (heading, list(steps)) == (HEADING, STEPS)
    assert world.view.recorded_for_ms == 90_000


class Gone(Exception):
    """What a test lets happen."""


def _fails(*_: object) -> Any:
    raise Gone


ENDS = ["it ends by itself", "the leader's state cannot be copied", "it is cut off before the answer begins"]


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

    if "copied" in end:
        monkeypatch.setattr(world.view, "record", _fails)
    if "cut off" in end:
        monkeypatch.setattr(cluster._Closing, "__call__", stands_still)
    received: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    received.put_nowait({"type": "http.request"})

    async def send(_: object) -> None:
        if leaves:
            raise OSError("the client is gone")

    scope = scope_of("GET", RECORDING, [(b"host", b"api")])
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
    assert reached.is_set() == ("cut off" in end)


PAUSE, RESUME, UNDRAIN = "/v1/cluster/pause", "/v1/cluster/resume", "/v1/processors/p-1/undrain"


BURNS = {"since": NOW_TEXT, "by": "anonymous", "because": "it burns", "schedules_only": False}


async def test_the_cluster_says_since_when_by_whom_and_why_everything_is_paused(client: Client) -> None:
    assert (await get(client, "/v1/cluster"))["paused"] is None
    assert (await post(client, PAUSE, {"because": "it burns"})) == {"paused": BURNS}
    assert (await get(client, "/v1/cluster"))["paused"] == BURNS
    assert (await post(client, RESUME)) == {"paused": None}
    assert (await get(client, "/v1/cluster"))["paused"] is None
    assert (await post(client, RESUME)) == {"paused": None}


async def test_a_drained_processor_is_shown_with_who_drained_it(client: Client) -> None:
    drained = {"since": NOW_TEXT, "by": "anonymous", "because": "its node is replaced"}
    assert await post(client, DRAIN, {"because": "its node is replaced"}) == {"name": "p-1", "drained": drained}
    [shown] = (await get(client, "/v1/processors"))["items"]
    assert (shown["draining"], shown["drained"], shown["occupied"]) == (True, drained, 2)
    assert (await post(client, DRAIN))["drained"] == drained, "without a reason it keeps the one it has"
    assert await post(client, UNDRAIN) == {"name": "p-1", "drained": None}
    [shown] = (await get(client, "/v1/processors"))["items"]
    assert (shown["draining"], shown["drained"]) == (False, None)
    assert (await post(client, UNDRAIN))["drained"] is None
