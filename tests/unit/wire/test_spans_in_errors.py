"""Errors show a span in the unit that its author wrote, and never as the number that the core keeps."""

from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter

from hascheduler.api.jobs.submit import WaitQuery
from hascheduler.api.jobs.waiting import WaitForJobQuery
from hascheduler.api.ops.recording import RecordingQuery
from hascheduler.api.resources.tokens import CreateTokenBody
from hascheduler.errors import InvalidInput
from hascheduler.model.values.instants import WallMs
from hascheduler.wire.definition import DefinitionBody
from hascheduler.wire.lane import LaneBody
from hascheduler.wire.tenant import TenantBody
from hascheduler.wire.trigger import TriggerBody, checked_trigger, trigger_of
from hascheduler.wire.validation import validated

_TOKEN = {"name": "a", "role": "viewer", "tenant": "*"}


@pytest.mark.parametrize(
    ("model", "given", "said"),
    [
        (DefinitionBody, {"timeout": "90s", "total_timeout": "1m"},
         "timeout: the timeout 90s is longer than the total_timeout 1m"),
        (DefinitionBody, {"timeout": 90, "total_timeout": "0.5m"},
         "timeout: the timeout 90s is longer than the total_timeout 0.5m"),
        (DefinitionBody, {"retry": {"backoff": "90s"}}, "retry: the backoff 90s is longer than max 1m"),
        (DefinitionBody, {"retry": {"backoff": 2.5, "max": "2000ms"}},
         "retry: the backoff 2.5s is longer than max 2000ms"),
        (DefinitionBody, {"default_cost": "200h"}, "default_cost: 200h is out of range; expected 0s to 7d"),
        (DefinitionBody, {"timeout": 2_500_000}, "timeout: 2500000s is out of range; expected 1ms to 28d"),
        (LaneBody, {"promote_after": "10080m1s"}, "promote_after: 10080m1s is out of range; expected 1s to 7d"),
        (TenantBody, {"fire_rate": {"count": 1, "per": "169h"}}, "fire_rate.per: 169h is out of range"),
        (WaitForJobQuery, {"wait": "6m"}, "wait: 6m is out of range; expected 0s to 5m"),
        (WaitQuery, {"wait": "301"}, "wait: 301s is out of range; expected 0s to 5m"),
        (RecordingQuery, {"for": "50ms"}, "for: 50ms is out of range; expected 100ms to "),
        (CreateTokenBody, {**_TOKEN, "expires_in": "100ms"}, "expires_in: 100ms is out of range; expected 1s to 3660d"),
    ],
)  # fmt: skip
def test_a_span_is_refused_as_it_was_written(model: type[BaseModel], given: Any, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        validated(model, given)
    assert str(refused.value).startswith(said)


_HOURLY = {"type": "cron", "expression": "0 * * * *"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"type": "interval", "every": "0.05s"}, "every: 0.05s is too short; expected at least 100ms"),
        ({"type": "interval", "every": 0.05}, "every: 0.05s is too short; expected at least 100ms"),
        ({"type": "cron", "expression": "@every 0.05s"}, "expression: 0.05s is too short; expected at least 100ms"),
        ({"type": "interval", "every": "90s", "jitter": "1.5m"},
         "jitter: 1.5m is as long as the time between two fires, or longer; expected less than 90s"),
        ({**_HOURLY, "jitter": "90m"},
         "jitter: 90m is as long as the time between two fires, or longer; expected less than 1h"),
        ({"type": "once", "at": "2031-01-01T00:00:00Z", "jitter": 100_000}, "jitter: 100000s is too long"),
        ({"type": "any", "of": [_HOURLY, {"type": "interval", "every": "5000s"}]},
         "of.1.every: 5000s among other patterns; expected 1m to 1d"),
        ({"type": "any", "of": [_HOURLY, {**_HOURLY, "expression": "30 * * * *"}], "jitter": "90m"},
         "jitter: 90m is as long as the time between two fires of one pattern, or longer; expected less than 1h"),
    ],
)  # fmt: skip
def test_a_span_of_a_trigger_is_refused_as_it_was_written(given: Any, said: str) -> None:
    now = WallMs(1_893_456_000_000)  # 2030-01-01T00:00:00Z
    with pytest.raises(InvalidInput) as of_file:
        checked_trigger(given, now)
    with pytest.raises(InvalidInput) as of_request:
        trigger_of(TypeAdapter(TriggerBody).validate_python(given), None, now)
    assert str(of_file.value).startswith(f"trigger.{said}")
    assert str(of_request.value) == str(of_file.value)
