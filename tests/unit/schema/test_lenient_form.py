"""What is made of a schedule as somebody wrote it: each field alone, and nothing that says no more than its default."""

from typing import Any

import pytest

from hascheduler.schema.lenient_form import lenient_form
from hascheduler.schema.schedule_bodies import CreateScheduleBody

_EXCLUDED = {"from": "2030-01-01T00:00:00+01:00", "to": "2030-01-01T00:00:00.000Z"}


@pytest.mark.parametrize(
    ("given", "normal"),
    [
        (
            {"trigger": {"exclude": [_EXCLUDED, 5], "jitter": 0, "at": "2030-01-01T00:00:00z", "type": "once"}},
            {
                "trigger": {
                    "type": "once",
                    "at": "2030-01-01T00:00:00Z",
                    "exclude": [{"from": "2029-12-31T23:00:00Z", "to": "2030-01-01T00:00:00Z"}, 5],
                }
            },
        ),
        ({"trigger": {"type": "newer", "jitter": 0}}, {"trigger": {"type": "newer", "jitter": 0}}),
        ({"job": {"target": "2030-01-01T00:00:00.000Z"}, "labels": {"a": "60s"}}, None),
        ({"misfire": {"grace": 60, "newer": 1}, "overlap": "allow"}, {"misfire": {"newer": 1}}),
    ],
)
def test_each_field_has_one_form_or_stays(given: dict[str, Any], normal: dict[str, Any] | None) -> None:
    """None: as it was given."""
    shown = lenient_form(CreateScheduleBody, given)
    assert shown == (given if normal is None else normal)
    assert list(shown) == list(given if normal is None else normal)
