"""What a scenario file may say, and what the real core makes of it: golden scenarios, examples, figures, pictures."""

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from hascheduler.errors import InvalidInput
from hascheduler.simulate.examples import example_names, example_note, example_text
from hascheduler.simulate.parsing import parse_scenario, scenario_of
from hascheduler.simulate.report import WaitFigures, report, start_shifts
from hascheduler.simulate.run import RunOutcome, as_document, run
from tests.unit.simulate.scenarios import dispatched, document, job, outcome_of, processor


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


def runs_of(name: str, *policies: str) -> list[RunOutcome]:
    scenario = parse_scenario(example_text(name))
    return [run(scenario.under(policy)) for policy in policies or [scenario.policy.name]]


@pytest.mark.parametrize(
    ("runs", "names"),
    [
        (runs_of("two-clients-burst"), ("repack:repo4", "sync-clone:b1", "clientA", "fairness key", "seconds")),
        (runs_of("priority-crossing", "affinity", "swimlanes"), ("affinity", "swimlanes", "priority", "minutes")),
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


_REFUSED: list[tuple[str, dict[str, Any], tuple[str | int, ...]]] = [
    ("an unknown key", {"polizy": "fair"}, ("polizy",)),
    ("a key of definitions", {"definitions": {"x": {"teir": 1}}}, ("definitions", "x", "teir")),
    ("what no simulation looks at", {"definitions": {"x": {"timeout": "8s"}}}, ("definitions", "x", "timeout")),
    ("ten promotions", {"lanes": {"a": {"promote_after": [9] * 10}}}, ("lanes", "a", "promote_after")),
    ("a learned cost of nobody", {"learned_costs": [{"definition": "y", "target": "t", "cost": 1}]},
     ("learned_costs", 0, "definition")),
    ("slots as resource", {"processors": [processor(resources={"slots": 1})]}, ("processors", 0, "resources", "slots")),
    ("leaving before joining", {"processors": [processor(join_at=5, leave_at=4)]}, ("processors", 0, "leave_at")),
]  # fmt: skip


@pytest.mark.parametrize(("rest", "path"), [row[1:] for row in _REFUSED], ids=[row[0] for row in _REFUSED])
def test_what_is_wrong_is_refused_with_its_place(rest: dict[str, Any], path: tuple[str | int, ...]) -> None:
    with pytest.raises(InvalidInput) as refused:
        scenario_of(document(**rest))
    assert refused.value.path == path


_REFUSED_JOBS: list[tuple[str, dict[str, Any], str | None]] = [
    ("nothing", {}, "id"),
    ("an unknown key", {**job("b"), "submitat": 1}, "submitat"),
    ("an unknown definition", job("b", definition="y"), "definition"),
    ("an interval without a count", job("b", every=5), "every"),
    ("a group of too many", job("b", count=1_000_001), "count"),
    ("a group that takes turns of nothing", job("b", count=2, priority=[]), "priority"),
    ("a group whose jobs were there", job("a-{n}", count=2), "id"),
]


@pytest.mark.parametrize(("item", "key"), [row[1:] for row in _REFUSED_JOBS], ids=[row[0] for row in _REFUSED_JOBS])
def test_what_is_wrong_with_a_job_is_refused_with_its_place(item: dict[str, Any], key: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        scenario_of(document(job("a"), job("a-2"), item))
    assert refused.value.path[:3] == ("jobs", 2, key)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("", ()),
        ("[]", ()),
        ('{"jobs": [}', ("line 1",)),
        ('{"until": 1, "until": 2}', ()),
        ("until: 1\nuntil: 2", ("line 2",)),
        ("a: " + "[" * 100_000, ("line 1",)),
        ('{"a": ' * 100_000, ()),
        ("until: 2020-01-01", ("until",)),
        ("jobs: &a [*a]", ("jobs", 0)),
    ],
)
def test_what_can_not_be_read_is_refused(text: str, path: tuple[str | int, ...]) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_scenario(text)
    assert refused.value.path == path


def test_a_short_text_that_stands_for_a_long_one_is_refused_at_once() -> None:
    rows = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    with pytest.raises(InvalidInput) as refused:
        parse_scenario("\n".join(["jobs: &jobs [1]", *rows]))
    assert refused.value.path == ("a0",)
    with pytest.raises(InvalidInput) as refused:
        parse_scenario("until: " + "\n  ".join(["", *rows]))
    assert len(str(refused.value)) < 200


def test_a_group_is_unfolded_where_it_stands() -> None:
    group = job("g-{n}", [1, 2], count=5, every=[0, 0, 10], submit_at=3, fairness_key=["a", "b", "c"], target="t")
    scenario = scenario_of(document(job("first"), group, job("last")))
    first, *found, last = scenario.jobs
    assert (first.id, last.id) == ("first", "last")
    assert [(each.id, each.submit_at_ms, each.duration_ms, each.fairness_key) for each in found] == [
        ("g-1", 3_000, 1_000, "a"), ("g-2", 3_000, 2_000, "b"), ("g-3", 3_000, 1_000, "c"),
        ("g-4", 13_000, 2_000, "a"), ("g-5", 13_000, 1_000, "b"),
    ]  # fmt: skip
    assert {each.target for each in found} == {"t"}
    numbered = scenario_of(document(job("g", count=2))).jobs
    assert [(each.id, each.target) for each in numbered] == [("g-1", "g-1"), ("g-2", "g-2")]


def test_starts_are_compared_job_by_job() -> None:
    first = outcome_of(*JOBS, policy="affinity", until=8)
    assert start_shifts(first, outcome_of(*JOBS, policy="arrival", until=14)) == ({"a": 0, "b": -2_000, "c": 9_000}, 0)
    assert start_shifts(first, outcome_of(*JOBS, policy="arrival", until=8)) == ({"a": 0, "b": -2_000}, 1)
