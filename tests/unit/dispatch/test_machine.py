"""Everything at once, by chance, and what the policies promise on random loads: no job starves, shares are fair."""

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from hascheduler.simulate.run import JobRecord, RunOutcome
from tests.tiers import examples, in_tier
from tests.unit.dispatch.chance import Seeded
from tests.unit.dispatch.world import World
from tests.unit.simulate.scenarios import job, outcome_of, processor

T = TypeVar("T")


class Drawn:
    """Chance that Hypothesis can shrink."""

    def __init__(self) -> None:
        self.data: st.DataObject | None = None

    def among(self, choices: Sequence[T]) -> T:
        assert self.data is not None
        return self.data.draw(st.sampled_from(choices))


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.chance = Drawn()
        self.world = World(self.chance)

    @rule(data=st.data())
    def act(self, data: st.DataObject) -> None:
        self.chance.data = data
        self.world.act()

    def teardown(self) -> None:
        self.world.heal()


Machine.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None, print_blob=True)
TestMachine = Machine.TestCase


@given(st.integers(0, 2**32))
@settings(max_examples=examples(60))
def test_whatever_happens_nothing_is_done_twice_and_in_the_end_nothing_is_left_undone(seed: int) -> None:
    World(Seeded(seed)).live(300)


@given(st.integers(0, 2**32))
@settings(max_examples=examples(30))
def test_nor_where_fires_make_several_jobs_each_of_which_later_fires_wait_for(seed: int) -> None:
    world = World(Seeded(seed))
    world.timetable.makes_graphs = True
    world.live(300)


STEP_MS = 64_000
"""By so much later may a job arrive, for each step of priority that it has more, and still go first."""
LEAD_MS = 1_280_000
"""And so much an on-demand job before a queued one."""


def overtakings(outcome: RunOutcome) -> list[tuple[JobRecord, JobRecord]]:
    """All (overtaken, overtaker): the second came later and started earlier."""
    by_start = sorted((each for each in outcome.jobs if each.attempts), key=lambda each: each.attempts[0].order)
    return [
        (late, early)
        for n, early in enumerate(by_start)
        for late in by_start[n + 1 :]
        if late.job.submit_at_ms < early.job.submit_at_ms
    ]


def bound_ms(overtaken: JobRecord, overtaker: JobRecord) -> int:
    """By how much later the overtaker may have come: strictly less than this."""
    bound = STEP_MS * (overtaker.job.priority - overtaken.job.priority)
    modes = (overtaken.job.mode, overtaker.job.mode)
    return bound + (LEAD_MS if modes == ("queued", "on_demand") else 0)


@pytest.mark.parametrize("seed", range(in_tier(check=4, test=10)))
def test_a_job_is_overtaken_only_by_those_that_come_soon_enough_after_it(seed: int) -> None:
    chance = Random(seed)
    load = [
        job(
            f"j{n}", chance.choice((5, 30, 60)), priority=chance.randrange(11), submit_at=chance.randrange(3_000),
            mode=chance.choice(("queued", "queued", "on_demand")),
        )
        for n in range(150)
    ]  # fmt: skip
    outcome = outcome_of(*load, policy=["score"])
    assert len(outcome.completed) == len(load)
    found = overtakings(outcome)
    assert found
    for overtaken, overtaker in found:
        modes = (overtaken.job.mode, overtaker.job.mode)
        if modes != ("on_demand", "queued"):  # that the bonus stops growing is bound by nothing but the other's age
            assert overtaker.job.submit_at_ms - overtaken.job.submit_at_ms < bound_ms(overtaken, overtaker), modes


@pytest.mark.parametrize("seed", range(in_tier(check=3, test=6)))
def test_every_lane_with_work_progresses_by_its_weight(seed: int) -> None:
    chance = Random(seed)
    weights = {name: chance.randint(1, 4) for name in ("a", "b", "c")}
    load = [job(f"{name}{n}", 10, lane=name) for name in weights for n in range(150)]
    outcome = outcome_of(
        *load,
        policy=chance.choice(("swimlanes", "balanced")),
        lanes={name: {"weight": weight} for name, weight in weights.items()},
        processors=[processor("p", slots=2 * sum(weights.values()))],
        until=55,
    )
    running = Counter(each.job.lane for each in outcome.jobs if each.is_running)
    assert running == {name: 2 * weight for name, weight in weights.items()}


@pytest.mark.parametrize("seed", range(in_tier(check=3, test=6)))
def test_keys_with_equal_demand_are_never_apart_by_more_than_one_job(seed: int) -> None:
    chance = Random(seed)
    keys = [f"k{n}" for n in range(chance.randint(2, 5))]
    costs = {"small": 2, "large": 7}
    load = [
        job(f"{key}-{n}", chance.choice((3, 8)), definition=chance.choice(sorted(costs)), fairness_key=key)
        for n in range(60)
        for key in keys
    ]
    outcome = outcome_of(
        *load,
        policy="fair",
        learn_cost=False,
        definitions={name: {"default_cost": cost} for name, cost in costs.items()},
        processors=[processor("p", slots=chance.randint(1, 4))],
        until=200,
    )
    charged: Counter[str] = Counter(dict.fromkeys(keys, 0))
    fairness_keys = {each.job.id: each.job.fairness_key for each in outcome.jobs}
    definitions = {each.job.id: each.job.definition for each in outcome.jobs}
    for attempt in outcome.attempts:
        charged[fairness_keys[attempt.job]] += 1_000 * costs[definitions[attempt.job]]
        assert max(charged.values()) - min(charged.values()) <= 1_000 * max(costs.values())
    assert len(outcome.attempts) > 30


# How long a queued job can be held back by a flood of on-demand ones, to the second: neither longer, nor much less

EVERY_MS, TAKES_S = 5_000, 10
"""One slot, so they come at twice the capacity."""


@pytest.mark.parametrize("preset", ["balanced", "affinity"])
@pytest.mark.parametrize("gap", [-3, -1, 0, 1, 5])
def test_a_queued_job_is_overtaken_by_those_that_come_within_its_bound_and_by_no_later_one(
    preset: str, gap: int
) -> None:
    """The first of the flood comes with it, and each has ``gap`` more priority."""
    bound_ms = LEAD_MS + STEP_MS * gap
    count = 3 * bound_ms // EVERY_MS
    flood = [
        job(f"o{n}", TAKES_S, mode="on_demand", priority=5 + gap, submit_at=EVERY_MS * n / 1_000) for n in range(count)
    ]
    outcome = outcome_of(
        *flood, job("q", 1, submit_at=0, priority=5), policy=preset, on_demand_bonus_max=20_480_000,
        until=EVERY_MS * count // 1_000,
    )  # fmt: skip
    before = []
    for attempt in outcome.attempts:
        if attempt.job == "q":
            break
        before.append(attempt.job)
    else:
        pytest.fail("it never started")
    latest_ms = max(record.job.submit_at_ms for record in outcome.jobs if record.job.id in set(before))
    assert bound_ms - 2 * EVERY_MS <= latest_ms < bound_ms
