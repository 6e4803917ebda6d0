"""Where a processor goes: single decisions, and what comes of many over time."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hascheduler.ports.demand import Demand, expecting
from hascheduler.ports.next_shard import (
    BARREN_MS,
    IDLE_MS,
    JITTER_MS_MAX,
    REST_MS,
    SETTLE_MS,
    SPREAD_MS,
    TURN_MS,
    Standing,
    first_shard,
    is_due,
    is_wanted_elsewhere,
    next_shard,
    shard_in_need,
)

NOW_MS = 1_000_000
NONE: Mapping[int, int] = {}


def wanted(shard: int, count: int = 1) -> Demand:
    """Jobs that nobody takes."""
    return Demand(shard, count, count, count)


def short(shard: int, count: int = 1) -> Demand:
    """Jobs that others take, and have no slot for."""
    return Demand(shard, count, 0, count, ("other",), 4)


def served(shard: int, *ids: str) -> Demand:
    return Demand(shard, servers=ids, slots=4 * len(ids))


def idle(
    for_ms: int, *, id: str = "me", since_ms: int = 0, moved: bool = False, barren: Mapping[int, int] = NONE
) -> Standing:
    return Standing(id, 0, since_ms, NOW_MS - for_ms, moved, barren_until_ms=barren)


def busy(since: int, *, id: str = "me", left: Mapping[int, int] = NONE, barren: Mapping[int, int] = NONE) -> Standing:
    return Standing(id, 0, NOW_MS - since, None, True, left, barren)


def goes(standing: Standing, *demands: Demand, jitter_ms: int = 0) -> int | None:
    return next_shard(NOW_MS, standing, demands, jitter_ms)


def test_it_begins_where_jobs_wait_that_nobody_takes() -> None:
    assert first_shard("me", 3, [short(0, 50), served(1), wanted(2)]) == 2


def test_it_begins_where_the_fewest_slots_are_if_all_jobs_are_taken_care_of() -> None:
    assert first_shard("me", 3, [served(0, "a", "b"), served(1, "c"), short(2, 9)]) in (1, 2)
    assert first_shard("me", 2, [served(0, "a", "b"), served(1, "c")]) == 1


@pytest.mark.parametrize("demands", [[], [Demand(shard) for shard in range(4)], [wanted(shard) for shard in range(4)]])
def test_many_that_begin_together_spread(demands: Sequence[Demand]) -> None:
    begun = Counter(first_shard(f"p.{number}", 4, demands) for number in range(200))
    assert sorted(begun) == [0, 1, 2, 3]
    assert min(begun.values()) > 25


def needs(*demands: Demand, left: Mapping[int, int] = NONE, barren: Mapping[int, int] = NONE) -> int | None:
    """Where one that registers over HTTP is of most use."""
    return shard_in_need(NOW_MS, Standing("me", -1, 0, None, True, left, barren), demands)


def test_one_that_registers_over_http_gets_to_where_it_would_be_sent() -> None:
    assert needs(short(0, 300), wanted(1), served(2)) == 1
    assert needs(short(0, 3), short(1, 7), served(2)) == 1
    assert needs(served(0, "a", "b"), served(1, "c"), served(2, "d", "e")) == 1
    assert needs(wanted(0), wanted(1), left={0: 400, 1: 500}) == 0
    assert needs(wanted(0, 99), wanted(1), barren={0: NOW_MS + 1}) == 1
    assert needs() is None


def test_one_that_registers_with_nothing_but_barren_shards_goes_where_the_fewest_slots_are() -> None:
    assert needs(Demand(0, 9, 0, 9, ("a",), 4), wanted(1, 5), barren={0: NOW_MS + 1, 1: NOW_MS + 1}) == 1


def test_what_made_a_busy_one_go_is_over_once_others_take_the_jobs() -> None:
    assert is_wanted_elsewhere(NOW_MS, busy(TURN_MS), [wanted(1)])
    assert not is_wanted_elsewhere(NOW_MS, busy(TURN_MS), [wanted(0), short(1, 99), served(2)])
    assert not is_wanted_elsewhere(NOW_MS, busy(TURN_MS, barren={1: NOW_MS + 1}), [wanted(1)])


def test_what_is_under_way_counts_where_it_is_expected() -> None:
    assert expecting(wanted(1, 9), "b", 4) == Demand(1, 9, 0, 5, ("b",), 4)
    there = Demand(1, 9, 0, 2, ("a", "b"), 8)
    assert expecting(there, "b", 4) == there


def test_an_idle_one_goes_to_the_most_unmet_demand_and_first_to_what_nobody_takes() -> None:
    assert goes(idle(IDLE_MS), short(1, 3), short(2, 7)) == 2
    assert goes(idle(IDLE_MS), short(1, 300), wanted(2)) == 2


def test_an_idle_one_stays_where_all_demand_is_met() -> None:
    assert goes(idle(IDLE_MS), Demand(1, waiting=3, servers=("a",), slots=8), served(0, "b")) is None


def test_one_that_has_only_just_become_idle_stays() -> None:
    assert goes(idle(IDLE_MS - 1), short(1)) is None
    assert goes(idle(IDLE_MS), short(1), jitter_ms=1) is None
    assert goes(idle(IDLE_MS), short(1)) == 1


def test_one_that_has_only_just_come_rests() -> None:
    assert goes(idle(IDLE_MS, since_ms=NOW_MS - REST_MS + 1, moved=True), wanted(1)) is None
    assert goes(idle(IDLE_MS, since_ms=NOW_MS - REST_MS, moved=True), wanted(1)) == 1


def test_a_busy_one_goes_where_nobody_serves_and_not_where_others_have_too_much_to_do() -> None:
    assert goes(busy(TURN_MS), short(1, 1_000)) is None
    assert goes(busy(TURN_MS), short(1, 1_000), wanted(2)) == 2
    assert goes(busy(TURN_MS - 1), wanted(2)) is None


def test_a_busy_one_goes_to_the_shard_that_it_left_the_longest_time_ago() -> None:
    assert goes(busy(TURN_MS, left={1: 500, 2: 400}), wanted(1, 99), wanted(2)) == 2
    assert goes(busy(TURN_MS, left={1: 500, 2: 400}), wanted(1), wanted(2), wanted(3)) == 3


def test_of_several_busy_ones_in_a_shard_the_last_by_id_goes_first() -> None:
    assert goes(busy(TURN_MS, id="c"), served(0, "a", "b"), wanted(1)) == 1
    assert goes(busy(TURN_MS, id="a"), served(0, "b", "c"), wanted(1)) is None


def test_one_that_serves_its_shard_alone_lets_those_go_first_that_share_one() -> None:
    assert goes(busy(TURN_MS), served(2, "a", "b"), wanted(1)) is None
    assert goes(busy(2 * TURN_MS), served(2, "a", "b"), wanted(1)) == 1


def test_a_shard_whose_jobs_did_not_come_is_passed_over_for_a_while() -> None:
    assert goes(idle(IDLE_MS, barren={1: NOW_MS + 1}), wanted(1)) is None
    assert goes(idle(IDLE_MS, barren={1: NOW_MS}), wanted(1)) == 1
    assert goes(busy(TURN_MS, barren={1: NOW_MS + 1}), wanted(1), wanted(2)) == 2


@pytest.mark.parametrize("at_work", [True, False])
def test_of_those_that_started_at_one_moment_in_one_shard_one_goes_soon_to_an_empty_one(*, at_work: bool) -> None:
    """Also a busy one, and where jobs wait by now."""

    def after(ms: int, *, moved: bool = False) -> Standing:
        return Standing("me", 0, NOW_MS - ms, None if at_work else NOW_MS - ms, moved)

    for empty in served(1), wanted(1):
        assert goes(after(SETTLE_MS), served(0, "another"), empty) == 1
        assert goes(after(SETTLE_MS), served(0, "z"), served(1)) is None, "one stays"
        assert goes(after(SETTLE_MS), served(0, "another"), served(1, "b")) is None
        assert goes(after(SETTLE_MS), served(0), served(1)) is None, "nobody else is here"
    assert goes(after(SETTLE_MS - 1), served(0, "another"), served(1)) is None
    assert goes(after(SETTLE_MS, moved=True), served(0, "another"), served(1)) is None, (
        "it has come to where it is needed"
    )


def test_an_idle_one_leaves_a_shard_to_others_for_one_that_is_empty() -> None:
    assert goes(idle(SPREAD_MS), served(0, "another"), served(1)) == 1
    assert goes(idle(SPREAD_MS), served(0, "z"), served(1)) is None, "one stays"
    assert goes(idle(SPREAD_MS), served(0), served(1)) is None, "nobody else is here"


@given(st.integers(0, 60_000), st.none() | st.integers(0, 60_000), st.booleans(), st.integers(0, JITTER_MS_MAX))
def test_without_a_reason_to_look_no_demand_makes_it_go(
    here_ms: int, idle_ms: int | None, moved: bool, jitter_ms: int
) -> None:
    since = None if idle_ms is None else NOW_MS - min(idle_ms, here_ms)
    standing = Standing("me", 0, NOW_MS - here_ms, since, moved)
    if not is_due(NOW_MS, standing, jitter_ms):
        assert goes(standing, wanted(1), short(2, 9), served(0, "a"), jitter_ms=jitter_ms) is None


# Over time

Work = Literal["endless", "none", "stuck"]
"""A shard has jobs for all, or none, or jobs that wait for something else than slots."""


@dataclass
class Roamer:
    id: str
    at: int
    since_ms: int = 0
    moved: bool = False
    left_at_ms: dict[int, int] = field(default_factory=dict)
    barren_until_ms: dict[int, int] = field(default_factory=dict)
    jitter_ms: int = 0


@dataclass(frozen=True)
class Went:
    at_ms: int
    id: str
    to: int


class Shards:
    """Processors that look once a second, each at moments of its own."""

    def __init__(self, work: Sequence[Work], processors: int, seed: int) -> None:
        self.work = work
        self.random = Random(seed)  # replayed by its seed
        self.roamers: list[Roamer] = []
        self.went: list[Went] = []
        for number in range(processors):
            id = f"p.{number}"
            self.roamers.append(Roamer(id, first_shard(id, len(work), self._demands(id)), jitter_ms=self._jitter()))

    def run(self, until_ms: int) -> None:
        looks = [(self.random.randrange(1_000), index) for index in range(len(self.roamers))]
        for second in range(until_ms // 1_000):
            for offset, index in sorted(looks):
                self._look(self.roamers[index], 1_000 * second + offset)

    def _look(self, one: Roamer, now_ms: int) -> None:
        at_work = self.work[one.at] == "endless"
        standing = Standing(
            one.id,
            one.at,
            one.since_ms,
            None if at_work else one.since_ms,
            one.moved,
            one.left_at_ms,
            one.barren_until_ms,
        )
        to = next_shard(now_ms, standing, self._demands(one.id), one.jitter_ms)
        if to is None:
            return
        if self.work[one.at] == "stuck":
            one.barren_until_ms[one.at] = now_ms + BARREN_MS
        one.left_at_ms[one.at] = now_ms
        one.at, one.since_ms, one.moved, one.jitter_ms = to, now_ms, True, self._jitter()
        self.went.append(Went(now_ms, one.id, to))

    def _demands(self, id: str) -> list[Demand]:
        found = []
        for shard, work in enumerate(self.work):
            others = tuple(sorted(one.id for one in self.roamers if one.at == shard and one.id != id))
            waiting = 0 if work == "none" else 100
            # Those that are at work there have no slot left; of those that wait for nothing all are free.
            free = 4 * len(others) if work != "endless" else 0
            found.append(
                Demand(shard, waiting, 0 if others else waiting, max(0, waiting - free), others, 4 * len(others))
            )
        return found

    def _jitter(self) -> int:
        return self.random.randrange(JITTER_MS_MAX)


@given(st.integers(2, 8), st.integers(1, 7), st.integers(0, 10_000))
def test_nothing_starves_with_fewer_processors_than_shards(shards: int, processors: int, seed: int) -> None:
    world = Shards(["endless"] * shards, min(processors, shards - 1), seed)
    # A processor's turn, and the wait for those that should go before it, in each shard; twice, as they may cross.
    longest_ms = 2 * shards * (TURN_MS + 5 * 3_000 + JITTER_MS_MAX + 1_000)
    world.run(3 * longest_ms)
    for shard in range(shards):
        visits = [went.at_ms for went in world.went if went.to == shard]
        gaps = [later - earlier for earlier, later in zip([0, *visits], [*visits, 3 * longest_ms], strict=True)]
        assert max(gaps) <= longest_ms or any(one.at == shard for one in world.roamers), f"shard {shard} starves"


@given(st.integers(1, 6), st.integers(0, 6), st.sampled_from(["endless", "none"]), st.integers(0, 10_000))
def test_with_enough_processors_each_shard_gets_one_and_then_nobody_moves(
    shards: int, more: int, work: Work, seed: int
) -> None:
    world = Shards([work] * shards, shards + more, seed)
    world.run(600_000)
    assert {one.at for one in world.roamers} == set(range(shards))
    assert not [went for went in world.went if went.at_ms > 300_000]


@given(
    st.lists(st.sampled_from(["endless", "none", "stuck"]), min_size=2, max_size=6),
    st.integers(1, 8),
    st.integers(0, 10_000),
)
def test_jobs_that_wait_for_something_else_than_slots_keep_nobody_on_the_move(
    work: list[Work], processors: int, seed: int
) -> None:
    world = Shards(work, processors, seed)
    world.run(600_000)
    for one in world.roamers:
        to_stuck = Counter(went.to for went in world.went if went.id == one.id and work[went.to] == "stuck")
        assert all(count <= 600_000 // BARREN_MS + 1 for count in to_stuck.values())
