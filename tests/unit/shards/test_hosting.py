"""Which shards a process hosts, and which it should lead: little comes and goes with replicas."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Self

import pytest
from structlog.contextvars import get_contextvars

from hascheduler.election.preferences import candidates_of, preferred_leaders
from hascheduler.errors import StoreUnavailable
from hascheduler.schema.replica import ReplicaStatus
from hascheduler.shards.hosting import ALONE_AFTER_MS, READING_MAX, HostedShard, Hosting
from hascheduler.shards.placement import RANK_DELAY_MS, LeaderPlacement
from hascheduler.telemetry.health import ABOUT_TO_END, NOT_LEADING, NOT_TURNING
from tests.factories import make_replica
from tests.unit.daemon.doubles import HandClock

NAMES = ("a", "b", "c", "d")
SHARDS = ["default", *(f"{index:04d}" for index in range(1, 9))]
BEGIN_MS, LEAVE_MS = 5_000, 30_000


class Replica:
    """One that hosts a shard, as far as these tests go."""

    def __init__(self, shard: str, live: Sequence[ReplicaStatus], *, ready: bool) -> None:
        self.scheduler = shard
        self.http_endpoint = ""
        self.live = live
        self.view: Any = SimpleNamespace(
            ready=ready, leading=False, alive=True, stopping=False, unready_reason="" if ready else "it reads"
        )
        self.stopped = asyncio.Event()
        self.has_run = False

    async def run(self) -> None:
        assert self.http_endpoint == "a:80"
        assert get_contextvars()["shard"] == self.scheduler
        await self.stopped.wait()
        self.has_run = True

    def stop(self) -> None:
        self.stopped.set()

    def forget(self) -> None:
        self.view = None

    def is_out_of_touch(self) -> bool:
        return True

    def live_replicas(self) -> Sequence[ReplicaStatus]:
        return self.live


def view_of(replica: Any) -> Any:
    return replica.view


def status(name: str, *, ready: bool = True) -> ReplicaStatus:
    return make_replica(f"{name}.1", name=name, http_endpoint=f"{name}:80", ready=ready)


class Member:
    """The replica a. What it sees of each shard's ``replicas`` is set by hand: that of the home by its mirror,
    and that of the others by their mirrors, or by a read of their databases."""

    def __init__(self, most: int = 2, *, ready: bool = True) -> None:
        self.clock = HandClock(0)
        self.ready = ready
        self.seen: dict[str, list[ReplicaStatus]] = {shard: [] for shard in SHARDS}
        self.reads: list[str] = []
        self.is_silent = False
        self.shards = [self._shard(index, shard) for index, shard in enumerate(SHARDS)]
        self.hosting = Hosting(self.shards, self._read, name="a", most=most, clock=self.clock, after_ms=LEAVE_MS)
        home = view_of(self.shards[0].replica)
        home.ready, home.unready_reason = True, ""

    def _shard(self, index: int, name: str) -> HostedShard:
        def make(_: object) -> Any:
            return Replica(name, self.seen[name], ready=self.ready), f"services of {name}"

        liveness: Any = SimpleNamespace(silence_while=lambda _: None)
        return HostedShard(index, name, make, liveness)

    async def _read(self, index: int) -> set[str]:
        self.reads.append(SHARDS[index])
        if self.is_silent:
            raise StoreUnavailable("no answer")
        return {status.id for status in self.seen[SHARDS[index]] if status.ready}

    async def turn(self) -> None:
        for shard in await self.hosting.turn():
            shard.begin()
        for shard in self.shards[1:]:
            replica: Any = shard.replica
            if replica is not None and replica.stopped.is_set():
                shard.gone()


@pytest.mark.parametrize(
    ("there", "begins_ms"),
    [
        ([], ALONE_AFTER_MS),
        ([status("killed")], ALONE_AFTER_MS),
        ([status("b", ready=False)], ALONE_AFTER_MS),
        ([status("b")], BEGIN_MS),
        (None, BEGIN_MS),
    ],
)
async def test_a_shard_that_no_ready_replica_hosts_is_begun_with_sooner(
    there: list[ReplicaStatus] | None, begins_ms: int
) -> None:
    """The record of a killed replica is still in the shard's database, and its heartbeats in the home have stopped. A
    database that does not answer (None) may show others."""
    member, shard = Member(), SHARDS[1]
    member.seen[SHARDS[0]][:] = [status("a"), status("b")]
    member.seen[shard][:] = there or ()
    member.is_silent = there is None
    while shard not in {each.name for each in await member.hosting.turn()}:
        member.clock.now += 500
    assert member.clock.now == begins_ms
    assert shard in member.reads


async def test_it_leaves_only_once_all_candidates_are_ready_in_that_shard_itself() -> None:
    candidates = candidates_of(SHARDS, NAMES, 2)
    shard = next(shard for shard in SHARDS[1:] if "a" not in candidates[shard])
    member = Member()
    place = member.shards[SHARDS.index(shard)]
    place.begin()
    member.seen[SHARDS[0]][:] = map(status, NAMES)
    first, second = candidates[shard]
    for there in ([], [status(first)], [status(first), status(second, ready=False)]):
        member.seen[shard][:] = [status("a"), *there]
        member.clock.now += 2 * LEAVE_MS
        await member.turn()
        assert place.is_ready
    member.seen[shard][:] = [status("a"), status(first), status(second)]
    member.seen[SHARDS[0]].clear()
    view_of(member.hosting.home).ready = False
    await member.turn()
    assert place.is_ready, "it sees nothing"
    member.seen[SHARDS[0]][:] = map(status, NAMES)
    view_of(member.hosting.home).ready = True
    assert place.services == f"services of {shard}"  # type: ignore[comparison-overlap]
    await member.hosting.turn()
    assert place.services is None
    assert place.replica is not None, "it ends in good order"
    await member.turn()
    assert place.replica is None


async def test_few_snapshots_are_read_at_once_and_it_is_ready_once_it_hosts_all_that_it_should() -> None:
    member = Member(ready=False)
    assert member.hosting.not_ready() == "it does not know yet which shards to host"
    for _ in range(20):
        member.clock.now += 500
        await member.turn()
    begun = [shard for shard in member.shards[1:] if shard.replica is not None]
    assert len(begun) == READING_MAX == len(SHARDS) - 1
    assert member.hosting.not_ready() == "shard 0001: it is not ready here yet"
    assert {shard.services for shard in begun} == {None}, "others are asked until the mirror is complete"
    for shard in begun:
        view_of(shard.replica).ready = True
    assert not member.hosting.not_ready()
    view_of(begun[0].replica).ready = False
    assert not member.hosting.not_ready(), "one that falls behind answers for itself"


async def test_without_candidates_all_are_hosted_from_the_start_and_answer_from_the_start() -> None:
    member = Member(most=0, ready=False)
    answering: list[Any] = [shard.services for shard in member.shards]
    assert answering == [f"services of {name}" for name in SHARDS]
    assert member.hosting.not_ready() == "shard 0001: it is not ready here yet"
    assert not await member.hosting.turn()
    for replica in member.hosting.replicas:
        view_of(replica).ready = True
    assert not member.hosting.not_ready()
    view_of(member.hosting.home).unready_reason = "its stream is silent"
    assert member.hosting.not_ready() == "its stream is silent"
    member.hosting.stop()
    assert member.hosting.not_ready() == ABOUT_TO_END


@pytest.mark.parametrize("most", [0, 2])
async def test_what_runs_at_the_end_ends_in_good_order(most: int) -> None:
    member = Member(most)
    member.hosting.http_endpoint = "a:80"
    running = asyncio.create_task(member.hosting.run())
    async with asyncio.timeout(10):
        while not all(shard.is_ready for shard in member.shards):
            member.clock.now += BEGIN_MS
            await asyncio.sleep(0.05)
        member.hosting.stop()
        await running
    replicas: list[Any] = [shard.replica for shard in member.shards]
    assert all(replica.has_run for replica in replicas)


async def test_a_process_lives_while_all_do_and_leads_where_any_does() -> None:
    hosting = Member(most=0).hosting
    assert (hosting.not_alive(), hosting.not_leading()) == ("", NOT_LEADING)
    view_of(hosting.replicas[3]).leading, view_of(hosting.replicas[5]).alive = True, False
    assert (hosting.not_alive(), hosting.not_leading()) == (NOT_TURNING, "")


# Where leaders should be


FOUR, THREE = ("default", "0001", "0002", "0003"), ("a", "b", "c")
AFTER_MS, PAUSE_MS = 30_000, 5_000


@dataclass
class Shard:
    scheduler: str
    replicas: list[ReplicaStatus] = field(default_factory=lambda: [status(name) for name in THREE])
    leads: bool = False
    delay_ms: int = 0
    expects_lease: bool = False
    handed_over: int = 0
    lease_holder: str = ""

    @property
    def view(self) -> Any:
        return SimpleNamespace(leading=self.leads)

    @property
    def leader(self) -> Self:
        return self

    feeder = leader

    def live_replicas(self) -> Sequence[ReplicaStatus]:
        return self.replicas

    def leave_first_try_ms(self, delay_ms: int) -> None:
        self.delay_ms = delay_ms

    async def hand_over(self) -> None:
        self.leads, self.handed_over = False, self.handed_over + 1


class Room:
    def __init__(self, name: str = "a", candidates: int = 0) -> None:
        self.clock, self.shards = HandClock(0), [Shard(shard) for shard in FOUR]
        shards: Any = self.shards
        self.placement = LeaderPlacement(
            FOUR, lambda: shards, name=name, clock=self.clock, after_ms=AFTER_MS, candidates=candidates
        )

    async def at(self, now: int) -> int:
        """How many shards were handed over by then."""
        self.clock.now = now
        await self.placement.turn()
        return sum(shard.handed_over for shard in self.shards)


ORDERS = preferred_leaders(FOUR, THREE)
OTHERS = [index for index, shard in enumerate(FOUR) if ORDERS[shard][0] != "a"]


@pytest.mark.parametrize("is_held", [False, True])
async def test_the_first_try_at_a_lease_is_left_to_those_before_it_but_its_holder(*, is_held: bool) -> None:
    room = Room("b")
    for shard in room.shards:
        shard.lease_holder = f"{ORDERS[shard.scheduler][0]}.1" if is_held else ""
    await room.at(0)
    before = [ORDERS[name].index("b") for name in FOUR]
    assert [shard.delay_ms for shard in room.shards] == [max(rank - is_held, 0) * RANK_DELAY_MS for rank in before]


async def test_what_another_should_lead_is_handed_over_once_it_was_ready_for_long_and_one_by_one() -> None:
    room = Room()
    for shard in room.shards:
        shard.leads = True
    assert await room.at(0) == await room.at(AFTER_MS - 1) == 0
    for count in range(1, len(OTHERS) + 1):
        now = AFTER_MS + (count - 1) * PAUSE_MS
        assert await room.at(now) == count
        assert await room.at(now + PAUSE_MS - 1) == count
    assert await room.at(10 * AFTER_MS) == len(OTHERS)
    assert [shard.leads for shard in room.shards] == [index not in OTHERS for index in range(4)]


async def test_of_few_candidates_one_leads_and_who_is_none_hands_over() -> None:
    orders = preferred_leaders(FOUR, THREE, 2)
    stranger, index = next((name, index) for index in (1, 2, 3) for name in THREE if name not in orders[FOUR[index]])
    room = Room(stranger, candidates=2)
    shard = room.shards[index]
    shard.leads, shard.lease_holder = True, f"{stranger}.1"
    assert await room.at(0) == 0
    assert await room.at(AFTER_MS) == shard.handed_over == 1
    assert shard.delay_ms == 2 * RANK_DELAY_MS, "the candidates try first"
