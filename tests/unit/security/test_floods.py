"""No party can fill the logs: refusals leave few audit records, and clients that break off no traceback."""

import asyncio
import logging
import socket
import struct
from typing import Any

import pytest
import structlog

from hascheduler.api.edge import Edge
from hascheduler.api.middleware import audit
from hascheduler.api.middleware.audit import SHARE_MAX, AuditWriter
from hascheduler.api.ops import events
from hascheduler.model.values.instants import MonoMs, WallMs
from hascheduler.schema.audit import AuditRecord
from tests.tiers import spread
from tests.unit.api.doubles import NOW, StandingClock, World
from tests.unit.api.tokens import ADMIN_TOKEN, Guarded
from tests.unit.security.crowding import Caller, crowded, until

FLOOD = 300


class MovingClock(StandingClock):
    def mono_ms(self) -> MonoMs:
        return MonoMs(self.now - NOW)


@pytest.fixture
def world() -> World:
    world = World()
    world.clock = MovingClock()
    return world


def records(world: World) -> list[dict[str, Any]]:
    return sorted(world.everything()["audit"], key=lambda record: str(record["_id"]))


def left_out(world: World, reason: str) -> float | None:
    return world.metrics.registry.get_sample_value("hascheduler_audit_records_lost_total", {"reason": reason})


async def test_strangers_are_counted_and_sampled_and_not_stored(app: Edge, world: World) -> None:
    guarded = Guarded(app, world)
    with structlog.testing.capture_logs() as lines:
        async with guarded.showing("hsk_" + "x" * 43) as stranger:
            for _ in range(FLOOD):
                assert (await stranger.delete("/v1/lanes/slow")).status_code == 401
    await world.audit_writer.flush()
    assert records(world) == []
    assert left_out(world, "stranger") == FLOOD
    shown = [line for line in lines if line["event"] == "audit"]
    assert 0 < len(shown) <= 20
    assert {(line["who"], line["status"]) for line in shown} == {("anonymous", 401)}


async def test_what_one_caller_is_refused_again_and_again_is_stored_now_and_then(app: Edge, world: World) -> None:
    guarded = Guarded(app, world)
    async with await guarded.client("viewer", "acme") as viewer, await guarded.client("operator", "acme") as other:
        for _ in range(FLOOD):
            assert (await viewer.delete("/v1/lanes/slow")).status_code == 403
        assert (await other.post("/v1/schedules/none/pause")).status_code == 404
        world.clock.now = WallMs(NOW + 10_000)
        await viewer.delete("/v1/lanes/slow")
    await world.audit_writer.flush()
    stored = records(world)
    assert [record["who"] for record in stored] == ["viewer-1"] * 100 + ["operator-2", "viewer-1"]
    assert stored[-1]["left_out"] == FLOOD - 100 == left_out(world, "refusal")
    async with guarded.showing(ADMIN_TOKEN) as boss:
        [newest] = (await boss.get("/v1/audit?limit=1")).json()["items"]
    assert newest["left_out"] == FLOOD - 100


def record(number: int, who: str, at_ms: int = NOW) -> AuditRecord:
    id = f"{at_ms:013d}.{number:06d}.aa"
    return AuditRecord(
        id=id, at_ms=WallMs(at_ms), who=who, token_id=who, role="operator", tenant="*", address="", method="POST",
        path="/v1/x", status=200, request_id="r",
    )  # fmt: skip


async def test_one_party_does_not_push_out_the_records_of_others(world: World) -> None:
    writer = AuditWriter(world.audit, StandingClock())
    flood = [writer.add(record(number, "mallory")) for number in range(audit.QUEUE_MAX)]
    assert sum(flood) == SHARE_MAX
    assert writer.add(record(99_999, "alice"))
    await writer.flush()
    # What is stored waits no more.
    assert writer.add(record(100_000, "mallory"))
    await writer.flush()
    assert len(records(world)) == SHARE_MAX + 2


