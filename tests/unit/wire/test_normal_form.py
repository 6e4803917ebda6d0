"""What a model makes of what was said: each field alone, and nothing that says no more than its default."""

from typing import Any

import pytest
from pydantic import BaseModel

from hascheduler.wire.definition import DefinitionBody
from hascheduler.wire.lane import LaneBody
from hascheduler.wire.normal_form import normal_form
from hascheduler.wire.tenant import TenantBody


@pytest.mark.parametrize(
    ("model", "given", "normal"),
    [
        (TenantBody, {"max_pending": 0, "max_running": "3"}, {"max_running": "3", "max_pending": 0}),
        (TenantBody, {"fire_rate": {"per": 60, "count": 0}}, {"fire_rate": {"count": 0, "per": "1m"}}),
        (TenantBody, {"newer": 60, "max_running": 5, "new": None}, {"max_running": 5, "newer": 60}),
        (LaneBody, {"policy": "fair", "weight": True}, {"weight": True, "policy": ["tier", "fairness", "arrival"]}),
        # Each of these breaks a rule over two fields.
        (DefinitionBody, {"retry": {"backoff": 7200, "max": "60s"}}, {"retry": {"backoff": "2h"}}),
        (DefinitionBody, {"timeout": 60, "total_timeout": 1}, {"timeout": "1m", "total_timeout": "1s"}),
        (DefinitionBody, {"retry": {"attempts": 5, "newer": 1}}, {"retry": {"newer": 1}}),
    ],
)
def test_each_field_has_one_form_or_stays(
    model: type[BaseModel], given: dict[str, Any], normal: dict[str, Any] | None
) -> None:
    """None: as it was given."""
    shown = normal_form(model, given)
    assert shown == (given if normal is None else normal)
    assert list(shown) == list(given if normal is None else normal)
