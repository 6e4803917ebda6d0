"""Equal resources have equal normal forms, whether a file or a replica wrote them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hascheduler.cli.input.documents import NORMAL as FORMS

TICK: dict[str, Any] = {"name": "tick", "trigger": {"type": "interval", "every": "90s"}, "job": {"definition": "log"}}
NORMAL: dict[str, Any] = {**TICK, "trigger": {"type": "interval", "every": "1m30s"}}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"labels": {}, "overlap": "allow", "pause_after_failures": None, "paused": False},
        {"misfire": {"grace": 60, "catch_up": "latest", "limit": 1000}},
        {"misfire": {"grace": "60s"}},
        {"job": {"definition": "log", "target": "tick", "payload": None, "priority": 5, "render": False}},
        {"job": {"definition": "log", "tenant": "default", "fairness_key": "default", "resources": None}},
        {"trigger": {"type": "interval", "every": 90, "jitter": "0s", "start_at": None, "exclude": []}},
        {"rev": 7, "next_at": None, "counts": {"fired": 1}, "created_at": "2030-01-01T00:00:00.000Z"},
    ],
)
def test_defaults_and_what_only_answers_have_are_left_out(changes: dict[str, Any]) -> None:
    assert FORMS["schedule"]({**TICK, **changes}) == NORMAL


@pytest.mark.parametrize(
    ("part", "normal"),
    [
        ({"type": "cron", "expression": "* * * * *"}, {"type": "cron", "expression": "* * * * *", "timezone": "UTC"}),
        ({"at": "2030-01-31T10:30:00+01:00", "type": "once"}, {"type": "once", "at": "2030-01-31T09:30:00Z"}),
        ({"type": "times", "at": ["2030-01-31T09:30:00.5Z"]}, {"type": "times", "at": ["2030-01-31T09:30:00.500Z"]}),
        (
            {"type": "once", "at": "soon", "exclude": [{"from": "2030-01-01T00:00:00z", "to": "later"}]},
            {"type": "once", "at": "soon", "exclude": [{"from": "2030-01-01T00:00:00z", "to": "later"}]},
        ),
    ],
)
def test_triggers_have_one_form_and_what_is_wrong_stays(part: dict[str, Any], normal: dict[str, Any]) -> None:
    shown = FORMS["schedule"]({**TICK, "trigger": part})["trigger"]
    assert shown == normal
    assert list(shown) == list(normal)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.sampled_from(["1s", "cron", "allow"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["at", "grace", "type"]), inner),
    max_leaves=8,
)
_PARTS = [
    "name", "labels", "paused", "trigger", "misfire", "overlap", "job", "retry", "rev", "default_cost", "rate_limit",
    "resources", "weight", "promote_after", "policy",
]  # fmt: skip


@given(body=st.dictionaries(st.sampled_from(_PARTS), _JSON))
def test_whatever_it_is_it_has_a_form_that_is_its_own(body: dict[str, Any]) -> None:
    for normal in FORMS.values():
        assert normal(normal(body)) == normal(body)


_RETRY = {"max": "60s", "factor": 2.0, "backoff": 2, "attempts": 5}


@pytest.mark.parametrize(
    ("kind", "said", "normal"),
    [
        (
            "definition",
            {"name": "a", "rev": 3, "max_concurrency": None, "retry": _RETRY, "resources": {}},
            {"name": "a"},
        ),
        ("definition", {"default_cost": "1000ms", "timeout": None, "conflict_group": None}, {}),
        (
            "definition",
            {"total_timeout": 3600, "timeout": 300, "retry": {"factor": 1.5, "backoff": "500ms", "attempts": 3}},
            {"retry": {"attempts": 3, "backoff": "500ms", "factor": 1.5}, "timeout": "5m", "total_timeout": "1h"},
        ),
        (
            "definition",
            {"rate_limit": {"per": 60, "count": 3}, "tier": 4, "default_cost": 90, "name": "a"},
            {"name": "a", "default_cost": "1m30s", "tier": 4, "rate_limit": {"count": 3, "per": "1m"}},
        ),
        ("lane", {"name": "b", "promote_after": 60, "weight": 1}, {"name": "b"}),
        (
            "lane",
            {"policy": "tier, score", "promote_after": ["60s"] * 11},
            {"promote_after": ["1m"] * 11, "policy": ["tier", "score", "arrival"]},
        ),
        ("lane", {"policy": "luck"}, {"policy": "luck"}),
        ("tenant", {"name": "c", "rev": 3, "max_running": None}, {"name": "c"}),
        ("tenant", {"submit_rate": {"per": 60, "count": 3}}, {"submit_rate": {"count": 3, "per": "1m"}}),
    ],
)
def test_other_nouns_have_one_form_and_one_order_too(kind: str, said: dict[str, Any], normal: dict[str, Any]) -> None:
    assert json.dumps(FORMS[kind](said)) == json.dumps(normal)


def test_what_a_newer_replica_added_stays_in_parts_too() -> None:
    limit = {"key": "target", "max_concurrency": 2, "newer": {"a": 1}}
    said = {"key_limits": [limit], "retry": {"attempts": 6, "newer": [1]}, "newer": "x"}
    answered = {**said, "tier": None, "retry": {**said["retry"], "max": "1m"}, "rev": 3}  # type: ignore[dict-item]
    assert FORMS["definition"](answered) == said


def test_a_scope_is_said_beside_its_group_alone() -> None:
    assert FORMS["definition"]({"conflict_scope": "shared", "tier": 1}) == {"tier": 1}
    said = {"conflict_group": "git", "conflict_scope": "tenant"}
    assert FORMS["definition"]({**said, "tier": None}) == said


_NO_PAYLOADS: list[Any] = [0, False, "", [], {}, {"a": None}]


@pytest.mark.parametrize(
    ("job", "normal"),
    [
        *(({"payload": none}, {"payload": none}) for none in _NO_PAYLOADS),
        ({"render": 0}, {"render": 0}),
        ({"tenant": "acme", "fairness_key": "acme"}, {"tenant": "acme"}),
        ({"tenant": "acme", "fairness_key": "default"}, {"tenant": "acme", "fairness_key": "default"}),
        ({"fairness_key": ""}, {"fairness_key": ""}),
        ({"resources": {}}, {"resources": {}}),
        ({"resources": {"cpu": 1}}, {"resources": {"cpu": 1}}),
    ],
)
def test_only_what_means_the_default_of_a_job_is_left_out(job: dict[str, Any], normal: dict[str, Any]) -> None:
    shown = FORMS["schedule"]({**TICK, "job": {"definition": "log", **job}})["job"]
    assert json.dumps(shown) == json.dumps({"definition": "log", **normal})
