"""Whether the promises about overtaking held, and that a broken one is seen."""

from dataclasses import replace
from typing import Any

import pytest

from hascheduler.simulate.outcome import JobRecord, RunOutcome, SimulatedAttempt
from hascheduler.simulate.overtaking import Closest, overtakes, promises
from tests.unit.simulate.scenarios import job, outcome_of


def dispatched_as(order: str, *jobs: dict[str, Any], **rest: object) -> RunOutcome:
    """As if the jobs, named by one letter each, had been dispatched in that order, a second apart."""
    outcome = outcome_of(*jobs, processors=[], **rest)
    records = {record.job.id: record for record in outcome.jobs}
    attempts = [SimulatedAttempt(id, "p", n, 1_000_000 + n * 1_000, None, False, 0) for n, id in enumerate(order)]
    for attempt in attempts:
        records[attempt.job] = replace(records[attempt.job], attempts=(attempt,))
    found: tuple[JobRecord, ...] = tuple(records.values())
    return replace(outcome, jobs=found, attempts=tuple(attempts))


@pytest.mark.parametrize(
    ("gap", "after", "held"),
    [(1, 63.999, True), (1, 64, False), (5, 319.999, True), (5, 320, False), (0, 0.001, False)],
)
def test_within_a_mode_64_seconds_for_each_step_of_priority(gap: int, after: float, held: bool) -> None:
    jobs = (job("a", priority=2), job("b", priority=2 + gap, submit_at=after))
    within, past = promises(dispatched_as("ba", *jobs, policy="affinity"))
    assert (within.applies, within.held) == (True, held)
    assert within.closest == Closest("a", "b", round(after * 1_000), gap * 64_000)
    assert not past.applies  # the published bonus grows for ever


@pytest.mark.parametrize(("gap", "after", "held"), [(0, 1_279.999, True), (0, 1_280, False), (-2, 1_152, False)])
def test_past_queued_jobs_1280_seconds_more(gap: int, after: float, held: bool) -> None:
    jobs = (job("q", priority=5), job("o", priority=5 + gap, submit_at=after, mode="on_demand"))
    within, past = promises(dispatched_as("oq", *jobs, policy=["score"]))
    assert (past.applies, past.held) == (True, held)
    assert within.closest is None


def test_a_job_that_never_starts_is_overtaken_by_all_that_do() -> None:
    jobs = (job("a"), job("b", submit_at=1))
    within, _ = promises(dispatched_as("b", *jobs, policy="affinity"))
    assert not within.held


@pytest.mark.parametrize("policy", ["fair", "swimlanes", ["tier", "aged_priority", "score"]])
def test_without_a_score_nothing_is_promised(policy: object) -> None:
    jobs = (job("a"), job("b", submit_at=1))
    assert not any(promise.applies for promise in promises(dispatched_as("ba", *jobs, policy=policy)))


@pytest.mark.parametrize(
    ("policy", "differing", "is_one_flow"),
    [
        ("affinity", {"fairness_key": "k"}, True),
        ("affinity", {"lane": "l"}, True),
        ("affinity", {"tenant": "t"}, False),
        ("affinity", {"definition": "y"}, False),
        ("affinity", {"target": "other"}, True),
        ("balanced", {"fairness_key": "k"}, False),
        ("balanced", {"lane": "l"}, False),
        ("balanced", {}, True),
    ],
)
def test_only_within_a_flow(policy: str, differing: dict[str, object], is_one_flow: bool) -> None:
    jobs = (job("a"), {**job("b", submit_at=1), **differing})
    outcome = dispatched_as("ba", *jobs, policy=policy, definitions={"x": {}, "y": {}})
    assert promises(outcome)[0].held is not is_one_flow


def test_jobs_that_exclude_each_other_are_a_flow_for_one_target_only() -> None:
    def held(target: str) -> bool:
        jobs = (job("a", target="t"), job("b", submit_at=1, target=target))
        return promises(dispatched_as("ba", *jobs, policy="affinity", definitions={"x": {"conflict_group": "g"}}))[
            0
        ].held

    assert held("other")
    assert not held("t")


def test_a_lane_of_its_own_policy_is_judged_by_that() -> None:
    def promised(lane: str) -> bool:
        jobs = (job("a", lane=lane), job("b", submit_at=1, lane=lane))
        outcome = dispatched_as("ba", *jobs, policy="swimlanes", lanes={"scored": {"policy": "affinity"}})
        return not promises(outcome)[0].held

    assert promised("scored")
    assert not promised("default")


def test_every_overtaking_is_counted() -> None:
    jobs = [job(name, submit_at=n) for n, name in enumerate("abcd")]
    found = overtakes(dispatched_as("dcab", *jobs))
    assert (found.times, found.jobs) == (5, 3)
    assert (found.most, found.unluckiest) == (2, "a")
