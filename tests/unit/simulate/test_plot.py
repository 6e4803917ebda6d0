"""Pictures: each kind of policy, few jobs and many, and none at all."""

import re
from xml.etree import ElementTree

import pytest

from hascheduler.simulate.examples import example_text
from hascheduler.simulate.outcome import RunOutcome
from hascheduler.simulate.parsing import parse_scenario
from hascheduler.simulate.run import run
from tests.tiers import spread
from tests.unit.simulate.scenarios import job, outcome_of, processor


def draw(runs: list[RunOutcome], format: str) -> bytes:
    """Matplotlib is imported here, as every worker reads this file, and few of them draw."""
    from hascheduler.simulate import plot

    return plot.draw(runs, format)


def texts(svg: bytes) -> str:
    """What is written in it; matplotlib draws letters as shapes and leaves the words in comments."""
    ElementTree.fromstring(svg)
    return " ".join(re.findall(r"<!-- (.*?) -->", svg.decode(), re.DOTALL))


def example(name: str, *policies: str) -> list[RunOutcome]:
    scenario = parse_scenario(example_text(name))
    return [run(scenario.under(policy)) for policy in policies] or [run(scenario)]


@pytest.mark.parametrize("policy", spread(["balanced", "fair", "swimlanes", "affinity"], check=1))
def test_a_day_is_drawn_under_every_policy(policy: str) -> None:
    assert draw(example("mixed-day", policy), "png").startswith(b"\x89PNG")


def test_bars_and_colours_have_their_names() -> None:
    shown = texts(draw(example("two-clients-burst"), "svg"))
    for name in ("repack:repo4", "sync-clone:b1", "clientA", "clientB", "fairness key", "jobs that wait", "seconds"):
        assert name in shown


def test_policies_stand_side_by_side() -> None:
    shown = texts(draw(example("priority-crossing", "affinity", "swimlanes", "fair"), "svg"))
    for name in ("affinity", "swimlanes", "fair", "aged priority of those that wait", "score of those that wait"):
        assert name in shown


def test_those_that_draw_level_are_marked_among_few_only() -> None:
    flood = job("o-{n}", 60, mode="on_demand", submit_at=30, every=55, count=10)
    for count, is_marked in ((1, True), (80, False)):
        outcome = outcome_of(job("busy", 60), job("q-{n}", 60, count=count), flood, policy="affinity")
        assert ("draws level" in texts(draw([outcome], "svg"))) == is_marked


def test_the_same_run_gives_the_same_picture() -> None:
    assert draw(example("rarity"), "svg") == draw(example("rarity"), "svg")


def test_a_processor_that_dies_and_one_that_drains_are_told_of() -> None:
    there = [processor("p", leave_at=2), processor("q", join_at=3, drain_at=5)]
    shown = texts(draw([outcome_of(job("a", 4), job("b", 1, mode="on_demand"), processors=there)], "svg"))
    for name in ("lost, runs again", "processor leaves", "processor drains"):
        assert name in shown


def test_more_keys_than_colours_are_drawn_as_others() -> None:
    jobs = [job("g", count=40, fairness_key=[f"k{n}" for n in range(40)])]
    for policy in spread(["fair", "affinity"], check=1):
        assert "others" in texts(draw([outcome_of(*jobs, policy=policy)], "svg"))


def test_many_processors_are_not_all_named() -> None:
    there = [processor(f"node-{n:03}") for n in range(100)]
    shown = texts(draw([outcome_of(job("g", count=200, every=0.01), processors=there)], "svg"))
    assert 30 <= shown.count("node-") <= 40


@pytest.mark.parametrize("name", spread(["日本", "$x$", "a_{b}", r"\alpha$", "<&>"], check=1))
def test_names_are_drawn_as_they_are_as_far_as_they_can_be(name: str) -> None:
    jobs = [job(name, 9, fairness_key=name), job("other", 1)]
    draw([outcome_of(*jobs, processors=[processor(name)], note=name)], "svg")


def test_a_run_of_nothing_is_a_picture_too() -> None:
    assert "nobody waited" in texts(draw([outcome_of()], "svg"))
    assert draw([outcome_of(processors=[], policy="fair")], "png").startswith(b"\x89PNG")
