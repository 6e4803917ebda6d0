"""``/v1/schedules/{name}/pause``, ``…/resume`` and ``…/reset``: repeating any of them is harmless."""

from collections.abc import Mapping
from typing import Any, Literal

from fastapi import APIRouter, Response
from pydantic import ConfigDict, Field

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.middleware.audit import Noted
from hascheduler.api.middleware.auth import Operator
from hascheduler.api.routing.queries import PathName
from hascheduler.api.routing.revisions import TAGGED, IfMatch
from hascheduler.api.routing.route_rules import JsonRoute
from hascheduler.api.schedules.edits import ScheduleChange, ScheduleEdit, edit_schedule
from hascheduler.api.schedules.tenant_scope import readable_schedule, schedule_response
from hascheduler.api.services import Services
from hascheduler.dispatch.schedules.edits import paused, resumed
from hascheduler.errors import Conflict
from hascheduler.model.documents.schedule import encode_schedule_edit
from hascheduler.ports import StoredDocument
from hascheduler.schema.schedule_bodies import ScheduleResponse
from hascheduler.wire.fields import StrictModel, Text

router = APIRouter(prefix="/schedules", tags=["schedules"], route_class=JsonRoute)


class PauseBody(StrictModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"because": "the printer is on fire"}]})

    because: Text | None = Field(default=None, description="Why, for people; default: as it was")


class ResumeBody(StrictModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"catch_up": True}]})

    catch_up: bool = Field(
        default=False,
        description="What becomes of the nominal times since the pause: false: the verdict `paused`; true: the misfire "
        "policy says",
    )


class ResetBody(StrictModel):
    model_config = ConfigDict(populate_by_name=True, json_schema_extra={"examples": [{"from": "now"}]})

    start: Literal["now"] = Field(default="now", alias="from", description="The times after this instant fire again")


@router.post("/{name}/pause", responses={200: TAGGED, **problem_responses(404, 409, 412, 422)})
async def pause_schedule(
    name: PathName,
    services: Services,
    caller: Operator,
    response: Response,
    note: Noted,
    *,
    precondition: IfMatch,
    body: PauseBody | None = None,
) -> ScheduleResponse:
    """The nominal times after this instant do not fire until it is resumed. Jobs that it made go on."""
    because = note.because = None if body is None else body.because
    document = await edit_schedule(name, caller, services, precondition, pausing(because))
    return schedule_response(document, response, services, caller)


@router.post("/{name}/resume", responses={200: TAGGED, **problem_responses(404, 409, 412, 422)})
async def resume_schedule(
    name: PathName,
    services: Services,
    caller: Operator,
    response: Response,
    *,
    precondition: IfMatch,
    body: ResumeBody | None = None,
) -> ScheduleResponse:
    """The nominal times after this instant fire again; with `catch_up`, so do those since the pause."""
    catch_up = body is not None and body.catch_up
    document = await edit_schedule(name, caller, services, precondition, resuming(catch_up=catch_up))
    return schedule_response(document, response, services, caller)


@router.post("/{name}/reset", responses={200: TAGGED, **problem_responses(404, 409, 412, 422)})
async def reset_schedule(
    name: PathName,
    services: Services,
    caller: Operator,
    response: Response,
    *,
    precondition: IfMatch,
    body: ResetBody | None = None,
) -> ScheduleResponse:
    """A schedule that fired ahead of time, by a clock that was wrong, fires again from now on; `ahead_until` says
    whether it is one. Times that have a job already keep it and do not fire again. The leader does it, at once."""
    document = await edit_schedule(name, caller, services, precondition, resetting)
    return schedule_response(document, response, services, caller)


def pausing(because: str | None) -> ScheduleChange:
    """The change of a pause; ``because`` None: as it was."""

    def change(stored: StoredDocument, edit: ScheduleEdit) -> Mapping[str, Any]:
        schedule = readable_schedule(stored)
        reason = {} if schedule.paused_at_ms is not None and because is None else {"paused_because": because}
        return {**encode_schedule_edit(paused(schedule, edit.now)), **reason}

    return change


def resuming(*, catch_up: bool) -> ScheduleChange:
    """The change of a resume."""

    def change(stored: StoredDocument, edit: ScheduleEdit) -> Mapping[str, Any]:
        schedule = readable_schedule(stored)
        if schedule.paused_at_ms is None:
            return {}
        edited = resumed(schedule, edit.now, from_now=not catch_up)
        return {**encode_schedule_edit(edited), "paused_because": None, "failures": edited.failures}

    return change


def resetting(stored: StoredDocument, edit: ScheduleEdit) -> Mapping[str, Any]:
    """The change of a reset; `Conflict` if the schedule is paused."""
    schedule = readable_schedule(stored)
    if schedule.reset_at_ms is not None or not schedule.is_ahead(edit.now):
        return {}
    if schedule.paused_at_ms is not None:
        raise Conflict(f"schedule {schedule.name!r} is paused; resume it first, and reset it then")
    return {"reset_at_ms": edit.now}
