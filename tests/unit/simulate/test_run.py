"""The real core on virtual time: what arrives, ends, dies and is woken for, at which instant."""

import pytest

from hascheduler.simulate.parsing import scenario_of
from hascheduler.simulate.run import as_document, run
from tests.unit.simulate.scenarios import dispatched, document, job, outcome_of, processor


def test_a_slot_goes_on_to_the_next_job_in_the_instant_in_which_it_is_free() -> None:
    outcome = outcome_of(job("a", 2.5), job("b", 1))
    assert dispatched(outcome) == [[0.0, "a", "p"], [2.5, "b", "p"]]
    assert outcome.completed == ((2_500, "a"), (3_500, "b"))
    assert outcome.ended_at_ms == 3_500


def test_what_ends_at_one_instant_ends_in_the_order_of_dispatch() -> None:
    outcome = outcome_of(job("b", 2), job("c", 1, submit_at=1), job("a", 2), processors=[processor(slots=3)])
    assert outcome.completed == ((2_000, "b"), (2_000, "a"), (2_000, "c"))


def test_jobs_that_take_no_time_run_one_after_the_other_in_one_instant() -> None:
    outcome = outcome_of(job("a", 0), job("b", 0), job("c", 0, submit_at=1))
    assert dispatched(outcome) == [[0.0, "a", "p"], [0.0, "b", "p"], [1.0, "c", "p"]]
    assert outcome.completed == ((0, "a"), (0, "b"), (1_000, "c"))


def test_it_ends_with_what_happens_at_until() -> None:
    jobs = [job("a", 5), job("b", 1), job("c", 1, submit_at=5), job("late", 1, submit_at=5.001)]
    outcome = outcome_of(*jobs, until=5)
    assert outcome.completed == ((5_000, "a"),)
    assert dispatched(outcome)[-1] == [5.0, "b", "p"]
    assert outcome.pending == ("c",)
    assert outcome.ended_at_ms == 5_000
    assert [record.job.id for record in outcome.jobs if record.is_running] == ["b"]


def test_jobs_arrive_by_their_times_whatever_their_order_in_the_file() -> None:
    outcome = outcome_of(job("b", submit_at=3), job("a", submit_at=0), job("c", submit_at=3))
    assert [record.job.id for record in outcome.jobs] == ["a", "b", "c"]
    assert dispatched(outcome) == [[0.0, "a", "p"], [3.0, "b", "p"], [4.0, "c", "p"]]


def test_what_a_dead_processor_ran_runs_again_from_the_start() -> None:
    outcome = outcome_of(job("a", 10), processors=[processor("p", leave_at=4), processor("q", join_at=6)])
    assert dispatched(outcome) == [[0.0, "a", "p"], [6.0, "a", "q"]]
    assert outcome.completed == ((16_000, "a"),)
    first, second = outcome.jobs[0].attempts
    assert (first.lost, first.ended_at_ms) == (True, 4_000)
    assert (second.lost, second.ended_at_ms) == (False, 16_000)
    assert outcome.accumulated_cost_ms == {"": 2_000}  # both are charged


def test_a_job_that_ends_when_its_processor_leaves_has_ended() -> None:
    outcome = outcome_of(job("a", 4), processors=[processor("p", leave_at=4), processor("q")])
    assert outcome.completed == ((4_000, "a"),)
    assert not any(attempt.lost for attempt in outcome.attempts)


