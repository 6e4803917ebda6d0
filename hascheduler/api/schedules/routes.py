"""``/v1/schedules``: create, list, show, replace, patch and delete schedules."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Response

from hascheduler.api.http.problems import NOT_MODIFIED, problem_responses
from hascheduler.api.middleware.audit import Noted
from hascheduler.api.middleware.auth import Operator, Viewer
from hascheduler.api.routing import revisions
from hascheduler.api.routing.body import JsonRoute
from hascheduler.api.routing.published import query_of
from hascheduler.api.routing.queries import CheckedPathName, Page, PageQuery, PathName, page_in_slices
from hascheduler.api.routing.revisions import TAGGED, IfMatch, IfNoneMatch, etag, is_known
from hascheduler.api.routing.warnings import warn_of_lane
from hascheduler.api.schedules.edits import (
    ScheduleEdit,
    SchedulePatch,
    edit_now,
    edit_schedule,
    new_document,
    patched_body,
    replaced_fields,
    with_new_calendars,
    with_unseen_payloads,
)
from hascheduler.api.schedules.responses import ScheduleResponse, show_schedule
from hascheduler.api.schedules.selection import page_of_schedules
from hascheduler.api.schedules.tenant_scope import TenantSchedules, schedule_response, stored_schedule, with_tenant
from hascheduler.api.services import ApiServices, Services
from hascheduler.errors import Conflict
from hascheduler.ports import StoredDocument
from hascheduler.schema.filters import ScheduleFilter
from hascheduler.wire.schedule import CreateScheduleBody, ReplaceScheduleBody
from hascheduler.wire.schedule_jobs import TemplateBody

router = APIRouter(prefix="/schedules", tags=["schedules"], route_class=JsonRoute)


@router.post("", status_code=HTTPStatus.CREATED, responses={201: TAGGED, **problem_responses(409, 413, 422)})
async def create_schedule(
    body: CreateScheduleBody, services: Services, caller: Operator, response: Response, note: Noted
) -> ScheduleResponse:
    """Create a schedule; 409 when the name is taken, which may be by another tenant: names are the cluster's; and where
    its tenant has as many schedules as it may.

    Its nominal times begin after this instant.
    """
    note.location = f"/v1/schedules/{quote(body.name)}"
    whole = with_tenant(body, caller)
    made = await with_new_calendars(lambda edit: new_document(whole, edit), edit_now(caller, services), services)
    await services.schedule_limits.require_room(made["job"]["tenant"], caller, services.view, services.schedules)
    document = await services.schedules.create(made)
    if document is None:
        raise Conflict(f"there is a schedule {body.name!r} already; replace it with PUT, or delete it first")
    response.headers["Location"] = note.location
    _warn_of_lanes(response, [job for _, job in whole.made], services)
    return schedule_response(document, response, services, caller)


@router.get("", response_model=Page[ScheduleResponse], responses=problem_responses(403, 422))
async def list_schedules(
    filter: Annotated[ScheduleFilter, query_of(ScheduleFilter)],
    query: Annotated[PageQuery, Query()],
    services: Services,
    caller: Viewer,
) -> Response:
    """Schedules by name, a page at a time; with `label`, only those that have all of these labels. A page of large
    payloads ends after 4 MiB.

    With `text`, `state`, `verdict` or `ahead` it shows those that match as far as this replica has heard of them, a
    moment ago. Where few of many match, a page may then hold less than `limit`, or nothing, and have a `next`: go on
    until that is null.
    """
    documents, next = await page_of_schedules(filter, query, caller, services)
    calendars, payloads, now = services.view.calendars(), caller.sees_payloads, services.clock.wall_ms()
    return await page_in_slices(
        documents, query.limit, next, lambda document: show_schedule(document, calendars, payloads=payloads, now=now)
    )


@router.get(
    "/{name}",
    response_model=ScheduleResponse,
    responses={200: TAGGED, **NOT_MODIFIED, **problem_responses(404, 409, 422)},
)
async def get_schedule(
    name: PathName, services: Services, caller: Viewer, response: Response, known: IfNoneMatch
) -> ScheduleResponse | Response:
    """One schedule. Its tag is the revision: what the leader writes, such as the counts, is no edit."""
    document = await stored_schedule(name, caller, services)
    if is_known(known, document):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers={"ETag": etag(document)})
    return schedule_response(document, response, services, caller)


@router.put("/{name}", responses={200: TAGGED, **problem_responses(404, 409, 412, 413, 422)})
async def replace_schedule(
    name: CheckedPathName,
    body: ReplaceScheduleBody,
    services: Services,
    caller: Operator,
    response: Response,
    *,
    precondition: IfMatch,
) -> ScheduleResponse:
    """Replace a schedule as a whole; 404 when there is none. It stays paused if it is. For a caller who sees no
    payloads, a payload of null is the stored one.

    An edit is not retroactive: the nominal times through now are those of the trigger before it, and those that were
    decided stay decided. An interval without an anchor keeps the stored one. What changes nothing is not written.
    """
    body.require_consistent(name)
    whole = with_tenant(body, caller)

    def change(stored: StoredDocument, edit: ScheduleEdit) -> Mapping[str, Any]:
        return replaced_fields(name, with_unseen_payloads(name, whole, stored, caller), stored, edit)

    _warn_of_lanes(response, [job for _, job in whole.made], services)
    document = await edit_schedule(name, caller, services, precondition, change)
    return schedule_response(document, response, services, caller)


@router.patch("/{name}", responses={200: TAGGED, **problem_responses(404, 409, 412, 413, 422)})
async def patch_schedule(
    name: CheckedPathName,
    body: SchedulePatch,
    services: Services,
    caller: Operator,
    response: Response,
    *,
    precondition: IfMatch,
) -> ScheduleResponse:
    """Change parts of a schedule: a JSON merge patch on what GET shows, which is then checked and written like PUT."""

    def change(stored: StoredDocument, edit: ScheduleEdit) -> Mapping[str, Any]:
        return replaced_fields(name, with_tenant(patched_body(name, body, stored, caller), caller), stored, edit)

    document = await edit_schedule(name, caller, services, precondition, change)
    shown = schedule_response(document, response, services, caller)
    _warn_of_lanes(response, shown.jobs or [shown.job], services)
    return shown


@router.delete("/{name}", status_code=HTTPStatus.NO_CONTENT, responses=problem_responses(404, 409, 412, 422))
async def delete_schedule(name: PathName, services: Services, caller: Operator, precondition: IfMatch) -> None:
    """Delete a schedule. Jobs that it made go on."""
    await revisions.delete("schedule", name, TenantSchedules(services.schedules, caller), precondition)


def _warn_of_lanes(response: Response, jobs: Sequence[TemplateBody], services: ApiServices) -> None:
    for lane in dict.fromkeys(job.lane for job in jobs):
        warn_of_lane(response, lane, services.view)
