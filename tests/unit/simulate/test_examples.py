"""The examples that come with the package: they run, and show what they are there for."""

import json
import re
from pathlib import Path

import pytest

from hascheduler.errors import InvalidInput
from hascheduler.simulate.examples import example_names, example_note, example_text
from hascheduler.simulate.parsing import parse_scenario
from hascheduler.simulate.report import report
from hascheduler.simulate.run import RunOutcome, as_document, run

GOLDEN = Path(__file__).parents[2] / "golden"


def example(name: str, policy: str | None = None) -> RunOutcome:
    scenario = parse_scenario(example_text(name))
    return run(scenario if policy is None else scenario.under(policy))


def started(outcome: RunOutcome, id: str) -> float | None:
    at_ms = next(record.started_at_ms for record in outcome.jobs if record.job.id == id)
    return None if at_ms is None else at_ms / 1_000


@pytest.mark.parametrize("name", example_names())
def test_an_example_runs_says_what_there_is_to_see(name: str) -> None:
    figures = report(example(name))
    assert figures.jobs
    assert figures.unschedulable == ()
    assert 20 < len(example_note(name)) < 120


@pytest.mark.parametrize(
    ("name", "golden"),
    [
        ("foreground-arrives-late", "fair-1-foreground-arrives-late"),
        ("two-clients-burst", "fair-2-two-clients-burst"),
        ("expensive-vs-cheap", "fair-3-expensive-vs-cheap"),
        ("conflict-exclusion", "fair-4-conflict-exclusion"),
        ("many-background-types", "fair-5-many-background-types"),
        ("specialist-first", "affinity-specialist-first"),
        ("drf-paper", "swimlanes-drf-paper"),
    ],
)
def test_the_published_scenarios_come_out_as_published(name: str, golden: str) -> None:
    expected = json.loads((GOLDEN / f"{golden}.json").read_text("utf-8"))["expect"]
    assert as_document(example(name)) == expected


def test_a_low_priority_is_passed_until_320_seconds_after_it() -> None:
    outcome = example("priority-crossing")
    low = next(record for record in outcome.jobs if record.job.id == "low")
    for record in outcome.jobs:
        if record.job.priority == 5:
            assert record.started_at_ms is not None
            assert low.started_at_ms is not None
            is_near = record.job.submit_at_ms < low.job.submit_at_ms + 320_000
            assert (record.started_at_ms < low.started_at_ms) == is_near


def test_a_queued_job_passes_an_on_demand_job() -> None:
    outcome = example("on-demand-crossing")
    order = [attempt.job for attempt in outcome.attempts]
    assert order.index("asked-5") < order.index("queued") < order.index("asked-6")
    asked_6 = next(record for record in outcome.jobs if record.job.id == "asked-6")
    assert asked_6.job.submit_at_ms <= 360_000  # it was there when the queued one went first


def test_no_job_expires_where_the_policy_is_deadline() -> None:
    assert report(example("deadlines")).expired == 0
    assert report(example("deadlines", "arrival")).expired == 9


def test_the_rare_job_goes_first() -> None:
    assert [attempt.job for attempt in example("rarity").attempts][:2] == ["r1", "x1"]


def test_a_queued_job_starts_in_the_flood_where_the_bonus_ends_and_only_there() -> None:
    assert started(example("starvation-capped"), "q") == 2_570.0
    assert started(example("starvation-capped", "affinity"), "q") is None


def test_a_day_has_a_death_and_nothing_is_lost_by_it() -> None:
    figures = report(example("mixed-day"))
    assert 1_500 <= figures.jobs <= 3_000
    assert figures.lost > 0
    assert figures.completed == figures.jobs


def test_the_scenario_of_the_documentation_runs() -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "simulate.md").read_text("utf-8")
    found = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert len(found) == 1
    figures = report(run(parse_scenario(found[0])))
    assert (figures.jobs, figures.lost > 0, figures.unschedulable) == (201, True, ())


def test_an_unknown_example_is_refused_with_the_names_of_those_there_are() -> None:
    with pytest.raises(InvalidInput, match="mixed-day"):
        example_text("../secrets")
