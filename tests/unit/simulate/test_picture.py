"""The document of a comparison: the figures and pictures of runs, small however large these are."""

import json
from typing import Any

from hascheduler.simulate.outcome import RunOutcome, as_document
from hascheduler.simulate.parsing import scenario_of
from hascheduler.simulate.picture import (
    BARS_MAX,
    COSTS_MAX,
    INSTANTS_MAX,
    ROWS_MAX,
    WAITS_MAX,
    comparison_document,
)
from hascheduler.simulate.run import run
from hascheduler.simulate.series import LINES_MAX
from tests.unit.simulate.scenarios import document, job, outcome_of, processor


def picture_of(outcome: RunOutcome) -> dict[str, Any]:
    found: dict[str, Any] = comparison_document([outcome])["runs"][0]["picture"]
    return found


def under(policies: list[str], *jobs: dict[str, Any]) -> dict[str, Any]:
    scenario = scenario_of(document(*jobs))
    return comparison_document([run(scenario.under(policy)) for policy in policies])


def test_bars_are_the_runs_in_their_slots_and_groups() -> None:
    jobs = [job("a", 2, fairness_key="k"), job("b", 1, fairness_key="l"), job("c", 9, fairness_key="k")]
    found = comparison_document([outcome_of(*jobs, processors=[processor(slots=2)], until=5)])
    [shown] = found["runs"]
    assert [group["name"] for group in found["groups"]] == ["k", "l"]
    bars = [[bar[name] for name in ("job", "slot", "from_ms", "to_ms", "group")] for bar in shown["picture"]["bars"]]
    assert bars == [["a", 0, 0, 2_000, 0], ["b", 1, 0, 1_000, 1], ["c", 1, 1_000, 5_000, 0]]
    assert shown["picture"]["waiting"] == {"times_ms": [0, 1_000], "counts": [[1, 0], [0, 0]]}
    assert found["until_ms"] == 5_000


def test_a_run_that_is_lost_is_marked() -> None:
    there = [processor("p", leave_at=2), processor("q", join_at=3)]
    found = picture_of(outcome_of(job("a", 4), processors=there))
    assert [(bar["row"], bar["lost"]) for bar in found["bars"]] == [(0, True), (1, False)]
    assert [row["leave_ms"] for row in found["rows"]] == [2_000, None]


def test_large_runs_have_small_pictures_and_what_is_left_out_is_counted() -> None:
    keys = [f"k{n}" for n in range(40)]
    jobs = job("j-{n}", [1, 2, 3], count=4_000, every=0.2, fairness_key=keys)
    there = [processor(f"p{n:03}") for n in range(ROWS_MAX + 5)]
    [shown] = comparison_document([outcome_of(jobs, processors=there[:9], policy="balanced")])["runs"]
    picture = shown["picture"]
    assert len(picture["bars"]) == BARS_MAX
    assert picture["bars_left_out"] == 4_000 - BARS_MAX
    assert min(bar["to_ms"] - bar["from_ms"] for bar in picture["bars"]) >= 2_000, "the longest are kept"
    assert len(picture["waiting"]["times_ms"]) <= INSTANTS_MAX + 2
    assert len(picture["costs"]) == COSTS_MAX
    assert picture["costs_left_out"] == len(keys) - COSTS_MAX
    assert max(len(cost["points"]) for cost in picture["costs"]) <= INSTANTS_MAX + 1
    assert picture["lines"] is None or len(picture["lines"]["lines"]) <= LINES_MAX
    assert sum(row["kind"] == "key" for row in shown["report"]["waits"]) == WAITS_MAX
    assert len(json.dumps(picture)) < 500_000
    wide = picture_of(outcome_of(job("a"), processors=there))
    assert (len(wide["rows"]), wide["rows_left_out"]) == (ROWS_MAX, 5)


def test_the_most_that_wait_at_once_is_kept_when_instants_are_thinned() -> None:
    outcome = outcome_of(job("a-{n}", 1, count=900, every=0.5), job("burst-{n}", 1, count=50, submit_at=100.25))
    most, waiting = 0, 0
    changes = [(each.job.submit_at_ms, 1) for each in outcome.jobs]
    changes += [(each.started_at_ms, -1) for each in outcome.jobs if each.started_at_ms is not None]
    for _, change in sorted(changes):
        waiting += change
        most = max(most, waiting)
    counts = picture_of(outcome)["waiting"]["counts"]
    assert max(sum(each) for each in zip(*counts, strict=True)) == most


def test_lines_are_of_what_the_policy_compares() -> None:
    found = under(["fair", "swimlanes", "affinity"], job("a"), job("b", priority=3))
    lines = [each["picture"]["lines"] for each in found["runs"]]
    assert [None if each is None else each["by"] for each in lines] == [None, "aged priority", "score"]
    assert [each["job"] for each in lines[2]["lines"]] in (["a"], ["b"])


def test_each_run_is_compared_with_the_first() -> None:
    found = under(
        ["arrival", "aged_priority,arrival"], job("x", priority=9), job("a", priority=1), job("b", priority=9)
    )
    first, second = found["runs"]
    assert first["moved"] is None
    assert (second["moved"]["sooner"], second["moved"]["later"], second["moved"]["same"]) == (1, 1, 1)
    assert second["moved"]["most_sooner"] == {"job": "b", "by_ms": 1_000}
    assert second["outcome"] == as_document(
        run(
            scenario_of(document(job("x", priority=9), job("a", priority=1), job("b", priority=9))).under(
                "aged_priority,arrival"
            )
        )
    )


def test_a_scenario_of_nothing_has_a_picture_too() -> None:
    found = comparison_document([outcome_of()])
    assert found["runs"][0]["picture"]["bars"] == []
    assert found["runs"][0]["report"]["waits"][0]["jobs"] == 0
