"""Which workers over HTTP are told to register again, and where they get to: decisions on what a replica has seen."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import pytest

from hascheduler.api.admission import worker_moves
from hascheduler.api.admission.worker_moves import Group, MoveStep, WorkerMoves
from hascheduler.model.processor import ProcessorRef
from hascheduler.model.values.instants import MonoMs
from hascheduler.ports.demand import Demand
from hascheduler.ports.next_shard import IDLE_MS, REST_MS, TURN_MS
from tests.factories import make_processor
from tests.unit.processor.world import HandClock

SHARDS = ("default", "0001", "0002")
LOG = frozenset({"log"})
SECOND_MS = 1_000


class Demands:
    """`ShardDemand` in the hands of the test. Who looked for what is in ``asked``."""

    def __init__(self) -> None:
        self.now: list[Demand] = [Demand(index) for index in range(len(SHARDS))]
        self.asked: list[frozenset[str]] = []
        self.held = asyncio.Event()
        self.held.set()

    async def look(
        self, definitions: frozenset[str], own: Collection[str], shards: Collection[int] | None = None
    ) -> Sequence[Demand]:
        self.asked.append(definitions)
        await self.held.wait()
        return list(self.now)

    def wanted(self, shard: int, count: int = 1) -> None:
        """Jobs that nobody takes."""
        self.now[shard] = Demand(shard, count, count, count)

    def short(self, shard: int, count: int = 1) -> None:
        """Jobs that others take, and have no slot for."""
        self.now[shard] = Demand(shard, count, 0, count, ("other",), 4)

    def met(self, shard: int) -> None:
        self.now[shard] = Demand(shard)


class Room:
    """One replica, asked about workers once a second."""

    def __init__(self, demands: Demands, clock: HandClock) -> None:
        self.demands = demands
        self.clock = clock
        self.moves = WorkerMoves(SHARDS, demands, clock, lambda: 0)

    async def asked(self, worker: ProcessorRef, seconds: int = 1, *, holds: bool = False) -> MoveStep:
        """The last step of so many seconds, or the first that is something."""
        for _ in range(seconds):
            self.clock.now_ms += SECOND_MS
            step = self.moves.consider(worker, holds=holds)
            if step is not MoveStep.NOTHING:
                return step
            await looked()
        return MoveStep.NOTHING

    async def told_after(self, worker: ProcessorRef, *, holds: bool = False) -> int:
        """In ms, how long it takes until the worker is told something, from now on; a minute at most."""
        began = self.clock.now_ms
        assert await self.asked(worker, 60, holds=holds) is MoveStep.BEGIN_MOVE
        return self.clock.now_ms - began


async def looked() -> None:
    """Turns of the loop: until who looks has looked, or waits."""
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_moves, "_PAUSE_S", 0)
    monkeypatch.setattr(worker_moves, "_PAUSE_FACTOR", 0)


@pytest.fixture
def demands() -> Demands:
    return Demands()


@pytest.fixture
def room(demands: Demands) -> Room:
    return Room(demands, HandClock())


def worker(id: str = "http:far.1@default", shard: str = "default", **more: Any) -> ProcessorRef:
    fields: dict[str, Any] = {"definitions": ["log"], "slots": 1, "registered_by": "token", **more}
    return make_processor(id, shard=shard, **fields)


def group(token: str | None = "token", *definitions: str) -> Group:
    return Group(token, frozenset(definitions or LOG))


async def test_an_idle_worker_goes_where_jobs_have_no_slot_once_it_has_rested(room: Room, demands: Demands) -> None:
    demands.short(1, 3)
    assert REST_MS <= await room.told_after(worker()) <= REST_MS + 2 * SECOND_MS
    room.moves.left(worker())
    assert await room.moves.shard_in_need(group(), 1, "http:far.2") == "0001"


async def test_a_worker_that_has_just_had_work_is_not_idle(room: Room, demands: Demands) -> None:
    demands.short(1)
    await room.asked(worker(), 20, holds=True)
    assert await room.asked(worker()) is MoveStep.NOTHING
    assert await room.asked(worker(), 2 + IDLE_MS // SECOND_MS) is MoveStep.BEGIN_MOVE


async def test_nobody_goes_without_a_reason(room: Room) -> None:
    assert await room.asked(worker(), 100) is MoveStep.NOTHING
    assert await room.asked(worker("http:far.2@default"), 100, holds=True) is MoveStep.NOTHING


async def test_an_idle_worker_stays_for_a_turn_while_jobs_wait_for_it_where_it_is(room: Room, demands: Demands) -> None:
    demands.wanted(0)
    demands.wanted(1)
    assert await room.told_after(worker()) >= TURN_MS


async def test_where_jobs_did_not_come_is_passed_over_by_all_of_that_token(room: Room, demands: Demands) -> None:
    demands.wanted(0, 99)
    demands.short(1)
    await room.told_after(worker())
    room.moves.left(worker())
    await room.moves.shard_in_need(group(), 1, "http:far.2")
    demands.met(1)
    assert await room.moves.shard_in_need(group(), 1, "http:far.3") != "default"
    assert await room.moves.shard_in_need(group("another"), 1, "http:far.4") == "default"


async def test_a_busy_worker_goes_after_its_turn_where_nobody_takes_the_jobs(room: Room, demands: Demands) -> None:
    demands.short(1, 99)
    assert await room.asked(worker(), 30, holds=True) is MoveStep.NOTHING
    demands.wanted(2)
    assert await room.asked(worker(), 30, holds=True) is MoveStep.BEGIN_MOVE
    fresh = worker("http:far.9@default")
    demands.wanted(1)
    assert await room.told_after(fresh, holds=True) >= TURN_MS


async def test_one_that_moves_is_deregistered_once_it_holds_nothing(room: Room, demands: Demands) -> None:
    demands.wanted(1)
    await room.told_after(worker(), holds=True)
    moving = worker(moving=True, draining=True)
    assert await room.asked(moving, 20, holds=True) is MoveStep.NOTHING
    assert await room.asked(moving, 2) is MoveStep.DEREGISTER, "once its last answer is there"


async def test_any_replica_goes_on_with_a_move(demands: Demands) -> None:
    other = Room(demands, HandClock())
    moving = worker(moving=True, draining=True)
    assert await other.asked(moving, holds=True) is MoveStep.NOTHING
    assert await other.asked(moving) is MoveStep.NOTHING
    assert await other.asked(moving) is MoveStep.DEREGISTER


async def test_a_move_is_called_off_where_others_take_the_jobs_and_not_at_once(room: Room, demands: Demands) -> None:
    demands.wanted(1)
    await room.told_after(worker(), holds=True)
    began = room.clock.now_ms
    demands.short(1, 99)
    moving = worker(moving=True, draining=True)
    assert await room.asked(moving, 20, holds=True) is MoveStep.CALL_OFF
    assert room.clock.now_ms - began >= 5 * SECOND_MS
    demands.wanted(2)
    began = room.clock.now_ms
    assert await room.told_after(worker(), holds=True) >= 5 * SECOND_MS


async def test_it_is_told_once_and_again_where_the_stream_never_shows_it(room: Room, demands: Demands) -> None:
    demands.wanted(1)
    await room.told_after(worker(), holds=True)
    assert await room.asked(worker(), 4, holds=True) is MoveStep.NOTHING
    assert await room.asked(worker(), 6, holds=True) is MoveStep.BEGIN_MOVE


async def test_one_that_is_about_to_end_is_left_alone(room: Room, demands: Demands) -> None:
    demands.wanted(1)
    assert await room.asked(worker(draining=True), 60) is MoveStep.NOTHING
    assert not demands.asked


async def test_one_of_no_shard_that_is_known_is_left_alone(room: Room, demands: Demands) -> None:
    demands.wanted(1)
    assert await room.asked(worker(shard="elsewhere", moving=True), 60) is MoveStep.NOTHING


async def test_its_age_is_counted_by_each_replica_from_its_first_request_there(room: Room, demands: Demands) -> None:
    """So one whose requests are spread over replicas never seems older than it is."""
    demands.wanted(1)
    other = Room(demands, room.clock)
    await room.asked(worker(), 4)
    assert await other.asked(worker(), 4) is MoveStep.NOTHING
    assert await room.asked(worker(), 2) is MoveStep.BEGIN_MOVE


async def test_not_all_go_for_the_same_job(room: Room, demands: Demands) -> None:
    demands.short(1, 1)
    workers = [worker(f"http:far.{number}@default") for number in range(10)]
    for one in workers:
        room.moves.consider(one, holds=False)
    told: list[str] = []
    for _ in range(8):
        room.clock.now_ms += SECOND_MS
        told += [one.id for one in workers if room.moves.consider(one, holds=False) is MoveStep.BEGIN_MOVE]
        await looked()
        if told:
            break
    assert len(told) == 1


async def test_one_that_was_sent_elsewhere_counts_there_and_gets_there(room: Room, demands: Demands) -> None:
    demands.wanted(1)
    await room.told_after(worker())
    assert await room.moves.shard_in_need(group(), 2, "http:large.1") != "0001"
    assert await room.moves.shard_in_need(group(), 1, "http:far.2") == "0001"


async def test_registrations_keep_nobody_elses_workers_away(room: Room, demands: Demands) -> None:
    assert await room.asked(worker(), 10) is MoveStep.NOTHING
    demands.wanted(1)
    for number in range(200):
        await room.moves.shard_in_need(group("greedy", "*"), 100, f"http:greedy.{number}")
    assert await room.told_after(worker()) <= 2 * SECOND_MS


async def test_those_that_register_at_the_same_instant_spread(room: Room, demands: Demands) -> None:
    demands.held.clear()
    async with asyncio.TaskGroup() as tasks:
        registering = [tasks.create_task(room.moves.shard_in_need(group(), 1, f"http:far.{n}")) for n in range(6)]
        await looked()
        demands.held.set()
    assert sorted(str(each.result()) for each in registering) == sorted(SHARDS * 2)


async def test_who_was_sent_registers_once(room: Room, demands: Demands) -> None:
    demands.wanted(1)
    await room.told_after(worker())
    assert await room.moves.shard_in_need(group(), 1, "http:far.2") == "0001"
    assert await room.moves.shard_in_need(group(), 1, "http:far.3") != "0001"


async def test_an_idle_one_leaves_its_shard_to_others_and_to_nobody_else(room: Room, demands: Demands) -> None:
    me = worker("http:far.5@default")
    demands.now[0] = Demand(0, servers=(me.id,), slots=1)
    assert await room.asked(me, 60) is MoveStep.NOTHING, "it serves it alone"
    demands.now[0] = Demand(0, servers=("http:far.1@default", me.id), slots=2)
    assert await room.asked(me, 60) is MoveStep.BEGIN_MOVE


async def test_many_that_register_together_spread(room: Room) -> None:
    places = []
    for number in range(9):
        id = f"http:far.{number}"
        shard = await room.moves.shard_in_need(group(), 1, id)
        assert shard is not None
        places.append(shard)
    assert sorted(places) == sorted(SHARDS * 3)


async def test_a_registration_waits_for_no_look_that_takes_too_long(
    room: Room, demands: Demands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_moves, "_REGISTRATION_WAITS_S", 0)
    demands.held.clear()
    assert await room.moves.shard_in_need(group(), 1, "http:far.1") is None
    demands.held.set()
    await looked()
    assert await room.moves.shard_in_need(group(), 1, "http:far.1") in SHARDS


async def test_no_shard_that_answers_is_no_shard(room: Room, demands: Demands) -> None:
    demands.now = []
    assert await room.moves.shard_in_need(group(), 1, "http:far.1") is None
    assert await room.asked(worker(), 30) is MoveStep.NOTHING


# What it may cost


async def test_one_picture_is_taken_for_all_workers_of_a_token_that_run_the_same(room: Room, demands: Demands) -> None:
    for number in range(100):
        room.moves.consider(worker(f"http:far.{number}@default"), holds=False)
    room.clock.now_ms += REST_MS
    for number in range(100):
        room.moves.consider(worker(f"http:far.{number}@default"), holds=False)
    await looked()
    assert demands.asked == [LOG]


async def test_looks_go_one_after_the_other_and_tokens_take_turns(room: Room, demands: Demands) -> None:
    greedy = [worker(f"http:g.{n}@default", definitions=[f"d{n}"], registered_by="greedy") for n in range(200)]
    modest = worker(definitions=["mail"], registered_by="modest")
    for one in (*greedy, modest):
        room.moves.consider(one, holds=False)
    room.clock.now_ms += REST_MS
    demands.held.clear()
    for one in (*greedy, modest):
        room.moves.consider(one, holds=False)
    await looked()
    assert len(demands.asked) == 1, "one look at a time"
    demands.held.set()
    for _ in range(300):
        await looked()
    assert frozenset({"mail"}) in demands.asked[:3]
    assert len(demands.asked) <= worker_moves._WANTED_MAX + 2


async def test_a_look_is_followed_by_a_pause(room: Room, demands: Demands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_moves, "_PAUSE_S", 3_600)
    for token in ("one", "two"):
        room.moves.consider(worker(f"http:{token}.1@default", registered_by=token), holds=False)
    room.clock.now_ms += REST_MS
    for token in ("one", "two"):
        room.moves.consider(worker(f"http:{token}.1@default", registered_by=token), holds=False)
    await looked()
    assert len(demands.asked) == 1
    await ended(room.moves)


async def ended(moves: WorkerMoves) -> None:
    assert moves._looking is not None
    moves._looking.cancel()
    await asyncio.wait([moves._looking])


async def test_what_is_kept_has_a_bound(room: Room, demands: Demands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_moves, "_MEMORIES_MAX", 10)
    for number in range(500):
        one = worker(f"http:far.{number}@default", definitions=[f"d{number}"])
        room.moves.consider(one, holds=False)
        room.moves.left(one)
        room.moves.consider(replace(one, id=f"http:near.{number}@default"), holds=False)
        await room.moves.shard_in_need(group("token", f"d{number % 10}"), 1, f"http:new.{number}")
    moves = room.moves
    assert len(moves._expected["token"]) == worker_moves._EXPECTED_MAX
    room.clock.now_ms += 200 * SECOND_MS
    room.moves.consider(worker(), holds=False)
    assert list(moves._workers) == [worker().id]
    assert len(moves._left_at_ms) == 10
    assert not moves._expected


def test_the_clock_is_the_replicas_own(demands: Demands) -> None:
    clock = HandClock()
    wall: Callable[[], Any] = lambda: pytest.fail("the wall clock was read")  # noqa: E731
    clock.wall_ms = wall  # type: ignore[method-assign]
    moves = WorkerMoves(SHARDS, demands, clock)
    assert moves.consider(worker(), holds=True) is MoveStep.NOTHING
    assert MonoMs(clock.now_ms) == clock.mono_ms()
