"""What is told of a run: its figures, by hand, and its picture."""

import re
from xml.etree import ElementTree

import pytest

from hascheduler.simulate.examples import example_text
from hascheduler.simulate.parsing import parse_scenario
from hascheduler.simulate.report import WaitFigures, report, start_shifts
from hascheduler.simulate.run import RunOutcome, run
from tests.unit.simulate.scenarios import job, outcome_of, processor

JOBS = (
    job("a", 4, fairness_key="k"),
    job("b", 9, fairness_key="k", priority=1, submit_at=1),
    job("c", 2, fairness_key="l", submit_at=2, lane="fast"),
    job("d", 1, fairness_key="l", priority=0, submit_at=3, lane="fast"),
)


def test_the_figures_are_those_at_the_end() -> None:
    found = report(outcome_of(*JOBS, policy="affinity", until=8, definitions={"x": {"tier": 7}}))
    assert (found.jobs, found.completed, found.pending, found.lost, found.gave_up) == (4, 2, 1, 0, 0)
    assert found.per_hour == 900
    assert found.utilisation == 1
    assert found.waits == WaitFigures(4, 7_000 // 3, 2_000, 5_000, 5_000)
    assert found.waits_by["key"] == {
        "k": WaitFigures(2, 2_500, 0, 5_000, 5_000),
        "l": WaitFigures(2, 2_000, 2_000, 2_000, 5_000),
    }
    counts = {kind: {name: each.jobs for name, each in groups.items()} for kind, groups in found.waits_by.items()}
    assert counts == {
        "tenant": {"default": 4}, "key": {"k": 2, "l": 2}, "lane": {"default": 2, "fast": 2},
        "tier": {"7": 4}, "mode": {"queued": 4},
    }  # fmt: skip


def test_starts_are_compared_job_by_job() -> None:
    first = outcome_of(*JOBS, policy="affinity", until=8)
    assert start_shifts(first, outcome_of(*JOBS, policy="arrival", until=14)) == ({"a": 0, "b": -2_000, "c": 9_000}, 0)
    assert start_shifts(first, outcome_of(*JOBS, policy="arrival", until=8)) == ({"a": 0, "b": -2_000}, 1)


# The picture


def draw(runs: list[RunOutcome], format: str) -> bytes:
    """Matplotlib is imported here, as every worker reads this file, and few of them draw."""
    from hascheduler.simulate import plot

    return plot.draw(runs, format)


def texts(*runs: RunOutcome) -> str:
    """What is written in it; matplotlib draws letters as shapes and leaves the words in comments."""
    svg = draw([*runs], "svg")
    ElementTree.fromstring(svg)
    return " ".join(re.findall(r"<!-- (.*?) -->", svg.decode(), re.DOTALL))


def example(name: str, *policies: str) -> list[RunOutcome]:
    scenario = parse_scenario(example_text(name))
    return [run(scenario.under(policy)) for policy in policies or [scenario.policy.name]]


@pytest.mark.parametrize(
    ("runs", "names"),
    [
        (example("two-clients-burst"), ("repack:repo4", "sync-clone:b1", "clientA", "fairness key", "seconds")),
        (example("priority-crossing", "affinity", "swimlanes"), ("affinity", "swimlanes", "priority", "minutes")),
        ([outcome_of(job("a", 4), processors=[processor("p", leave_at=2), processor("q")])], ("lost, runs again",)),
        ([outcome_of(job("g", count=40, fairness_key=[f"k{n}" for n in range(40)]))], ("others", "k9")),
        ([outcome_of(processors=[])], ("balanced",)),
    ],
)  # fmt: skip
def test_what_is_drawn_has_its_name(runs: list[RunOutcome], names: tuple[str, ...]) -> None:
    shown = texts(*runs)
    assert [name for name in names if name not in shown] == []


def test_names_are_drawn_as_far_as_they_can_be_and_the_same_run_gives_the_same_picture() -> None:
    name = r"日本 $x$ <&> a_{b} \alpha$"
    odd = outcome_of(job(name, 9, fairness_key=name), job("other", 1), processors=[processor(name)], note=name)
    assert draw([odd], "svg") == draw([odd], "svg")
    assert draw([odd], "png").startswith(b"\x89PNG")
