"""Errors show a span in the unit that its author wrote, and never as the number that the core keeps."""

from typing import Any

import pytest
from pydantic import BaseModel

from hascheduler.api.jobs.waiting import WaitForJobQuery
from hascheduler.api.ops.cluster import RecordingQuery
from hascheduler.errors import InvalidInput
from hascheduler.schema.definition import DefinitionBody
from hascheduler.schema.lane import LaneBody
from hascheduler.schema.noun import read_request
from hascheduler.schema.tenant import TenantBody
from hascheduler.schema.token import CreateTokenBody

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
        (RecordingQuery, {"for": "50ms"}, "for: 50ms is out of range; expected 100ms to "),
        (CreateTokenBody, {**_TOKEN, "expires_in": "100ms"}, "expires_in: 100ms is out of range; expected 1s to 3660d"),
    ],
)  # fmt: skip
def test_a_span_is_refused_as_it_was_written(model: type[BaseModel], given: Any, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_request(model, given)
    assert str(refused.value).startswith(said)
