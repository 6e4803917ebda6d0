"""Lanes: the classes of work, and how they share."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field, PlainSerializer, PlainValidator, TypeAdapter, ValidationError, WithJsonSchema

from hascheduler.errors import InvalidInput
from hascheduler.model.policy import PRESETS, Criteria, Criterion, criteria
from hascheduler.model.values.durations import format_duration
from hascheduler.model.values.error_texts import quoted
from hascheduler.schema.lane import (
    PRIORITY_MAX,
    PROMOTE_AFTER_MS_DEFAULT,
    PROMOTE_AFTER_MS_MIN,
    WEIGHT_MAX,
    Lane,
)
from hascheduler.wire.fields import WEEK_MS, DurationMs, NullIs, Owner, Revisioned, StrictModel, between, invalid_value

_PRIORITIES = PRIORITY_MAX + 1
_POLICY_EXPECTED = f"a preset ({', '.join(PRESETS)}) or a list of {', '.join(Criterion)}"
_EXAMPLE: dict[str, Any] = {
    "weight": 2,
    "promote_after": "1m",
    "policy": ["aged_priority", "arrival"],
    "owner": "team-a",
}

_step = TypeAdapter(Annotated[DurationMs, between(PROMOTE_AFTER_MS_MIN, WEEK_MS)])


def _steps(value: Any) -> tuple[int, ...]:
    """One span, or one for each priority."""
    if not isinstance(value, list):
        return (_span(value),)
    if len(value) != _PRIORITIES:
        raise invalid_value(f"a list of {len(value)}", f"one span, or {_PRIORITIES}: one for each priority from 0")
    return tuple(_span(one) for one in value)


def _span(value: Any) -> int:
    try:
        return _step.validate_python(value)
    except ValidationError as error:
        context = error.errors()[0]["ctx"]
        raise invalid_value(context["problem"], context["expected"]) from None


def _criteria(value: Any) -> Criteria:
    if not isinstance(value, str | list) or not all(isinstance(name, str) for name in value):
        raise invalid_value(f"{quoted(value)} is no policy", _POLICY_EXPECTED)
    try:
        return criteria(value)
    except InvalidInput as error:
        raise invalid_value(error.problem, error.expected) from None


def _shown_steps(steps_ms: tuple[int, ...]) -> str | list[str]:
    steps = [format_duration(step_ms) for step_ms in steps_ms]
    return steps[0] if len(steps) == 1 else steps


def _listed(criteria: Criteria) -> list[Criterion]:
    return list(criteria)


_SPAN_SCHEMA = {"anyOf": [{"type": "string"}, {"type": "number"}]}
PromoteAfter = Annotated[
    tuple[int, ...],
    PlainValidator(_steps),
    PlainSerializer(_shown_steps, when_used="json"),
    WithJsonSchema(
        {
            "anyOf": [
                *_SPAN_SCHEMA["anyOf"],
                {"type": "array", "items": _SPAN_SCHEMA, "minItems": _PRIORITIES, "maxItems": _PRIORITIES},
            ]
        },
        mode="validation",
    ),
]
LanePolicy = Annotated[
    Criteria,
    PlainValidator(_criteria),
    PlainSerializer(_listed, when_used="json"),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "enum": [*PRESETS]},
                {"type": "array", "items": {"type": "string", "enum": [*Criterion]}, "uniqueItems": True},
            ]
        },
        mode="validation",
    ),
]


class LaneBody(StrictModel):
    """A class of work; what is left out, or null, gets its default."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    weight: Annotated[int, Field(ge=1, le=WEIGHT_MAX), NullIs(1)] = Field(
        default=1, description="Twice the weight, twice the share of the cluster; default 1"
    )
    promote_after: Annotated[PromoteAfter, NullIs((PROMOTE_AFTER_MS_DEFAULT,))] = Field(
        default=(PROMOTE_AFTER_MS_DEFAULT,),
        description="So long does a job wait for each step that its priority grows by: one span, or one for each "
        "priority from 0 to 10; default 1m",
    )
    policy: LanePolicy | None = Field(
        default=None,
        description="How the lane's own jobs are ordered, where the deployment's policy begins with `lane`: a preset, "
        "or criteria one after the other; null: as the deployment's policy does",
    )
    owner: Owner = None

    def resource(self, name: str, rev: int = 0) -> Lane:
        return Lane(
            name=name,
            rev=rev,
            weight=self.weight,
            promote_after_ms=self.promote_after,
            criteria=self.policy,
            owner=self.owner,
        )


class LaneResponse(LaneBody, Revisioned):
    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "bulk", "rev": 2, **_EXAMPLE}]})

    @classmethod
    def of(cls, lane: Lane) -> "LaneResponse":
        return cls.model_construct(
            name=lane.name,
            rev=lane.rev,
            weight=lane.weight,
            promote_after=lane.promote_after_ms,
            policy=lane.criteria,
            owner=lane.owner,
        )
