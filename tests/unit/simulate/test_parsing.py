"""What a scenario file may say, and what is refused, with its place."""

from typing import Any

import pytest

from hascheduler.errors import InvalidInput
from hascheduler.model.policy import PRESETS
from hascheduler.simulate.parsing import parse_scenario, scenario_of
from tests.unit.simulate.scenarios import document, job, processor

_DESIGN = """
{"policy": "fair", "idle_key_start": "zero", "on_demand_bonus_max": 20480000, "max_concurrency": 8, "learn_cost": true,
 "cost_alpha": 0.3, "until": 25,
 "learned_costs": [{"definition": "repack", "target": "r1", "cost": 20}],
 "definitions": {"repack": {"tier": 4, "max_concurrency": 3, "conflict_group": "git", "default_cost": 1}},
 "lanes": {"default": {"weight": 1, "promote_after": 60}},
 "processors": [{"id": "p", "types": "*", "slots": 8, "resources": {"cpu": 8}}],
 "jobs": [{"id": "j1", "definition": "repack", "target": "r1", "fairness_key": "", "lane": "default", "priority": 5,
           "mode": "queued", "resources": {}, "submit_at": 0, "duration": 8}]}
"""


def test_the_documented_form_is_read() -> None:
    scenario = parse_scenario(_DESIGN)
    config = scenario.policy.config()
    assert config.criteria == PRESETS["fair"]
    assert (config.max_concurrency, config.cost_alpha, scenario.until_ms) == (8, 300, 25_000)
    assert scenario.learned_costs == (("repack", "r1", 20_000),)
    assert (scenario.definitions[0].tier, scenario.definitions[0].default_cost_ms) == (4, 1_000)
    assert scenario.processors[0].resources == (("cpu", 8),)
    assert scenario.jobs[0].duration_ms == 8_000


_REFUSED: list[tuple[str, dict[str, Any], tuple[str | int, ...]]] = [
    ("an unknown key", {"polizy": "fair"}, ("polizy",)),
    ("an end that is no number", {"until": float("nan")}, ("until",)),
    ("a key of definitions", {"definitions": {"x": {"teir": 1}}}, ("definitions", "x", "teir")),
    ("a cost that no replica takes", {"definitions": {"x": {"default_cost": "8d"}}},
     ("definitions", "x", "default_cost")),
    ("what no simulation looks at", {"definitions": {"x": {"timeout": "8s"}}}, ("definitions", "x", "timeout")),
    ("a rate limit without a period", {"definitions": {"x": {"rate_limit": {"count": 1}}}},
     ("definitions", "x", "rate_limit", "per")),
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
    ("an id that was there", job("a"), "id"),
    ("an unknown definition", job("b", definition="y"), "definition"),
    ("no duration", {"id": "b", "definition": "x"}, "duration"),
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
    found = scenario.jobs
    assert [each.id for each in found] == ["first", "g-1", "g-2", "g-3", "g-4", "g-5", "last"]
    assert [each.submit_at_ms for each in found[1:6]] == [3_000, 3_000, 3_000, 13_000, 13_000]
    assert [each.duration_ms for each in found[1:6]] == [1_000, 2_000, 1_000, 2_000, 1_000]
    assert [each.fairness_key for each in found[1:6]] == ["a", "b", "c", "a", "b"]
    assert {each.target for each in found[1:6]} == {"t"}
    numbered = scenario_of(document(job("g", count=2))).jobs
    assert [(each.id, each.target) for each in numbered] == [("g-1", "g-1"), ("g-2", "g-2")]
