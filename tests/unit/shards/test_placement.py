"""Where leaders should be: each replica leaves the first try to those before it, and hands over what is another's."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from hascheduler.election.preferences import preferred_leaders
from hascheduler.schema.replica import ReplicaStatus
from hascheduler.shards.placement import RANK_DELAY_MS, LeaderPlacement
from tests.unit.daemon.doubles import HandClock
from tests.unit.shards.test_hosting import status

SHARDS, NAMES = ("default", "0001", "0002", "0003"), ("a", "b", "c")
AFTER_MS, PAUSE_MS = 30_000, 5_000


@dataclass
class Shard:
    scheduler: str
    replicas: list[ReplicaStatus] = field(default_factory=lambda: [status(name) for name in NAMES])
    leads: bool = False
    delay_ms: int = 0
    expects_lease: bool = False
    handed_over: int = 0
    lease_holder: str = ""
    is_hosted: bool = True

    @property
    def view(self) -> Any:
        return SimpleNamespace(leading=self.leads)

    def live_replicas(self) -> Sequence[ReplicaStatus]:
        return self.replicas

    def leave_first_try_ms(self, delay_ms: int) -> None:
        self.delay_ms = delay_ms

    def expect_lease(self, *, expected: bool) -> None:
        self.expects_lease = expected

    async def hand_over(self) -> None:
        self.leads, self.handed_over = False, self.handed_over + 1


class Room:
    def __init__(self, name: str = "a", after_ms: int = AFTER_MS, candidates: int = 0) -> None:
        self.clock, self.shards = HandClock(0), [Shard(shard) for shard in SHARDS]
        self.placement = LeaderPlacement(
            SHARDS, self.hosted, name=name, clock=self.clock, after_ms=after_ms, candidates=candidates
        )

    def hosted(self) -> Any:
        return [shard for shard in self.shards if shard.is_hosted]

    async def at(self, now: int) -> int:
        """How many shards were handed over by then."""
        self.clock.now = now
        await self.placement.turn()
        return sum(shard.handed_over for shard in self.shards)


ORDERS = preferred_leaders(SHARDS, NAMES)
OTHERS = [index for index, shard in enumerate(SHARDS) if ORDERS[shard][0] != "a"]


@pytest.mark.parametrize("is_held", [False, True])
async def test_the_first_try_at_a_lease_is_left_to_those_before_it_but_its_holder(*, is_held: bool) -> None:
    room = Room("b")
    for shard in room.shards:
        shard.lease_holder = f"{ORDERS[shard.scheduler][0]}.1" if is_held else ""
    await room.at(0)
    before = [ORDERS[name].index("b") for name in SHARDS]
    assert [shard.delay_ms for shard in room.shards] == [max(rank - is_held, 0) * RANK_DELAY_MS for rank in before]


async def test_who_is_handed_a_shard_expects_its_lease_until_it_holds_it() -> None:
    for after_ms in (AFTER_MS, 0):
        room = Room(after_ms=after_ms)
        own = [shard for index, shard in enumerate(room.shards) if index not in OTHERS]
        for shard in room.shards:
            shard.lease_holder = "b.1"
        await room.at(0)
        assert [shard.expects_lease for shard in room.shards] == [
            shard in own and after_ms > 0 for shard in room.shards
        ]
        for shard in own:
            shard.lease_holder = "a.1"
        await room.at(1)
        assert not any(shard.expects_lease for shard in room.shards)


async def test_a_shard_that_was_taken_a_moment_ago_stays_for_a_while_and_all_stay_if_the_operator_says_so() -> None:
    for after_ms, handed_over in ((AFTER_MS, 1), (0, 0)):
        room = Room(after_ms=after_ms)
        await room.at(0)
        await room.at(2 * AFTER_MS)
        room.shards[OTHERS[0]].leads = True
        assert await room.at(2 * AFTER_MS + 1) == await room.at(3 * AFTER_MS) == 0
        assert await room.at(3 * AFTER_MS + 1) == handed_over


async def test_a_replica_that_is_not_ready_or_gone_is_not_left_anything() -> None:
    room = Room("b")
    for shard in room.shards:
        shard.replicas = [status("a", ready=False), status("b")]
    await room.at(0)
    assert [shard.delay_ms for shard in room.shards] == [0] * 4


async def test_what_another_should_lead_is_handed_over_once_that_has_been_ready_for_long_and_one_after_the_other() -> (
    None
):
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


async def test_one_that_was_not_ready_in_between_waits_anew() -> None:
    room = Room()
    room.shards[OTHERS[0]].leads = True
    await room.at(0)
    ready = room.shards[OTHERS[0]].replicas
    room.shards[OTHERS[0]].replicas = [status(name, ready=name == "a") for name in NAMES]
    await room.at(AFTER_MS - 10)
    room.shards[OTHERS[0]].replicas = ready
    assert await room.at(AFTER_MS) == await room.at(2 * AFTER_MS - 1) == 0
    assert await room.at(2 * AFTER_MS) == 1


async def test_a_replica_that_comes_and_goes_costs_so_many_moves_in_ten_minutes_and_no_more() -> None:
    room = Room(after_ms=1)
    room.shards[OTHERS[0]].leads = True
    await room.at(0)
    moved = 0
    for second in range(1, 590):
        room.shards[OTHERS[0]].leads = True
        moved = await room.at(second * 1_000)
    assert moved == 60
    room.shards[OTHERS[0]].leads = True
    assert await room.at(607_000) == 61


async def test_of_few_candidates_one_leads_and_who_is_none_hands_over() -> None:
    orders = preferred_leaders(SHARDS, NAMES, 2)
    stranger, index = next((name, index) for index in (1, 2, 3) for name in NAMES if name not in orders[SHARDS[index]])
    room = Room(stranger, candidates=2)
    shard = room.shards[index]
    shard.leads, shard.lease_holder = True, f"{stranger}.1"
    assert await room.at(0) == 0
    assert await room.at(AFTER_MS) == shard.handed_over == 1
    assert shard.delay_ms == 2 * RANK_DELAY_MS, "the candidates try first"


async def test_a_shard_that_is_not_hosted_here_is_left_alone_and_waits_anew_once_it_is_again() -> None:
    room = Room()
    shard = room.shards[OTHERS[0]]
    assert shard.scheduler != SHARDS[0]
    shard.leads = True
    await room.at(0)
    shard.is_hosted, shard.delay_ms = False, -1
    await room.at(AFTER_MS)
    assert (shard.handed_over, shard.delay_ms) == (0, -1)
    shard.is_hosted = True
    assert await room.at(AFTER_MS + 1) == await room.at(2 * AFTER_MS) == 0
    assert await room.at(2 * AFTER_MS + 1) == 1
