"""``/v1/lanes``: the classes of work, and how they share. A job of an unknown lane is in one with the defaults."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field, PlainValidator, TypeAdapter, ValidationError, WithJsonSchema

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.middleware.auth import AdminOfAll, Viewer
from hascheduler.api.resources.handler import GET, PATCH, ResourceHandler, patch_body, put_answers
from hascheduler.api.routing.body import JsonRoute
from hascheduler.api.routing.field_types import WEEK_MS, DurationMs, Name, StrictModel, between, invalid_value
from hascheduler.api.routing.queries import Page, Paging
from hascheduler.api.routing.revisions import IfMatch, IfNoneMatch
from hascheduler.api.services import Services
from hascheduler.errors import InvalidInput
from hascheduler.model.documents.lane import decode_lane
from hascheduler.model.durations import format_duration
from hascheduler.model.lane import (
    PRIORITY_MAX,
    PROMOTE_AFTER_MS_DEFAULT,
    PROMOTE_AFTER_MS_MIN,
    WEIGHT_MAX,
    Lane,
)
from hascheduler.model.policy import PRESETS, Criteria, Criterion, criteria
from hascheduler.model.repr_limits import quoted

_PRIORITIES = PRIORITY_MAX + 1
_POLICY_EXPECTED = f"a preset ({', '.join(PRESETS)}) or a list of {', '.join(Criterion)}"
_EXAMPLE: dict[str, Any] = {"weight": 2, "promote_after": "1m", "policy": ["aged_priority", "arrival"]}

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


_SPAN_SCHEMA = {"anyOf": [{"type": "string"}, {"type": "number"}]}
PromoteAfter = Annotated[
    tuple[int, ...],
    PlainValidator(_steps),
    WithJsonSchema(
        {
            "anyOf": [
                *_SPAN_SCHEMA["anyOf"],
                {"type": "array", "items": _SPAN_SCHEMA, "minItems": _PRIORITIES, "maxItems": _PRIORITIES},
            ]
        }
    ),
]
LanePolicy = Annotated[
    Criteria,
    PlainValidator(_criteria),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "enum": [*PRESETS]},
                {"type": "array", "items": {"type": "string", "enum": [*Criterion]}, "uniqueItems": True},
            ]
        }
    ),
]


class LaneBody(StrictModel):
    """A class of work; what is left out, or null, gets its default."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    weight: int | None = Field(
        default=None, ge=1, le=WEIGHT_MAX, description="Twice the weight, twice the share of the cluster; default 1"
    )
    promote_after: PromoteAfter | None = Field(
        default=None,
        description="So long does a job wait for each step that its priority grows by: one span, or one for each "
        "priority from 0 to 10; default 1m",
    )
    policy: LanePolicy | None = Field(
        default=None,
        description="How the lane's own jobs are ordered, where the deployment's policy begins with `lane`: a preset, "
        "or criteria one after the other; null: as the deployment's policy does",
    )

    def resource(self, name: str, rev: int = 0) -> Lane:
        return Lane(
            name=name,
            rev=rev,
            weight=1 if self.weight is None else self.weight,
            promote_after_ms=(PROMOTE_AFTER_MS_DEFAULT,) if self.promote_after is None else self.promote_after,
            criteria=self.policy,
        )


class LaneResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "bulk", "rev": 2, **_EXAMPLE}]})

    name: str
    rev: int = Field(description="Grows with every edit")
    weight: int
    promote_after: str | list[str]
    policy: list[Criterion] | None


def show_lane(lane: Lane) -> LaneResponse:
    steps = [format_duration(step_ms) for step_ms in lane.promote_after_ms]
    return LaneResponse(
        name=lane.name,
        rev=lane.rev,
        weight=lane.weight,
        promote_after=steps[0] if len(steps) == 1 else steps,
        policy=None if lane.criteria is None else list(lane.criteria),
    )


router = APIRouter(prefix="/lanes", tags=["lanes"], route_class=JsonRoute)

_lanes = ResourceHandler("lane", lambda services: services.lanes, LaneBody, decode_lane, show_lane)

Patch = Annotated[dict[str, Any], patch_body("a lane", {"weight": 2, "policy": None})]


@router.put("/{name}", responses=put_answers(LaneResponse))
async def put_lane(
    name: Name,
    body: LaneBody,
    services: Services,
    caller: AdminOfAll,
    response: Response,
    *,
    precondition: IfMatch,
    unless: IfNoneMatch,
) -> LaneResponse:
    """Create (201) or replace (200) a lane; with If-Match only replace, with If-None-Match: * only create it."""
    return await _lanes.put(name, body, services, response, precondition=precondition, unless=unless)


@router.get("", responses=problem_responses(422))
async def list_lanes(paging: Paging, services: Services, caller: Viewer) -> Page[LaneResponse]:
    """Lanes by name, a page at a time."""
    return await _lanes.list(paging, services)


@router.get("/{name}", response_model=LaneResponse, responses=GET)
async def get_lane(
    name: str, services: Services, caller: Viewer, response: Response, known: IfNoneMatch
) -> LaneResponse | Response:
    """One lane."""
    return await _lanes.get(name, services, response, known)


@router.patch("/{name}", responses=PATCH)
async def patch_lane(
    name: Name, body: Patch, services: Services, caller: AdminOfAll, response: Response, *, precondition: IfMatch
) -> LaneResponse:
    """Change parts of a lane: a JSON merge patch on what GET shows, which is then checked like a PUT."""
    return await _lanes.patch(name, body, services, response, precondition=precondition)


@router.delete("/{name}", status_code=HTTPStatus.NO_CONTENT, responses=problem_responses(404, 409, 412, 422))
async def delete_lane(name: str, services: Services, caller: AdminOfAll, precondition: IfMatch) -> None:
    """Delete a lane. Its jobs go on, in a lane with the defaults."""
    await _lanes.delete(name, services, precondition)
