"""A partition on its way: whole moves, movers that are killed or asleep at any exchange, writes that come late."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from hascheduler.errors import StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.documents.hold import encode_hold
from hascheduler.model.hold import Hold
from hascheduler.model.job import JobState
from hascheduler.model.partition import partition_of
from hascheduler.ports.tenants import Key, Version
from hascheduler.shards import moves
from hascheduler.shards.moves import PartitionMover
from tests.doubles import tenants as doubles
from tests.doubles.tenants import MemoryTenantStore
from tests.factories import NOW
from tests.unit.shards.moving_world import FROM, KEY, LATE, PARTITION, TENANT, TO, MoverKilled, MovingWorld


def begun(**fields: Any) -> MovingWorld:
    """A world with some of everything in the source."""
    world = MovingWorld(**fields)
    world.put_schedule(FROM)
    for id in ("a", "b", "kept-1", "kept-2"):
        world.put_job(FROM, id, unique_key=id)
    world.put_job(FROM, "over", state=JobState.FAILED.value, submitted_at_ms=NOW - 1_000_000)
    verdict = {"_id": f"tick:{NOW:013d}", "schedule": "tick", "last_ms": NOW, "decided_at_ms": NOW - 1_000_000}
    world.databases[FROM].insert(Collection.VERDICTS, verdict)
    world.databases[FROM].insert(Collection.BUCKETS, {"_id": TENANT, "level": 3})
    return world


async def exchanges_of_a_move() -> int:
    world = begun()
    await world.moved()
    return world.exchanges


async def test_a_whole_move() -> None:
    world = begun()
    before = {"over", f"tick:{NOW:013d}", TENANT, "tick", "a", "kept-1"}
    await world.moved()
    world.require_all_there()
    assert before <= world.documents(TO).keys()
    assert world.hold(FROM) == Hold(KEY, world.hold(FROM).rev, True, False, world.hold(FROM).rev)  # type: ignore[union-attr]


async def test_a_partition_moves_back_and_forth() -> None:
    world = begun()
    for to, source in ((TO, FROM), (FROM, TO), (0, FROM), (TO, 0)):
        if to != TO or source != FROM:
            world.layout = world.layout.beginning({PARTITION: to})
        await world.moved()
        world.require_all_there(to)


async def test_tenants_with_odd_names_go_along() -> None:
    names = (f'\0${{"$gt": {number}}}.é\U0001f600' for number in range(10_000))
    odd = next(name for name in names if partition_of(name) == PARTITION)
    world = begun()
    world.put_job(FROM, "kept-odd", tenant=odd, payload={"$x.y": [None, {"": 1}]})
    await world.moved()
    world.require_all_there()
    assert world.documents(TO)["kept-odd"]["payload"] == {"$x.y": [None, {"": 1}]}


async def test_a_mover_killed_at_any_exchange_is_followed_by_another() -> None:
    for at in range(1, await exchanges_of_a_move()):
        world = begun()

        async def kill(exchange: int, _name: str, at: int = at) -> None:
            if exchange == at:
                raise MoverKilled

        with suppress(MoverKilled):
            await world.moved(world.mover(kill))
        await world.moved()
        world.require_all_there()


async def test_an_exchange_that_fails_is_repeated() -> None:
    for at in range(1, await exchanges_of_a_move()):
        world = begun()

        async def fail(exchange: int, _name: str, at: int = at) -> None:
            if exchange == at:
                raise StoreUnavailable("no answer")

        mover = world.mover(fail)
        with suppress(StoreUnavailable):
            await world.moved(mover)
        await world.moved(mover)
        world.require_all_there()


async def late_writes(index: int) -> AsyncIterator[MovingWorld]:
    """Worlds in which a request writes a job into that shard at each exchange of a move, after the move."""
    for at in range(1, await exchanges_of_a_move()):
        world = begun()

        async def write(exchange: int, _name: str, at: int = at, world: MovingWorld = world) -> None:
            if exchange == at:
                world.put_job(index, LATE)

        await world.moved(world.mover(write))
        yield world


@pytest.mark.parametrize("index", [FROM, TO])
async def test_a_late_write_at_any_exchange_is_kept(index: int) -> None:
    async for world in late_writes(index):
        world.require_all_there()


async def changed_late(world_of: Any = begun) -> AsyncIterator[MovingWorld]:
    """Worlds in which a request changes a waiting job of the source at each exchange of a move."""
    for at in range(1, await exchanges_of_a_move()):
        world = world_of()

        async def change(exchange: int, _name: str, at: int = at, world: MovingWorld = world) -> None:
            if exchange == at:
                world.change_job(FROM, "kept-1", priority=9)

        await world.moved(world.mover(change))
        yield world


async def test_a_late_change_in_the_source_is_kept() -> None:
    async for world in changed_late():
        world.require_all_there()


async def test_of_a_late_job_and_another_of_its_key_the_late_one_is_cancelled() -> None:
    world = begun()
    await world.moved()
    world.put_job(FROM, LATE, unique_key="kept-1")
    await world.moved()
    there = world.documents(TO)
    assert (there[LATE]["state"], there[LATE]["rev"]) == ("cancelled", 2)
    assert there["kept-1"]["state"] == "pending"


async def test_a_late_job_that_exists_where_the_partition_is_goes() -> None:
    """A leader that had stood still applies a fire again."""
    world = begun()
    await world.moved()
    there = world.documents(TO)
    world.databases[FROM].insert(Collection.JOBS, {**there["kept-1"], "rev": 1})
    await world.moved()
    world.require_all_there()


async def test_a_deleted_schedule_does_not_come_back() -> None:
    for at in range(1, await exchanges_of_a_move()):
        world = begun()
        deleted: list[bool] = []

        async def delete(
            exchange: int, _name: str, at: int = at, world: MovingWorld = world, deleted: list[bool] = deleted
        ) -> None:
            if exchange == at and not world.layout.is_frozen(PARTITION):
                shard = world.databases[world.layout.shard_of[PARTITION]]
                deleted.append(shard.delete(Collection.SCHEDULES, "tick"))

        await world.moved(world.mover(delete))
        assert [index for index in (FROM, TO) if "tick" in world.documents(index)] == ([] if deleted else [TO])


async def test_a_schedule_made_again_under_its_name_replaces_the_old_one() -> None:
    world = begun()
    world.databases[FROM].replace(
        Collection.SCHEDULES,
        {"_id": "tick", "rev": 7, "created_at_ms": NOW - 1, "cursor_ms": 59, "job": {"tenant": TENANT}},
    )
    mover = world.mover()
    while "tick" not in world.documents(TO):
        await mover.step(PARTITION)
    world.databases[FROM].delete(Collection.SCHEDULES, "tick")
    world.put_schedule(FROM)
    world.decided.clear()
    world.ran.clear()
    await world.moved(mover)
    assert world.documents(TO)["tick"]["created_at_ms"] == NOW
    assert world.documents(TO)["tick"]["rev"] == 1


async def test_verdicts_that_an_edit_withdrew_are_withdrawn_there() -> None:
    world = begun()
    mover = world.mover()
    record = f"tick:{NOW:013d}"
    while record not in world.documents(TO):
        await mover.step(PARTITION)
    schedule = world.documents(FROM)["tick"]
    world.databases[FROM].delete(Collection.VERDICTS, record)
    world.databases[FROM].replace(Collection.SCHEDULES, {**schedule, "rev": 2})
    await world.moved(mover)
    assert record not in world.documents(TO)


async def test_a_verdict_of_long_ago_that_a_successor_carries_out_goes_along() -> None:
    world = begun()
    mover = world.mover()
    while "tick" not in world.documents(TO):
        await mover.step(PARTITION)
    record = {"_id": "tick:0000000000000", "schedule": "tick", "last_ms": 0, "decided_at_ms": NOW - 1_000_000}
    world.databases[FROM].insert(Collection.VERDICTS, record)
    await world.moved(mover)
    assert record["_id"] in world.documents(TO)


async def test_a_key_that_an_ended_job_lost_goes_to_its_next_holder() -> None:
    """The look of since the last one does not see that the ended job has lost it."""
    world = begun()
    world.put_job(
        FROM, "kept-old", state=JobState.FAILED.value, idempotency_key="k", submitted_at_ms=NOW - 1_000_000
    )  # fmt: skip
    mover = world.mover()
    while "kept-old" not in world.documents(TO):
        await mover.step(PARTITION)
    old = {name: value for name, value in world.documents(FROM)["kept-old"].items() if name != "idempotency_key"}
    world.databases[FROM].replace(Collection.JOBS, old)
    world.put_job(FROM, "kept-new", idempotency_key="k")
    await world.moved(mover)
    world.require_all_there()
    assert world.documents(TO)["kept-new"]["idempotency_key"] == "k"


# Several movers


async def asleep(world_of: Any = begun) -> AsyncIterator[MovingWorld]:
    """Worlds in which a mover sleeps before each exchange of a move, until another one is done."""
    for at in range(1, await exchanges_of_a_move()):
        world = world_of()
        woken, slept = asyncio.Event(), asyncio.Event()

        async def sleep(
            exchange: int, _name: str, at: int = at, woken: asyncio.Event = woken, slept: asyncio.Event = slept
        ) -> None:
            if exchange >= at and not woken.is_set():
                slept.set()
                await woken.wait()

        async with asyncio.TaskGroup() as tasks:
            sleeper = tasks.create_task(_until_refused(world, world.mover(sleep)))
            waiting = tasks.create_task(slept.wait())
            await asyncio.wait({sleeper, waiting}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            await world.moved()
            woken.set()
            await sleeper
        await world.moved()
        yield world


async def _until_refused(world: MovingWorld, mover: PartitionMover) -> None:
    with suppress(StoreUnavailable):
        await world.moved(mover)


async def test_a_mover_that_was_asleep_does_nothing() -> None:
    async for world in asleep():
        world.require_all_there()


async def test_a_mover_that_slept_through_a_move_there_and_back_does_nothing() -> None:
    async for world in asleep():
        world.layout = world.layout.beginning({PARTITION: FROM})
        await world.moved()
        world.require_all_there(FROM)


@pytest.mark.parametrize("seed", range(60))
async def test_movers_at_once(seed: int) -> None:
    """Three that all take themselves for the leader of the home's, each as fast or as slow as it comes."""
    random, world = Random(seed), begun()

    async def dawdle(_exchange: int, _name: str) -> None:
        for _ in range(random.choice((0, 0, 0, 1, 9, 60))):
            await asyncio.sleep(0)

    async def carry(mover: PartitionMover) -> None:
        for _ in range(40):
            with suppress(StoreUnavailable):
                await mover.step(PARTITION)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(3):
            tasks.create_task(carry(world.mover(dawdle)))
    await world.moved()
    world.require_all_there()