def test_a_job_that_is_lost_ten_times_fails_after_pauses_that_grow() -> None:
    dying = [processor(f"p{n}", join_at=100 * n, leave_at=100 * n + 99) for n in range(12)]
    outcome = outcome_of(job("a", 1_000), processors=dying)
    starts = [0, 100, 200, 301, 403, 507, 615, 731, 859, 959]
    assert [attempt.started_at_ms // 1_000 for attempt in outcome.attempts] == starts
    assert outcome.completed == ()
    assert outcome.jobs[0].gave_up
    assert outcome.jobs[0].finished_at_ms == 999_000
    assert outcome.pending == ()


def test_a_job_that_has_not_begun_when_it_expires_fails() -> None:
    waiting = (job("b", 1, expires_after=3), job("c", 1, expires_after=5), job("d", 1))
    outcome = outcome_of(job("a", 4, expires_after=1), *waiting, policy="deadline")
    assert as_document(outcome)["expired"] == [[3.0, "b"]]
    assert outcome.completed == ((4_000, "a"), (5_000, "c"), (6_000, "d"))
    assert (outcome.pending, outcome.jobs[1].gave_up) == ((), False)


def test_a_job_that_had_begun_does_not_expire_when_its_processor_leaves() -> None:
    outcome = outcome_of(
        job("a", 4, expires_after=2), processors=[processor("p", leave_at=3), processor("q", join_at=10)]
    )
    assert outcome.completed == ((14_000, "a"),)
    assert "expired" not in as_document(outcome)


def test_a_draining_processor_ends_what_it_runs_and_takes_no_more() -> None:
    there = [processor("p", drain_at=1), processor("q", join_at=20)]
    outcome = outcome_of(job("a", 10), job("b", 10), processors=there)
    assert dispatched(outcome) == [[0.0, "a", "p"], [20.0, "b", "q"]]
    assert outcome.completed == ((10_000, "a"), (30_000, "b"))


def test_a_rate_limit_wakes_the_core_for_each_token() -> None:
    limited = {"x": {"rate_limit": {"count": 2, "per": 3}}}
    jobs = [job(f"j{n}", 1) for n in range(5)]
    outcome = outcome_of(*jobs, definitions=limited, processors=[processor(slots=9)])
    assert [row[0] for row in dispatched(outcome)] == [0.0, 0.0, 1.5, 3.0, 4.5]


def test_a_tenant_has_no_more_running_than_its_quota() -> None:
    jobs = [job("a1", 2, tenant="a"), job("a2", 2, tenant="a"), job("b1", 2, tenant="b")]
    outcome = outcome_of(*jobs, tenants={"a": {"max_running": 1}}, processors=[processor(slots=3)])
    assert dispatched(outcome) == [[0.0, "a1", "p"], [0.0, "b1", "p"], [2.0, "a2", "p"]]


def test_costs_are_learned_from_what_ran() -> None:
    first, second = job("a", 8, target="t"), job("b", 8, target="t", submit_at=20)
    outcome = outcome_of(first, second)
    assert outcome.accumulated_cost_ms == {"": 9_000}
    assert outcome_of(first, second, learn_cost=False).accumulated_cost_ms == {"": 2_000}


def test_what_was_learned_before_is_charged_from_the_start() -> None:
    known = [{"definition": "x", "target": "t", "cost": 30}]
    assert outcome_of(job("a", target="t"), learned_costs=known).accumulated_cost_ms == {"": 30_000}


def test_a_key_whose_jobs_wait_has_an_account() -> None:
    outcome = outcome_of(job("a", fairness_key="k"), job("b", fairness_key="l"), until=0.5)
    assert outcome.accumulated_cost_ms == {"k": 1_000, "l": 0}


_TOO_LARGE = [
    ("its own needs", {}, {"resources": {"cpu": 9}}),
    ("those of its definition", {"resources": {"cpu": 9}}, {}),
    ("a resource that none has", {}, {"resources": {"gpu": 1}}),
]


@pytest.mark.parametrize(("definition", "needs"), [row[1:] for row in _TOO_LARGE], ids=[row[0] for row in _TOO_LARGE])
def test_a_job_that_is_larger_than_each_processor_waits_and_holds_up_nobody(
    definition: dict[str, object], needs: dict[str, object]
) -> None:
    """As in a cluster, which accepts it: a processor that is large enough may come."""
    large, small = job("a", definition="y", **needs), job("b", submit_at=1)
    outcome = outcome_of(
        large, small, definitions={"x": {}, "y": definition}, processors=[processor(resources={"cpu": 8})]
    )
    assert (outcome.pending, outcome.unschedulable) == (("a",), ("a",))
    assert outcome.completed == ((2_000, "b"),)
    assert as_document(outcome)["unschedulable"] == ["a"]
    come = [processor(resources={"cpu": 8}), processor("q", resources={"cpu": 9, "gpu": 1}, join_at=5)]
    later = outcome_of(large, small, definitions={"x": {}, "y": definition}, processors=come)
    assert later.completed == ((2_000, "b"), (6_000, "a"))
    assert "unschedulable" not in as_document(later)


@pytest.mark.parametrize("jobs", [[], [job("a", submit_at=9)]])
def test_nothing_at_all_is_an_outcome_too(jobs: list[dict[str, object]]) -> None:
    outcome = outcome_of(*jobs, processors=[], until=3)
    assert (outcome.jobs, outcome.attempts, outcome.ended_at_ms) == ((), (), 3_000)


def test_progress_is_told_until_all_is_done() -> None:
    told: list[int] = []
    run(scenario_of(document(job("a"), job("b"))), told.append)
    assert told == [0, 1, 2]


def test_the_same_scenario_gives_the_same_outcome() -> None:
    group = job("g", [3, 1, 2], count=60, every=[0, 1], fairness_key=["a", "b"], priority=[1, 9, 5])
    assert outcome_of(group) == outcome_of(group)


def test_keys_of_several_tenants_are_told_apart() -> None:
    slashes = (("x/y", "z"), ("x", "y/z"), ("x%2Fy", ""))
    jobs = [job(f"j{n}", tenant=tenant, fairness_key=key) for n, (tenant, key) in enumerate(slashes)]
    found = as_document(outcome_of(*jobs, definitions={"x": {"default_cost": 2}}))
    assert found["accumulated_cost"] == {"x%2Fy/z": 2.0, "x/y/z": 2.0, "x%252Fy/": 2.0}
    assert found["accumulated_cost_by_tenant"] == {"x/y": 2.0, "x": 2.0, "x%2Fy": 2.0}
    assert "accumulated_cost_by_tenant" not in as_document(outcome_of(job("a", tenant="x"), job("b", tenant="x")))