_RESET = struct.pack("ii", 1, 0)
_HEAD = "host: a\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n"
_CASES = {
    "says nothing": "",
    "part of a head": "POST /v1/jobs HTTP/1.1\r\nhost:",
    "part of a body": "POST /v1/jobs HTTP/1.1\r\n{head}content-length: 99\r\n\r\n{{",
    "part of a large body": "POST /v1/jobs:batch HTTP/1.1\r\n{head}content-length: 9999999\r\n\r\n{{",
    "part of a chunk": "POST /v1/jobs HTTP/1.1\r\n{head}transfer-encoding: chunked\r\n\r\n9\r\n{{",
    "garbage for a chunk": "POST /v1/jobs HTTP/1.1\r\n{head}transfer-encoding: chunked\r\n\r\nzz\r\n",
    "an upgrade": "GET /v1/jobs HTTP/1.1\r\n{head}connection: upgrade\r\nupgrade: websocket\r\n\r\n",
    "expects 100": "POST /v1/jobs HTTP/1.1\r\n{head}expect: 100-continue\r\ncontent-length: 9\r\n\r\n",
    "a wait": 'POST /v1/jobs?wait=5m HTTP/1.1\r\n{head}content-length: 21\r\n\r\n{{"definition": "log"}}',
    "events": "GET /v1/events HTTP/1.1\r\n{head}\r\n",
    "a hundred requests": "GET /openapi.json HTTP/1.1\r\n{head}\r\n" * 100,
    "a request and garbage": "GET /v1/jobs HTTP/1.1\r\n{head}\r\nG{{T\r\n\r\n",
    "a refused body that goes on": "POST /v1/jobs HTTP/1.1\r\n{head}content-length: 999999999\r\n\r\n{{{{{{",
}


@pytest.mark.parametrize(
    ("case", "resets"),
    spread(
        (
            pytest.param(case, resets, id=f"{case}, {'resets' if resets else 'closes'}")
            for case in _CASES
            for resets in (False, True)
        ),
        check=11,
    ),
)
async def test_a_client_that_disconnects_leaves_no_traceback(
    app: Edge,
    world: World,
    caplog: pytest.LogCaptureFixture,
    case: str,
    resets: bool,  # a case
) -> None:
    unhandled: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))
    with structlog.testing.capture_logs() as lines:
        async with crowded(app, world) as crowd:
            caller = await crowd.caller("submitter")
            sent = _CASES[case].format(head=_HEAD.format(token=caller.token)).encode("latin-1")
            for turns in (0, 1, 2, 3, 5, 8, 20):
                await _breaks_off(caller, sent, turns, resets=resets)
            await crowd.others_get_in()
            await until(lambda: not (world.limits["waits"].in_use or world.limits["large_bodies"].in_use))
    assert unhandled == []
    assert [line for line in lines if line["log_level"] in ("error", "critical")] == []
    assert [record for record in caplog.records if record.exc_info or record.levelno >= logging.ERROR] == []


async def test_half_an_answer_that_can_not_go_on_ends_the_connection_and_leaves_no_traceback(
    app: Edge, world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = events.send_piece
    count = 0

    async def stuck(*args: Any, **options: Any) -> None:
        nonlocal count
        count += 1
        if count > 1:
            raise TimeoutError
        await sound(*args, **options)

    monkeypatch.setattr(events, "send_piece", stuck)
    async with crowded(app, world) as crowd:
        reader = await (await crowd.caller("viewer")).begin("GET", "/v1/events")
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            # The end of the chunks, by which a client knows that it has all.
            await reader.readuntil(b"\r\n0\r\n\r\n")
        monkeypatch.setattr(events, "send_piece", sound)
        await crowd.others_get_in()
    assert [record for record in caplog.records if record.exc_info] == []


async def _breaks_off(caller: Caller, sent: bytes, turns: int, *, resets: bool) -> None:
    """After so many turns of the loop, in one of which the server may be anywhere."""
    _, writer = await caller.connect()
    writer.transport.pause_reading()  # type: ignore[attr-defined]  # it is one that can
    writer.write(sent)
    for _ in range(turns):
        await asyncio.sleep(0)
    if resets:
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()
