"""A slot on its way to another shard: what moves when, who breaks off at any step, and who was asleep at one."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from hascheduler.model.collection import Collection
from hascheduler.model.documents.hold import decode_hold, encode_hold
from hascheduler.model.documents.routing import ROUTING_ID, decode_routing, encode_routing
from hascheduler.model.hold import Hold, partition_key
from hascheduler.model.job import JobState
from hascheduler.model.routing import Routing, slot_of
from hascheduler.sharding import moves
from hascheduler.sharding.moves import SlotMover
from hascheduler.testing.memory.database import MemoryConnection, MemoryDatabase
from tests.doubles.holds import MemoryHoldStore
from tests.doubles.shards import MemoryRoutingStore, MemorySlotStore
from tests.unit.sharding.deployment import RETENTION_MS, ROUTING, SHARDS, HandClock, tenant_in

TENANT = tenant_in(1)
SLOT = slot_of(TENANT)
KEY = partition_key(SLOT)
FROM, TO = 1, 2
FIRST = {"fire:tick:1", "awaited", "waits"}
"""What the other shard needs to decide, beside the schedule."""
REST = {"a", "b", "ended"}
Hook = Callable[[str], Awaitable[None]]


class Killed(BaseException):
    """The end of a process, which nothing catches."""


class Hooked:
    """A store of which each call is told before it is made."""

    def __init__(self, store: Any, hook: Hook) -> None:
        self._store = store
        self._hook = hook

    def __getattr__(self, name: str) -> Any:
        asked = getattr(self._store, name)

        async def ask(*arguments: Any) -> Any:
            await self._hook(name)
            return await asked(*arguments)

        return ask


@dataclass
class Shard:
    """What a mover sees of one: its database as it is."""

    shard: str
    database: MemoryDatabase
    alive: list[str] = field(default_factory=lambda: ["r1"])
    ready: bool = True
    leading: bool = True
    is_behind: bool = False
    """The mover has yet to hear of what came late into it."""
    hurried: int = 0

    @property
    def view(self) -> Any:
        return self

    def live_replicas(self) -> list[Any]:
        return [SimpleNamespace(id=id) for id in self.alive]

    def hurry(self) -> None:
        self.hurried += 1

    def kept_aside(self, slot: int) -> int:
        jobs = () if self.is_behind else self.database.documents(Collection.JOBS)
        return sum(slot_of(job["tenant"]) == slot and job["state"] == JobState.PENDING for job in jobs)

    def nouns(self, collection: Collection) -> Mapping[str, Any]:
        documents = self.database.documents(collection)
        if collection is Collection.ROUTING:
            return {str(each["_id"]): decode_routing(each) for each in documents}
        return {each["_id"]: decode_hold(each["_id"], each) for each in documents}


async def _unhindered(_name: str) -> None:
    pass


class Deployment:
    """Three shards, the documents of one tenant in the second, and movers over them."""

    def __init__(self) -> None:
        self.databases = [MemoryDatabase() for _ in SHARDS]
        self.shards = [Shard(name, database) for name, database in zip(SHARDS, self.databases, strict=True)]
        self.databases[0].insert(Collection.ROUTING, encode_routing(ROUTING))
        here = self.databases[FROM]
        policy = {"overlap": "skip"}
        tick = {"_id": "tick", "rev": 1, "cursor_ms": 1, "policy": policy, "job": {"tenant": TENANT}}
        here.insert(Collection.SCHEDULES, tick)
        here.insert(Collection.VERDICTS, {"_id": "tick:0", "schedule": "tick"})
        self.insert(FROM, "fire:tick:1", schedule="tick")
        self.insert(FROM, "awaited", JobState.FAILED)
        self.insert(FROM, "waits", waits_for=["awaited"])
        self.insert(FROM, "a")
        self.insert(FROM, "b", priority=9)
        self.insert(FROM, "ended", JobState.SUCCEEDED)

    def insert(self, index: int, id: str, state: JobState = JobState.PENDING, **more: Any) -> None:
        document = {"_id": id, "tenant": TENANT, "state": state.value, "rev": 1, "priority": 5, **more}
        assert self.databases[index].insert(Collection.JOBS, document)

    def mover(self, hook: Hook = _unhindered) -> SlotMover:
        connections = [MemoryConnection(database) for database in self.databases]
        stores: Any = [Hooked(MemoryHoldStore(one), hook) for one in connections]
        routing: Any = Hooked(MemoryRoutingStore(connections[0]), hook)
        slots: Any = Hooked(MemorySlotStore(connections, RETENTION_MS), hook)
        shards: Any = self.shards
        return SlotMover(routing, stores, shards, slots, HandClock())

    @property
    def routing(self) -> Routing:
        stored = self.databases[0].find(Collection.ROUTING, ROUTING_ID)
        assert stored is not None
        return decode_routing(stored)

    @property
    def hurried(self) -> list[int]:
        """How often each shard was to be read at once."""
        return [shard.hurried for shard in self.shards]

    def begin(self, to: int) -> None:
        self.databases[0].replace(Collection.ROUTING, encode_routing(self.routing.beginning({SLOT: to})))

    def hold(self, index: int) -> Hold | None:
        stored = self.databases[index].find(Collection.HOLDS, KEY)
        return None if stored is None else decode_hold(KEY, stored)

    def is_open(self, index: int) -> bool:
        hold = self.hold(index)
        return hold is None or not hold.is_held

    def release(self) -> None:
        """The leaders say that they keep to what they were told."""
        for index, database in enumerate(self.databases):
            hold = self.hold(index)
            if hold is not None and hold.is_awaited:
                stored = encode_hold(Hold(KEY, hold.rev, is_held=True, released=hold.rev))
                database.replace(Collection.HOLDS, stored)

    def jobs(self, index: int) -> set[str]:
        return {job["_id"] for job in self.databases[index].documents(Collection.JOBS)}

    async def move(self, mover: SlotMover, looks: int = 60) -> None:
        """Until the slot is at rest."""
        for _ in range(looks):
            await mover.turn()
            self.release()
            await mover.turn_of_the_rest()
            self.assert_sound()
            if self.routing.is_at_rest(SLOT) and self.is_open(self.routing.shard_of_slot[SLOT]):
                return
        raise AssertionError(f"it does not arrive: {self.routing.moving} {self.routing.leaving}")

    def assert_sound(self) -> None:
        """Each document is in one shard, one shard decides at most, and it has what it needs to."""
        found = [id for index in range(len(SHARDS)) for id in self.jobs(index)]
        assert sorted(found) == sorted(FIRST | REST)
        deciding = [index for index in (FROM, TO) if self.hold(index) and self.is_open(index)]
        assert len(deciding) <= 1
        for index in deciding:
            assert self.jobs(index) >= FIRST
            assert self.databases[index].find(Collection.SCHEDULES, "tick")

    def assert_all_in(self, index: int) -> None:
        assert [self.jobs(each) for each in range(len(SHARDS))] == [
            FIRST | REST if each == index else set() for each in range(len(SHARDS))
        ]
        for collection, id in ((Collection.SCHEDULES, "tick"), (Collection.VERDICTS, "tick:0")):
            assert [bool(each.find(collection, id)) for each in self.databases] == [
                each == index for each in range(len(SHARDS))
            ]
        assert self.routing.shard_of_slot[SLOT] == index
        assert self.routing.is_at_rest(SLOT)


@pytest.fixture
def deployment(monkeypatch: pytest.MonkeyPatch) -> Deployment:
    monkeypatch.setattr(moves, "_DOCUMENTS_AT_ONCE", 2)
    return Deployment()


async def test_a_slot_is_closed_where_it_goes_then_where_it_is_then_released_moved_opened_and_emptied(
    deployment: Deployment,
) -> None:
    mover = deployment.mover()
    deployment.begin(TO)
    await mover.turn()
    assert (deployment.is_open(TO), deployment.is_open(FROM)) == (False, True)
    await mover.turn()
    assert not deployment.is_open(FROM)
    await mover.turn()
    assert deployment.jobs(TO) == set(), "what runs there, or is promised, is awaited"
    deployment.release()
    await mover.turn()
    assert deployment.routing.shard_of_slot[SLOT] == TO
    assert deployment.routing.leaving == {SLOT: FROM}
    assert (deployment.is_open(TO), deployment.is_open(FROM)) == (True, False)
    assert deployment.jobs(TO) == FIRST
    assert deployment.jobs(FROM) == REST
    await mover.turn_of_the_rest()
    assert deployment.jobs(TO) == {*FIRST, "a", "b"}
    await deployment.move(mover)
    deployment.assert_all_in(TO)
    assert not deployment.is_open(FROM)


async def test_shards_between_which_a_slot_moves_are_read_at_once_until_it_is_open(deployment: Deployment) -> None:
    """The replica of the mover may follow them, and one that follows reads its stream five times a second."""
    mover = deployment.mover()
    await mover.turn()
    assert deployment.hurried == [0, 0, 0]
    deployment.begin(TO)
    for turns in range(1, 4):
        await mover.turn()
        assert dict(enumerate(deployment.hurried)) == {0: 0, FROM: turns, TO: turns}
    await deployment.move(mover)
    hurried = deployment.hurried
    await mover.turn()
    assert deployment.hurried == hurried


async def test_a_mover_that_is_killed_at_any_step_is_followed_by_the_next_one(deployment: Deployment) -> None:
    calls = await _calls_of_a_move()
    for last in range(calls):
        deployment = Deployment()
        deployment.begin(TO)
        left = iter(range(last))

        async def die(_name: str, left: Any = left) -> None:
            if next(left, None) is None:
                raise Killed

        with pytest.raises(Killed):
            await deployment.move(deployment.mover(die))
        await deployment.move(deployment.mover())
        deployment.assert_all_in(TO)


@pytest.mark.parametrize("later", [(TO,), (TO, FROM), (TO, FROM, TO), (TO, 0)], ids=str)
async def test_a_mover_that_was_asleep_at_any_step_changes_nothing_when_it_wakes_up(
    deployment: Deployment, later: tuple[int, ...]
) -> None:
    """Others have moved the slot meanwhile, and perhaps back, or on."""
    for last in range(await _calls_of_a_move()):
        deployment, sleeper, asleep = await _asleep_after(last)
        for to in later:
            if deployment.routing.is_at_rest(SLOT) and deployment.routing.shard_of_slot[SLOT] != to:
                deployment.begin(to)
            await deployment.move(deployment.mover())
        before = (deployment.routing, [deployment.hold(index) for index in range(len(SHARDS))])
        sleeper.awake.set()
        with suppress(AssertionError):
            await asleep
        assert (deployment.routing, [deployment.hold(index) for index in range(len(SHARDS))]) == before, last
        deployment.assert_all_in(later[-1])


async def test_a_mover_that_was_asleep_while_the_slot_came_back_moves_nothing_of_what_is_decided_there(
    deployment: Deployment,
) -> None:
    """In the middle of the way back, where the shard that it goes to is closed as it was before."""
    for last in range(await _calls_of_a_move()):
        deployment, sleeper, asleep = await _asleep_after(last)
        await deployment.move(deployment.mover())
        deployment.begin(FROM)
        parts = iter(range(2))

        async def break_off(name: str, parts: Any = parts) -> None:
            if name == "move_first" and next(parts, None) is None:
                raise Killed

        with pytest.raises(Killed):
            await deployment.move(deployment.mover(break_off))
        before = [deployment.jobs(index) for index in range(len(SHARDS))]
        assert before[FROM]
        assert before[TO]
        sleeper.end_after_one_call = True
        sleeper.awake.set()
        with suppress(Killed, AssertionError):
            await asleep
        assert [deployment.jobs(index) for index in range(len(SHARDS))] == before, last
        await deployment.move(deployment.mover())
        deployment.assert_all_in(FROM)


async def test_a_slot_goes_nowhere_before_every_replica_follows_that_shard(deployment: Deployment) -> None:
    deployment.shards[0].alive = ["r1", "r2"]
    deployment.begin(TO)
    for _ in range(3):
        await deployment.mover().turn()
    assert deployment.hold(TO) is None
    deployment.shards[TO].alive = ["r1", "r2"]
    await deployment.move(deployment.mover())
    deployment.assert_all_in(TO)


async def test_who_does_not_lead_the_home_moves_nothing(deployment: Deployment) -> None:
    deployment.begin(TO)
    deployment.shards[0].leading = False
    assert await deployment.mover().turn() is False
    assert await deployment.mover().turn_of_the_rest() is False
    assert deployment.hold(TO) is None


async def test_slots_wait_while_four_are_on_their_way_but_not_one_that_is_closed(deployment: Deployment) -> None:
    slots = [slot for slot in range(256) if ROUTING.shard_of_slot[slot] == FROM and slot != SLOT]
    mover = deployment.mover()
    deployment.begin(TO)
    for _ in range(2):
        await mover.turn()
    begun = deployment.routing.beginning(dict.fromkeys([slot for slot in slots if slot < SLOT] or slots, TO))
    deployment.databases[0].replace(Collection.ROUTING, encode_routing(begun))
    for _ in range(3):
        await mover.turn()
    closed = [hold for hold in deployment.shards[FROM].nouns(Collection.HOLDS).values() if hold.is_held]
    assert len(closed) == 4
    assert deployment.hold(FROM) in closed


async def test_what_comes_late_goes_after_the_others(deployment: Deployment) -> None:
    mover = deployment.mover()
    deployment.begin(TO)
    await deployment.move(mover)
    deployment.insert(FROM, "late")
    await mover.turn_of_the_rest()
    assert "late" in deployment.jobs(TO)
    assert deployment.jobs(FROM) == set()


@pytest.mark.parametrize("is_behind", [False, True])
async def test_what_came_late_is_out_of_the_way_before_the_slot_comes_back(
    deployment: Deployment, is_behind: bool
) -> None:
    """The job has ended where the slot is, and would be done again where it comes to."""
    mover = deployment.mover()
    deployment.begin(TO)
    await deployment.move(mover)
    deployment.shards[FROM].is_behind = is_behind
    deployment.insert(FROM, "ended")
    deployment.begin(FROM)
    await deployment.move(mover)
    deployment.assert_all_in(FROM)
    found = deployment.databases[FROM].find(Collection.JOBS, "ended")
    assert found is not None
    assert found["state"] == JobState.SUCCEEDED


async def test_what_a_processor_got_late_keeps_the_slot_from_arriving(deployment: Deployment) -> None:
    mover = deployment.mover()
    deployment.begin(TO)
    for _ in range(2):
        await mover.turn()
    deployment.release()
    deployment.insert(FROM, "late", JobState.RUNNING)
    for _ in range(5):
        await mover.turn()
    assert deployment.routing.moving == {SLOT: TO}
    assert not deployment.is_open(TO)


class Sleeper:
    """Stands still before its call of that number, until it is woken up."""

    def __init__(self, calls: int) -> None:
        self._left = calls
        self.asleep, self.awake = asyncio.Event(), asyncio.Event()
        self.end_after_one_call = False

    async def hook(self, _name: str) -> None:
        if self._left == 0:
            self.asleep.set()
            await self.awake.wait()
        elif self._left < 0 and self.end_after_one_call:
            raise Killed
        self._left -= 1


async def _asleep_after(calls: int) -> tuple[Deployment, Sleeper, asyncio.Task[None]]:
    """A mover that falls asleep in the middle of a move, after so many calls of the stores."""
    deployment, sleeper = Deployment(), Sleeper(calls)
    deployment.begin(TO)
    asleep = asyncio.create_task(deployment.move(deployment.mover(sleeper.hook)))
    await sleeper.asleep.wait()
    return deployment, sleeper, asleep


async def _calls_of_a_move() -> int:
    """How many calls of stores a whole move makes."""
    calls = 0

    async def count(_name: str) -> None:
        nonlocal calls
        calls += 1

    deployment = Deployment()
    deployment.begin(TO)
    await deployment.move(deployment.mover(count))
    return calls
