"""``/v1/schedules``: when which job is made."""

from http import HTTPStatus
from urllib.parse import quote

from fastapi import APIRouter, Response

from hascheduler.api.body import JsonRoute
from hascheduler.api.pages import Page, Paging, page
from hascheduler.api.refusals import Unreadable
from hascheduler.api.schedule_schemas import (
    CreateScheduleBody,
    IntervalBody,
    OnceBody,
    ReplaceScheduleBody,
    ScheduleResponse,
    show_schedule,
)
from hascheduler.api.services import Services
from hascheduler.api.texts import Name
from hascheduler.errors import Conflict, InvalidInput, NotFound
from hascheduler.model.documents import decode_trigger
from hascheduler.model.instants import WallMs, format_instant
from hascheduler.model.trigger import IntervalTrigger, OnceTrigger, Trigger
from hascheduler.ports import NewSchedule, StoredDocument

router = APIRouter(prefix="/schedules", tags=["schedules"], route_class=JsonRoute)

_REPLACE_TRIES_MAX = 5


@router.post("", status_code=HTTPStatus.CREATED)
async def create_schedule(body: CreateScheduleBody, services: Services, response: Response) -> ScheduleResponse:
    """Create a schedule; 409 when the name is taken."""
    now = services.clock.wall_ms()
    document = await services.schedules.create(_new_schedule(body.name, body, _trigger(body.trigger, None, now), now))
    if document is None:
        raise Conflict(f"there is a schedule {body.name!r} already; replace it with PUT, or delete it first")
    response.headers["Location"] = f"/v1/schedules/{quote(body.name)}"
    return _shown(document)


@router.get("")
async def list_schedules(paging: Paging, services: Services) -> Page[ScheduleResponse]:
    """Schedules by name, a page at a time."""
    documents = await services.schedules.list(paging.after, paging.limit + 1)
    return page(documents, paging.limit, show_schedule)


@router.get("/{name}")
async def get_schedule(name: str, services: Services) -> ScheduleResponse:
    return _shown(await _stored(name, services))


@router.put("/{name}")
async def replace_schedule(name: Name, body: ReplaceScheduleBody, services: Services) -> ScheduleResponse:
    """Replace a schedule as a whole; 404 when there is none.

    Nominal times that were decided stay decided. With another trigger, those before now are left out.
    """
    if body.name is not None and body.name != name:
        raise InvalidInput(("name",), f"{body.name!r} is not the name in the path", f"{name!r}, or nothing")
    for _ in range(_REPLACE_TRIES_MAX):
        stored = await _stored(name, services)
        now = services.clock.wall_ms()
        schedule = _new_schedule(name, body, _trigger(body.trigger, _stored_trigger(stored), now), now)
        # The anchor came from that revision, so it must be that one which is replaced.
        document = await services.schedules.replace(schedule, stored.get("rev"))
        if document is not None:
            return _shown(document)
    raise Conflict(f"schedule {name!r} is being changed by others; try again")


@router.delete("/{name}", status_code=HTTPStatus.NO_CONTENT)
async def delete_schedule(name: str, services: Services) -> None:
    """Delete a schedule. Jobs that it made go on."""
    if not await services.schedules.delete(name):
        raise NotFound("schedule", name)


def _new_schedule(name: str, body: ReplaceScheduleBody, trigger: Trigger, now: WallMs) -> NewSchedule:
    return NewSchedule(
        name=name,
        trigger=trigger,
        template=body.job.template(name),
        payload=body.job.payload,
        labels=body.labels,
        now=now,
    )


def _trigger(body: IntervalBody | OnceBody, stored: Trigger | None, now: WallMs) -> Trigger:
    return _interval(body, stored, now) if isinstance(body, IntervalBody) else _once(body, stored, now)


def _interval(body: IntervalBody, stored: Trigger | None, now: WallMs) -> IntervalTrigger:
    if body.anchor is not None:
        return IntervalTrigger(body.every, WallMs(body.anchor))
    # A replacement keeps the phase, so that editing a payload does not shift the nominal times.
    return IntervalTrigger(body.every, stored.anchor_ms if isinstance(stored, IntervalTrigger) else now)


def _once(body: OnceBody, stored: Trigger | None, now: WallMs) -> OnceTrigger:
    trigger = OnceTrigger(WallMs(body.at))
    # The stored one may be sent again: with the same trigger the cursor stays where it is.
    if body.at <= now and trigger != stored:
        problem = f"{format_instant(body.at)} has passed, so it would never fire"
        raise InvalidInput(("trigger", "at"), problem, f"an instant after {format_instant(now)}")
    return trigger


async def _stored(name: str, services: Services) -> StoredDocument:
    document = await services.schedules.get(name)
    if document is None:
        raise NotFound("schedule", name)
    return document


def _stored_trigger(document: StoredDocument) -> Trigger | None:
    try:
        return decode_trigger(document.get("trigger"))
    except InvalidInput:
        return None  # written by hand and broken: this replacement repairs it


def _shown(document: StoredDocument) -> ScheduleResponse:
    try:
        return show_schedule(document)
    except InvalidInput as error:
        raise Unreadable("schedule", str(document["_id"]), error) from error