# What a move waits for


@pytest.mark.parametrize("field", ["all_know_shards", "keeps_to_parts"])
async def test_nothing_begins_before_the_replicas_and_the_caps_are_ready(field: str) -> None:
    world = begun(**{field: False})
    mover = world.mover()
    for _ in range(10):
        assert await mover.step(PARTITION)
    assert world.hold(TO) is None
    setattr(world, field, True)
    await world.moved(mover)
    world.require_all_there()


async def test_the_layout_does_not_change_hands_before_the_gateways_refuse_writes() -> None:
    world = begun(are_frozen_acknowledged=False)
    mover = world.mover()
    for _ in range(60):
        assert await mover.step(PARTITION)
    assert world.layout.frozen == {PARTITION}
    world.are_frozen_acknowledged = True
    await world.moved(mover)
    world.require_all_there()


async def test_the_source_is_not_held_before_the_leader_of_the_target_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    world = begun()
    lead = MovingWorld._lead
    monkeypatch.setattr(MovingWorld, "_lead", lambda self, index: None if index == TO else lead(self, index))
    mover = world.mover()
    for _ in range(40):
        assert await mover.step(PARTITION)
    assert not world.hold(FROM).is_held  # type: ignore[union-attr]
    monkeypatch.undo()
    await world.moved(mover)
    world.require_all_there()


