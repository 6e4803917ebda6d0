"""One model a noun: what is shown may be sent again, and schemas say what would be sent."""

from typing import Any

import pytest
from pydantic import BaseModel

from hascheduler.errors import InvalidInput
from hascheduler.model.definition import ConflictScope, Definition, RateLimit
from hascheduler.model.lane import Lane
from hascheduler.model.policy import PRESETS
from hascheduler.model.retry import RetryPolicy
from hascheduler.model.tenant import Tenant
from hascheduler.model.trigger import Interval, Trigger, Window
from hascheduler.model.values.instants import WallMs
from hascheduler.wire.definition import DefinitionBody, DefinitionResponse, RetryBody
from hascheduler.wire.lane import LaneBody, LaneResponse
from hascheduler.wire.schedule import CreateScheduleBody, MisfireBody
from hascheduler.wire.tenant import TenantBody, TenantResponse
from hascheduler.wire.trigger import IntervalBody, show_trigger, trigger_of
from hascheduler.wire.validation import validated

_DEFINITION = Definition(
    "a", 3, 2, 90_000, "git", 4, RateLimit(3, 60_000), (("cpu", 2),), RetryPolicy(3, 500, 1_500, 9_000), 1, 2,
    ConflictScope.TENANT, "team-a",
)  # fmt: skip
_LANE = Lane("b", 3, 5, tuple(range(1_000, 12_000, 1_000)), PRESETS["fair"], "team-a")
_TENANT = Tenant("c", 3, 1, 2, RateLimit(3, 4_000), 5, RateLimit(6, 7_000), "team-b")


@pytest.mark.parametrize(
    ("noun", "answer", "request_model"),
    [
        (_DEFINITION, DefinitionResponse, DefinitionBody),
        (Definition("a", 3), DefinitionResponse, DefinitionBody),
        (_LANE, LaneResponse, LaneBody),
        (Lane("b", 3), LaneResponse, LaneBody),
        (_TENANT, TenantResponse, TenantBody),
        (Tenant("c", 3), TenantResponse, TenantBody),
    ],
)
def test_what_an_answer_shows_means_the_same_in_a_request(noun: Any, answer: Any, request_model: Any) -> None:
    shown = answer.of(noun).model_dump(mode="json")
    assert [*shown][:2] == ["name", "rev"]
    sent = {name: value for name, value in shown.items() if name in request_model.model_fields}
    assert {*sent} == {*request_model.model_fields}
    assert validated(request_model, sent).resource(noun.name, noun.rev) == noun


def test_a_trigger_that_is_shown_means_the_same_in_a_request() -> None:
    trigger = Trigger(
        Interval(90_000, WallMs(17)), 1_000, WallMs(1_000_000), WallMs(9_000_000), 3, (Window(WallMs(2), WallMs(3)),)
    )
    shown = show_trigger(trigger).model_dump(mode="json", by_alias=True)
    assert trigger_of(validated(IntervalBody, shown), trigger, WallMs(0)) == trigger


@pytest.mark.parametrize("model", [DefinitionBody, RetryBody, LaneBody, TenantBody, MisfireBody, IntervalBody])
def test_the_defaults_in_a_schema_are_those_that_would_be_sent(model: type[BaseModel]) -> None:
    properties = model.model_json_schema()["properties"]
    defaults = {name: field["default"] for name, field in properties.items() if "default" in field}
    required = {"type": "interval", "every": "7s"} if model is IntervalBody else {}
    said = {name: value for name, value in defaults.items() if name != "conflict_scope"}
    assert said
    assert validated(model, {**required, **said}).model_dump() == validated(model, required).model_dump()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"name": "a", "trigger": {"type": "cron", "expresion": "@daily"}, "job": {"definition": "x"}},
         "trigger.expresion: no such field; expected expression"),
        ({"name": "a", "trigger": {"type": "once", "at": "2030-01-01T00:00:00Z"}, "job": {"defintion": "x"}},
         "job.defintion: no such field; expected definition"),
        ({"name": "a", "trigger": {"type": "once", "at": 1, "exclude": [{"from": "x", "two": 1}]}, "job": {}},
         "trigger.exclude.0.two: no such field; expected to"),
        ({"name": "a", "trigger": {"type": "once"}, "job": {"definition": "x"}}, "trigger.at: missing"),
        ([], "a list is not an object"),
    ],
)  # fmt: skip
def test_the_first_error_is_the_misspelt_field_with_what_may_be_meant(body: object, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        validated(CreateScheduleBody, body)
    assert said in str(refused.value)
