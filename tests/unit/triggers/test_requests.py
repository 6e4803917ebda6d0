"""A trigger in a file or in options is read as one in a request, and refused at the same field, as it was written."""

from typing import Any

import pytest

from hascheduler.errors import InvalidInput
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.noun import read_request
from hascheduler.schema.trigger_bodies import HasTrigger, show_trigger
from hascheduler.triggers.requests import checked_trigger, read_trigger, trigger_of

NOW = WallMs(1_893_456_000_000)  # 2030-01-01T00:00:00Z
_LATER = "2031-01-01T00:00:00Z"

GOOD: list[dict[str, Any]] = [
    {"type": "cron", "expression": "30 2 * * *", "timezone": "Europe/Paris"},
    {"type": "cron", "expression": "@daily"},
    {"type": "cron", "expression": "@every 90s", "timezone": "Europe/Paris"},
    {"type": "cron", "expression": "0 9 15W,L-3 * ?", "timezone": "europe/paris"},
    {"type": "interval", "every": "1m30s", "jitter": 5},
    {"type": "interval", "every": 90, "anchor": "2029-01-01T00:00:17+01:00"},
    {"type": "times", "at": [_LATER, "2032-01-01T00:00:00.5Z"]},
    {"type": "once", "at": _LATER, "jitter": "1s", "max_fires": None, "exclude": []},
    {
        "type": "interval",
        "every": "1h",
        "start_at": "2030-06-01T00:00:00Z",
        "end_at": _LATER,
        "max_fires": 3,
        "exclude": [{"from": "2030-07-01T00:00:00Z", "to": "2030-08-01T00:00:00Z"}],
    },
]

BAD: list[tuple[Any, str]] = [
    (None, "trigger"),
    ({}, "trigger.type"),
    ({"type": "hourly"}, "trigger.type"),
    ({"type": "cron"}, "trigger.expression"),
    ({"type": "cron", "expression": 5}, "trigger.expression"),
    ({"type": "cron", "expression": "@daily", "every": "1s"}, "trigger.every"),
    ({"type": "interval", "every": "1s", "exclude": [{"from": _LATER, "to": 5}]}, "trigger.exclude.0.to"),
    ({"type": "times", "at": [_LATER, "soon"]}, "trigger.at.1"),
    ({"type": "once", "at": _LATER, "color": "red"}, "trigger.color"),
]


@pytest.mark.parametrize("body", GOOD)
def test_it_reads_what_the_api_reads_and_shows(body: dict[str, Any]) -> None:
    trigger = read_trigger(body, NOW)
    assert trigger == trigger_of(read_request(HasTrigger, {"trigger": body}).trigger, None, NOW)
    shown = show_trigger(trigger).model_dump(mode="json", by_alias=True)
    assert read_trigger(shown, WallMs(0)) == trigger


@pytest.mark.parametrize(("body", "where"), BAD)
def test_it_refuses_what_the_api_refuses(body: Any, where: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_trigger(body, NOW)
    assert ".".join(str(part) for part in refused.value.path) == where
    with pytest.raises(InvalidInput):
        read_request(HasTrigger, {"trigger": body})


_HOURLY = {"type": "cron", "expression": "0 * * * *"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"type": "interval", "every": "0.05s"}, "every: 0.05s is too short; expected at least 100ms"),
        ({"type": "interval", "every": 0.05}, "every: 0.05s is too short; expected at least 100ms"),
        ({"type": "cron", "expression": "@every 0.05s"}, "expression: 0.05s is too short; expected at least 100ms"),
        ({"type": "interval", "every": "90s", "jitter": "1.5m"},
         "jitter: 1.5m is not shorter than the time between two fires; expected less than 90s"),
        ({**_HOURLY, "jitter": "90m"},
         "jitter: 90m is not shorter than the time between two fires; expected less than 1h"),
        ({"type": "once", "at": "2031-01-01T00:00:00Z", "jitter": 100_000}, "jitter: 100000s is too long"),
        ({"type": "any", "of": [_HOURLY, {"type": "interval", "every": "5000s"}]},
         "of.1.every: 5000s can't be combined with other patterns; expected 1m to 1d"),
        ({"type": "any", "of": [_HOURLY, {**_HOURLY, "expression": "30 * * * *"}], "jitter": "90m"},
         "jitter: 90m is not shorter than the time between two fires of one pattern; expected less than 1h"),
    ],
)  # fmt: skip
def test_a_span_of_a_trigger_is_refused_as_it_was_written(given: Any, said: str) -> None:
    with pytest.raises(InvalidInput) as of_file:
        checked_trigger(given, NOW)
    with pytest.raises(InvalidInput) as of_request:
        trigger_of(read_request(HasTrigger, {"trigger": given}).trigger, None, NOW)
    assert str(of_file.value).startswith(f"trigger.{said}")
    assert str(of_request.value) == str(of_file.value)