async def test_a_partition_at_rest_has_no_step() -> None:
    world = MovingWorld()
    world.layout = MovingWorld().layout.arrived(PARTITION).emptied(PARTITION)
    assert not await world.mover().step(PARTITION)


async def test_a_hold_that_was_deleted_ends_nothing() -> None:
    world = begun()
    world.layout = world.layout.arrived(PARTITION)
    world.databases[TO].replace(Collection.HOLDS, encode_hold(Hold(KEY, 1, is_held=True)))
    with pytest.raises(StoreUnavailable, match="deleted"):
        await world.mover().step(PARTITION)


async def test_the_agent_carries_all_that_move_and_ends_with_the_term(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "_LOOK_S", 0.001)
    monkeypatch.setattr(moves, "_STEP_S", 0.001)
    world = begun()
    mover = world.mover()
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(mover.run())
        await _until(lambda: world.layout.is_at_rest(PARTITION) and not mover.is_moving())
        world.put_job(FROM, LATE)
        await _until(lambda: LATE in world.documents(TO) and LATE not in world.documents(FROM))
        world.leading = False
        running.cancel()
    world.require_all_there()


async def _until(is_so: Callable[[], bool]) -> None:
    while not is_so():  # noqa: ASYNC110  # nothing tells when a step of the agent is over
        await asyncio.sleep(0)


