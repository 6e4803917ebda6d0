"""A partition on its way: whole moves, movers that are killed or asleep at any exchange, writes that come late."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from hascheduler.errors import StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.documents.leadership import encode_hold
from hascheduler.model.job import JobState
from hascheduler.model.partition import Hold, partition_of
from hascheduler.ports.tenants import Key, Version
from hascheduler.shards import moves
from hascheduler.shards.moves import PartitionMover
from tests.doubles import tenants as doubles
from tests.doubles.tenants import MemoryTenantStore
from tests.factories import NOW
from tests.tiers import in_tier
from tests.unit.shards.moving_world import FROM, KEY, LATE, PARTITION, TENANT, TO, Hook, MoverKilled, MovingWorld


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


STEP = in_tier(check=5, test=1)


async def exchanges_of_a_move(step: int = STEP) -> range:
    world = begun()
    await world.moved()
    return range(1, world.exchanges, step)


async def copied(world: MovingWorld, id: str) -> PartitionMover:
    """Return the mover that has copied that document and gone no step further."""
    mover = world.mover()
    while id not in world.documents(TO):
        await mover.step(PARTITION)
    return mover


async def test_a_whole_move() -> None:
    world = begun()
    before = {"over", f"tick:{NOW:013d}", TENANT, "tick", "a", "kept-1"}
    await world.moved()
    world.require_all_there()
    assert before <= world.documents(TO).keys()
    assert world.hold(FROM) == Hold(KEY, world.hold(FROM).rev, True, False, world.hold(FROM).rev)  # type: ignore[union-attr]


async def test_tenants_with_odd_names_go_along() -> None:
    names = (f'\0${{"$gt": {number}}}.é\U0001f600' for number in range(10_000))
    odd = next(name for name in names if partition_of(name) == PARTITION)
    world = begun()
    world.put_job(FROM, "kept-odd", tenant=odd, payload={"$x.y": [None, {"": 1}]})
    await world.moved()
    world.require_all_there()
    assert world.documents(TO)["kept-odd"]["payload"] == {"$x.y": [None, {"": 1}]}


def once(at: int, do: Callable[[], object]) -> Hook:
    async def hook(exchange: int, _name: str) -> None:
        if exchange == at:
            do()

    return hook


@pytest.mark.parametrize("error", [MoverKilled, StoreUnavailable])
async def test_a_mover_that_fails_at_any_exchange_goes_on_and_one_that_is_killed_is_followed_by_another(
    error: type[BaseException],
) -> None:
    def fail() -> None:
        raise error("no answer")

    for at in await exchanges_of_a_move():
        world = begun()
        mover = world.mover(once(at, fail))
        with suppress(error):
            await world.moved(mover)
        await world.moved(None if error is MoverKilled else mover)
        world.require_all_there()


async def at_each_exchange(
    do: Callable[[MovingWorld], object], world_of: Callable[[], MovingWorld] = begun, step: int = STEP
) -> AsyncIterator[MovingWorld]:
    """Yield a world for each exchange of a move, moved while that was done before this exchange."""
    for at in await exchanges_of_a_move(step):
        world = world_of()
        await world.moved(world.mover(once(at, partial(do, world))))
        yield world


async def require(worlds: AsyncIterator[MovingWorld]) -> None:
    async for world in worlds:
        world.require_all_there()


def late_writes(index: int) -> AsyncIterator[MovingWorld]:
    return at_each_exchange(lambda world: world.put_job(index, LATE))


def late_changes(world_of: Callable[[], MovingWorld] = begun, step: int = STEP) -> AsyncIterator[MovingWorld]:
    return at_each_exchange(lambda world: world.change_job(FROM, "kept-1", priority=9), world_of, step)


@pytest.mark.parametrize(
    "worlds",
    [lambda: late_writes(FROM), lambda: late_writes(TO), late_changes],
    ids=["a job in the source", "a job in the target", "a change in the source"],
)
async def test_what_a_request_writes_at_any_exchange_is_kept(worlds: Callable[[], AsyncIterator[MovingWorld]]) -> None:
    await require(worlds())


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
    deleted: list[bool] = []

    def delete(world: MovingWorld) -> None:
        if not world.layout.is_frozen(PARTITION):
            shard = world.databases[world.layout.shard_of[PARTITION]]
            deleted.append(shard.delete(Collection.SCHEDULES, "tick"))

    async for world in at_each_exchange(delete):
        assert [index for index in (FROM, TO) if "tick" in world.documents(index)] == ([] if deleted else [TO])
        deleted.clear()


async def test_a_schedule_made_again_under_its_name_replaces_the_old_one() -> None:
    world = begun()
    world.databases[FROM].replace(
        Collection.SCHEDULES,
        {"_id": "tick", "rev": 7, "created_at_ms": NOW - 1, "cursor_ms": 59, "job": {"tenant": TENANT}},
    )
    mover = await copied(world, "tick")
    world.databases[FROM].delete(Collection.SCHEDULES, "tick")
    world.put_schedule(FROM)
    world.decided.clear()
    world.ran.clear()
    await world.moved(mover)
    assert world.documents(TO)["tick"]["created_at_ms"] == NOW
    assert world.documents(TO)["tick"]["rev"] == 1


async def test_verdicts_that_an_edit_withdrew_are_withdrawn_there() -> None:
    world = begun()
    record = f"tick:{NOW:013d}"
    mover = await copied(world, record)
    schedule = world.documents(FROM)["tick"]
    world.databases[FROM].delete(Collection.VERDICTS, record)
    world.databases[FROM].replace(Collection.SCHEDULES, {**schedule, "rev": 2})
    await world.moved(mover)
    assert record not in world.documents(TO)


async def test_a_verdict_of_long_ago_that_a_successor_carries_out_goes_along() -> None:
    world = begun()
    mover = await copied(world, "tick")
    record = {"_id": "tick:0000000000000", "schedule": "tick", "last_ms": 0, "decided_at_ms": NOW - 1_000_000}
    world.databases[FROM].insert(Collection.VERDICTS, record)
    await world.moved(mover)
    assert record["_id"] in world.documents(TO)


async def test_a_key_that_an_ended_job_lost_goes_to_its_next_holder() -> None:
    """A pass over what changed since the last one does not see that the ended job has lost it."""
    world = begun()
    world.put_job(
        FROM, "kept-old", state=JobState.FAILED.value, idempotency_key="k", submitted_at_ms=NOW - 1_000_000
    )  # fmt: skip
    mover = await copied(world, "kept-old")
    old = {name: value for name, value in world.documents(FROM)["kept-old"].items() if name != "idempotency_key"}
    world.databases[FROM].replace(Collection.JOBS, old)
    world.put_job(FROM, "kept-new", idempotency_key="k")
    await world.moved(mover)
    world.require_all_there()
    assert world.documents(TO)["kept-new"]["idempotency_key"] == "k"


# Several movers


async def asleep() -> AsyncIterator[MovingWorld]:
    """Yield a world for each exchange of a move, in which a mover sleeps before it until another one is done."""
    for at in await exchanges_of_a_move():
        world = begun()
        woken, slept = asyncio.Event(), asyncio.Event()

        async def sleep(
            exchange: int, _name: str, at: int = at, woken: asyncio.Event = woken, slept: asyncio.Event = slept
        ) -> None:
            if exchange >= at and not woken.is_set():
                slept.set()
                await woken.wait()

        async with asyncio.TaskGroup() as tasks:
            sleeper = tasks.create_task(until_refused(world, world.mover(sleep)))
            waiting = tasks.create_task(slept.wait())
            await asyncio.wait({sleeper, waiting}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            await world.moved()
            woken.set()
            await sleeper
        await world.moved()
        yield world


async def until_refused(world: MovingWorld, mover: PartitionMover) -> None:
    with suppress(StoreUnavailable):
        await world.moved(mover)


async def test_a_mover_that_was_asleep_does_nothing_and_the_partition_moves_back() -> None:
    async for world in asleep():
        world.require_all_there()
        world.layout = world.layout.beginning({PARTITION: FROM})
        await world.moved()
        world.require_all_there(FROM)


# What a move waits for


@pytest.mark.parametrize(("field", "is_before"), [
    ("all_know_shards", lambda world: world.hold(TO) is None),
    ("keeps_to_parts", lambda world: world.hold(TO) is None),
    ("are_frozen_acknowledged", lambda world: world.layout.frozen == {PARTITION} and PARTITION in world.layout.moving),
    ("target_answers", lambda world: not world.hold(FROM).is_held),
])  # fmt: skip
async def test_a_move_waits_for_replicas_caps_gateways_and_the_leader_of_the_target(
    field: str, is_before: Callable[[MovingWorld], bool]
) -> None:
    world = begun(**{field: False})
    mover = world.mover()
    for _ in range(60):
        assert await mover.step(PARTITION)
    assert is_before(world)
    setattr(world, field, True)
    await world.moved(mover)
    world.require_all_there()
    assert not await mover.step(PARTITION)


async def test_a_hold_that_was_deleted_ends_nothing() -> None:
    world = begun()
    world.layout = world.layout.arrived(PARTITION)
    world.databases[TO].replace(Collection.HOLDS, encode_hold(Hold(KEY, 1, is_held=True)))
    with pytest.raises(StoreUnavailable, match="deleted"):
        await world.mover().step(PARTITION)


async def test_the_agent_carries_all_that_move_and_ends_with_the_term(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "_CHECK_EVERY_S", 0.001)
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


# Planted bugs: each is noticed; others are planted in `tests.cluster_simulation.shard_mutants`


class TakesWithoutTheVersion(MemoryTenantStore):
    async def take(self, hold: Hold, versions: Mapping[Key, Version]) -> int:
        return await super().take(hold, await self.versions_of(versions.keys()))


async def is_noticed(worlds: AsyncIterator[MovingWorld]) -> None:
    with pytest.raises(AssertionError):
        await require(worlds)


@pytest.mark.slow  # few exchanges show it
async def test_noticed_take_without_the_version() -> None:
    await is_noticed(late_changes(lambda: begun(store_type=TakesWithoutTheVersion), step=1))


async def test_noticed_hold_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doubles, "require_hold", lambda database, hold: None)
    await is_noticed(asleep())


async def test_noticed_mark_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "_is_late", lambda there, here: here is not None and there.is_after(here))
    await is_noticed(late_writes(TO))
