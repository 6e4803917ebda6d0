"""The picture: of few jobs and of many, of several policies, and of nothing."""

import re
from xml.etree import ElementTree

import pytest

from hascheduler.simulate.examples import example_text
from hascheduler.simulate.parsing import parse_scenario
from hascheduler.simulate.run import RunOutcome, run
from tests.unit.simulate.scenarios import job, outcome_of, processor


def draw(runs: list[RunOutcome], format: str) -> bytes:
    """Matplotlib is imported here, as every worker reads this file, and few of them draw."""
    from hascheduler.simulate import plot

    return plot.draw(runs, format)


def texts(*runs: RunOutcome) -> str:
    """What is written in it; matplotlib draws letters as shapes and leaves the words in comments."""
    svg = draw([*runs], "svg")
    ElementTree.fromstring(svg)
    assert svg == draw([*runs], "svg"), "the same run gives the same picture"
    return " ".join(re.findall(r"<!-- (.*?) -->", svg.decode(), re.DOTALL))


def example(name: str, *policies: str) -> list[RunOutcome]:
    scenario = parse_scenario(example_text(name))
    return [run(scenario.under(policy)) for policy in policies or [scenario.policy.name]]


def test_a_day_is_drawn() -> None:
    assert draw(example("mixed-day", "fair"), "png").startswith(b"\x89PNG")


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


def test_many_processors_are_not_all_named() -> None:
    there = [processor(f"node-{n:03}") for n in range(100)]
    shown = texts(outcome_of(job("g", count=200, every=0.01), processors=there))
    assert 30 <= shown.count("node-") <= 40


@pytest.mark.parametrize("name", ["日本 $x$ <&>", r"a_{b} \alpha$"])
def test_names_are_drawn_as_they_are_as_far_as_they_can_be(name: str) -> None:
    texts(outcome_of(job(name, 9, fairness_key=name), job("other", 1), processors=[processor(name)], note=name))
