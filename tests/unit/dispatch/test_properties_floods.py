"""How long a queued job can be held back by a flood of on-demand ones, to the second: neither longer, nor much less."""

import pytest

from tests.unit.dispatch.test_properties import LEAD_MS, STEP_MS
from tests.unit.simulate.scenarios import job, outcome_of

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


@pytest.mark.parametrize("gap", [-3, 0])
def test_without_an_end_to_the_bonus_the_flood_holds_it_back_for_ever(gap: int) -> None:
    """What the published formula does, and why the bonus has an end: the flood falls behind, so it ages, and faster."""
    flood = [job(f"o{n}", TAKES_S, mode="on_demand", priority=5 + gap, submit_at=5 * n) for n in range(3_000)]
    outcome = outcome_of(*flood, job("q", 1, submit_at=0, priority=5), policy="affinity", until=15_000)
    assert "q" in outcome.pending
