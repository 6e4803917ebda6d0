"""The real core on virtual time: golden scenarios, the examples of the package, and what dies."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from hascheduler.errors import InvalidInput
from hascheduler.simulate.examples import example_names, example_note, example_text
from hascheduler.simulate.parsing import parse_scenario
from hascheduler.simulate.report import report
from hascheduler.simulate.run import RunOutcome, as_document, run
from tests.unit.simulate.scenarios import dispatched, job, outcome_of, processor


def test_what_a_dead_processor_ran_runs_again_from_the_start() -> None:
    outcome = outcome_of(job("a", 10), processors=[processor("p", leave_at=4), processor("q", join_at=6)])
    assert dispatched(outcome) == [[0.0, "a", "p"], [6.0, "a", "q"]]
    assert outcome.completed == ((16_000, "a"),)
    first, second = outcome.jobs[0].attempts
    assert (first.lost, first.ended_at_ms) == (True, 4_000)
    assert (second.lost, second.ended_at_ms) == (False, 16_000)
    assert outcome.accumulated_cost_ms == {"": 2_000}  # both are charged


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


def test_keys_of_several_tenants_are_told_apart() -> None:
    slashes = (("x/y", "z"), ("x", "y/z"), ("x%2Fy", ""))
    jobs = [job(f"j{n}", tenant=tenant, fairness_key=key) for n, (tenant, key) in enumerate(slashes)]
    found = as_document(outcome_of(*jobs, definitions={"x": {"default_cost": 2}}))
    assert found["accumulated_cost"] == {"x%2Fy/z": 2.0, "x/y/z": 2.0, "x%252Fy/": 2.0}
    assert found["accumulated_cost_by_tenant"] == {"x/y": 2.0, "x": 2.0, "x%2Fy": 2.0}
    assert "accumulated_cost_by_tenant" not in as_document(outcome_of(job("a", tenant="x"), job("b", tenant="x")))


# Golden scenarios come out exactly so


GOLDEN = sorted((Path(__file__).parents[2] / "golden").glob("*.json"))


def test_the_golden_files_are_there() -> None:
    assert len(GOLDEN) >= 13


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_golden_scenario_comes_out_as_it_must(path: Path) -> None:
    golden: dict[str, Any] = json.loads(path.read_text("utf-8"))
    found = as_document(run(parse_scenario(json.dumps(golden["scenario"]))))
    for name, expected in golden["expect"].items():
        assert found[name] == expected, name
    assert set(found) == set(golden["expect"])


# Examples


def example(name: str, policy: str | None = None) -> RunOutcome:
    scenario = parse_scenario(example_text(name))
    return run(scenario if policy is None else scenario.under(policy))


@pytest.mark.parametrize("name", example_names())
def test_an_example_runs_says_what_there_is_to_see(name: str) -> None:
    figures = report(example(name))
    assert figures.jobs
    assert figures.unschedulable == ()
    assert 20 < len(example_note(name)) < 120


def test_the_scenario_of_the_documentation_runs() -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "simulate.md").read_text("utf-8")
    found = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert len(found) == 1
    figures = report(run(parse_scenario(found[0])))
    assert (figures.jobs, figures.lost > 0, figures.unschedulable) == (201, True, ())


def test_an_unknown_example_is_refused_with_the_names_of_those_there_are() -> None:
    with pytest.raises(InvalidInput, match="mixed-day"):
        example_text("../secrets")
