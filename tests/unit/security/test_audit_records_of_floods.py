"""No party can fill the audit log: unidentified callers leave no record, refusals of one caller few."""

from typing import Any

import pytest
import structlog

from hascheduler.api.edge import Edge
from hascheduler.api.middleware import audit
from hascheduler.api.middleware.audit import SHARE_MAX, TRIM_EVERY, AuditWriter
from hascheduler.model.collection import Collection
from hascheduler.model.values.instants import MonoMs, WallMs
from hascheduler.schema.audit import AuditRecord
from tests.unit.api.doubles import NOW, StandingClock, World
from tests.unit.api.tokens import ADMIN_TOKEN, Guarded

FLOOD = 300


class MovingClock(StandingClock):
    """Its monotonic side goes along."""

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
    return world.metrics.registry.get_sample_value("hascheduler_audit_left_out_total", {"reason": reason})


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


async def test_the_collection_keeps_the_newest(world: World) -> None:
    kept = 50
    writer = AuditWriter(world.audit, StandingClock(), kept)
    for number in range(TRIM_EVERY):
        assert writer.add(record(number, f"ci-{number % 2}", NOW + number))
    await writer.flush()
    assert [record["at_ms"] for record in records(world)] == [NOW + TRIM_EVERY - kept + n for n in range(kept)]
    assert not world.database.find(Collection.AUDIT, record(0, "ci-0").id)