# Planted bugs: each is noticed


class CopiesBeforeTheHold(PartitionMover):
    async def _put(self, index: int, way: Any, before: Hold | None, **fields: Any) -> Hold:
        is_first = index == way.target and (before is None or not before.is_silent)
        return await super()._put(index, way, before, **(fields | {"is_held": False} if is_first else fields))

    async def _advance(self, layout: Any, way: Any, here: Hold | None, there: Hold | None) -> None:
        if there is not None and not there.is_held:
            there = Hold(there.key, there.rev, is_held=False, is_silent=True)
            here = here or await self._put(way.source, way, None, is_held=False)
            await self._equalize(way, here, there)
            await super()._put(way.target, way, there, is_held=True, is_silent=True)
        else:
            await super()._advance(layout, way, here, there)


class OpensBeforeTheTake(PartitionMover):
    async def _take(self, way: Any, here: Hold, there: Hold, *, live_only: bool) -> bool:
        return live_only or await super()._take(way, here, there, live_only=live_only)


class TakesWithoutTheVersion(MemoryTenantStore):
    async def take(self, hold: Hold, versions: Mapping[Key, Version]) -> int:
        return await super().take(hold, await self.versions_of(versions.keys()))


async def is_noticed(worlds: AsyncIterator[MovingWorld]) -> None:
    with pytest.raises(AssertionError):
        await _require(worlds)


async def _require(worlds: AsyncIterator[MovingWorld]) -> None:
    async for world in worlds:
        world.require_all_there()


async def moved(**fields: Any) -> AsyncIterator[MovingWorld]:
    world = begun(**fields)
    await world.moved()
    yield world


async def test_noticed_copy_before_the_hold() -> None:
    await is_noticed(moved(mover_type=CopiesBeforeTheHold))


async def test_noticed_flip_before_the_release(monkeypatch: pytest.MonkeyPatch) -> None:
    await _require(moved(promised=100))
    monkeypatch.setattr(Hold, "is_released", property(lambda self: self.is_held))
    await is_noticed(moved(promised=100))


async def test_noticed_open_before_the_take() -> None:
    await is_noticed(moved(mover_type=OpensBeforeTheTake))


async def test_noticed_take_without_the_version() -> None:
    await is_noticed(changed_late(lambda: begun(store_type=TakesWithoutTheVersion)))


async def test_noticed_hold_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doubles, "require_hold", lambda database, hold: None)
    await is_noticed(asleep())


async def test_noticed_mark_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "_is_late", lambda there, here: here is not None and there.is_after(here))
    await is_noticed(late_writes(TO))
