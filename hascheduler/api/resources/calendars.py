"""``/v1/calendars``: the days that schedules share. One that schedules use can't be deleted."""

from functools import partial
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Response

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.middleware.auth import AdminOfAll, Viewer
from hascheduler.api.resources.handler import GET, PATCH, ResourceHandler, patch_body, put_answers
from hascheduler.api.routing.queries import CheckedPathName, Page, Paging, PathName, page_in_slices
from hascheduler.api.routing.revisions import IfMatch, IfNoneMatch
from hascheduler.api.routing.route_rules import JsonRoute
from hascheduler.api.services import ApiServices, Services
from hascheduler.errors import Conflict, InvalidInput
from hascheduler.model.documents.schedule import decode_schedule
from hascheduler.schema.calendar import Calendar
from hascheduler.schema.noun import read_document
from hascheduler.triggers import calendars_of
from hascheduler.wire.calendar import CalendarBody, CalendarResponse

router = APIRouter(prefix="/calendars", tags=["calendars"], route_class=JsonRoute)

_calendars = ResourceHandler(
    "calendar", lambda services: services.calendars, CalendarBody, partial(read_document, Calendar), CalendarResponse.of
)
_USERS_SHOWN_MAX = 10

Patch = Annotated[dict[str, Any], patch_body("a calendar", {"exclude": ["--12-25", "--12-26"]})]


@router.put("/{name}", responses=put_answers(CalendarResponse))
async def put_calendar(
    name: CheckedPathName,
    body: CalendarBody,
    services: Services,
    caller: AdminOfAll,
    response: Response,
    *,
    precondition: IfMatch,
    unless: IfNoneMatch,
) -> CalendarResponse:
    """Create (201) or replace (200) a calendar; with If-Match only replace, with If-None-Match: * only create it.

    Schedules that use it follow it from then on, for all nominal times that are not decided: a fire is decided when it
    is due, a time that does not fire when its local day is over.
    """
    return await _calendars.put(name, body, services, response, precondition=precondition, unless=unless)


@router.get("", response_model=Page[CalendarResponse], responses=problem_responses(422))
async def list_calendars(paging: Paging, services: Services, caller: Viewer) -> Response:
    """Calendars by name, a page at a time."""
    documents = await services.calendars.list(paging.after, paging.limit + 1)
    return await page_in_slices(documents, paging.limit, None, _calendars.shown)


@router.get("/{name}", response_model=CalendarResponse, responses=GET)
async def get_calendar(
    name: PathName, services: Services, caller: Viewer, response: Response, known: IfNoneMatch
) -> CalendarResponse | Response:
    """One calendar."""
    return await _calendars.get(name, services, response, known)


@router.patch("/{name}", responses=PATCH)
async def patch_calendar(
    name: CheckedPathName,
    body: Patch,
    services: Services,
    caller: AdminOfAll,
    response: Response,
    *,
    precondition: IfMatch,
) -> CalendarResponse:
    """Change parts of a calendar: a JSON merge patch on what GET shows, which is then checked like a PUT.

    A list is replaced as a whole.
    """
    return await _calendars.patch(name, body, services, response, precondition=precondition)


@router.delete("/{name}", status_code=HTTPStatus.NO_CONTENT, responses=problem_responses(404, 409, 412, 422))
async def delete_calendar(name: PathName, services: Services, caller: AdminOfAll, precondition: IfMatch) -> None:
    """Delete a calendar; 409 while schedules use it, or have times to decide that did."""
    users = services.view.schedules_on(name)
    # The stream may still show what was deleted or edited just now.
    if len(users) > _USERS_SHOWN_MAX or [user for user in users if await _uses(user, name, services)]:
        shown = ", ".join(sorted(users)[:_USERS_SHOWN_MAX])
        more = f" and {len(users) - _USERS_SHOWN_MAX} more" if len(users) > _USERS_SHOWN_MAX else ""
        raise Conflict(f"calendar {name!r} is used by the schedules {shown}{more}; edit or delete them first")
    await _calendars.delete(name, services, precondition)


async def _uses(schedule: str, calendar: str, services: ApiServices) -> bool:
    stored = await services.schedules.get(schedule)
    try:
        return stored is not None and calendar in calendars_of(decode_schedule(schedule, stored))
    except InvalidInput:
        return True  # until it can be read
