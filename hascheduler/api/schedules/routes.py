"""``/v1/schedules``: create, list, show, replace, patch and delete schedules."""

from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Response

from hascheduler.api.http.problems import NOT_MODIFIED, problem_responses
from hascheduler.api.jobs import idempotency
from hascheduler.api.jobs.idempotency import IdempotencyKey
from hascheduler.api.middleware.audit import Noted
from hascheduler.api.middleware.auth import Operator, Viewer
from hascheduler.api.routing import revisions
from hascheduler.api.routing.published import query_of
from hascheduler.api.routing.queries import CheckedPathName, Page, PathName, page
from hascheduler.api.routing.revisions import TAGGED, IfBoth, IfMatch, IfNoneMatch, etag, is_known
from hascheduler.api.routing.route_rules import JsonRoute
from hascheduler.api.routing.warnings import warn_of_names
from hascheduler.api.schedules.edits import (
    Edited,
    ScheduleEdit,
    SchedulePatch,
    create_schedule_of,
    made_before,
    name_taken,
    patching,
    put_schedule_of,
    replaced_fields,
    require_consistent,
    with_unseen_payloads,
)
from hascheduler.api.schedules.selection import SchedulesQuery, page_of_schedules
from hascheduler.api.schedules.tenant_scope import (
    TenantSchedules,
    schedule_response,
    show_schedule,
    stored_schedule,
    with_tenant,
)
from hascheduler.api.services import Services
from hascheduler.ports import StoredDocument
from hascheduler.schema.filters import ScheduleFilter
from hascheduler.schema.noun import AS_REQUEST
from hascheduler.schema.schedule_bodies import (
    CreateScheduleBody,
    ReplaceScheduleBody,
    ScheduleResponse,
)

router = APIRouter(prefix="/schedules", tags=["schedules"], route_class=JsonRoute)


@router.post(
    "",
    status_code=HTTPStatus.CREATED,
    responses={
        200: {**TAGGED, "model": ScheduleResponse, "description": "It was created already under this key"},
        201: TAGGED,
        **problem_responses(409, 413, 422),
    },
    openapi_extra=idempotency.parameter(
        "Of all requests with the same key, name and body, one creates the schedule; the others return it as it is now"
    ),
)
async def create_schedule(
    body: Annotated[CreateScheduleBody, AS_REQUEST],
    services: Services,
    caller: Operator,
    response: Response,
    *,
    key: IdempotencyKey,
    note: Noted,
) -> ScheduleResponse:
    """Create a schedule.

    409 if the name is taken, perhaps by another tenant (names belong to the cluster), or if its tenant has reached its
    limit of schedules. Its nominal times begin after this instant.
    """
    note.location = f"/v1/schedules/{quote(body.name)}"
    whole = with_tenant(body, caller)
    values = whole.model_dump(mode="json", exclude_defaults=True)
    under = None if key is None else idempotency.retry_key(key, "schedule", values)
    known = await made_before(body.name, under, caller, services)
    document = known or await create_schedule_of(whole, caller, services, under)
    if document is None:
        # An equal request that raced with this one has created it.
        document = known = await made_before(body.name, under, caller, services)
    if document is None:
        raise name_taken(body.name)
    if known is not None:
        response.status_code = HTTPStatus.OK
        response.headers.update(idempotency.REPLAYED)
    response.headers["Location"] = note.location
    warn_of_names(response, (job for _, job in whole.made), services.view, on_failure=whole.on_failure)
    return schedule_response(document, response, services, caller)


@router.get("", response_model=Page[ScheduleResponse], responses=problem_responses(403, 422))
async def list_schedules(
    filter: Annotated[ScheduleFilter, query_of(ScheduleFilter)],
    query: Annotated[SchedulesQuery, Query()],
    services: Services,
    caller: Viewer,
) -> Response:
    """List schedules, a page at a time; with `label`, only those with all these labels.

    A page of large payloads ends after 4 MiB. With `sort` or a filter other than `label` and `tenant` the list comes
    from this replica's mirror, which is a moment old. A page may then hold fewer than `limit`, or none, and have a
    `next`: go on until that is null.
    """
    documents, cursors, next = await page_of_schedules(filter, query, caller, services, query.sort)
    calendars, payloads, now = services.view.calendars(), caller.sees_payloads, services.clock.wall_ms()
    shown = partial(show_schedule, calendars=calendars, payloads=payloads, now=now)
    return await page(documents, query.limit, next, shown, cursors)


@router.get(
    "/{name}",
    response_model=ScheduleResponse,
    responses={200: TAGGED, **NOT_MODIFIED, **problem_responses(404, 409, 422)},
)
async def get_schedule(
    name: PathName, services: Services, caller: Viewer, response: Response, known: IfNoneMatch
) -> ScheduleResponse | Response:
    """Get a schedule. Its ETag is the revision, which the leader's own writes, such as the counts, do not change."""
    document = await stored_schedule(name, caller, services)
    if is_known(known, document):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers={"ETag": etag(document)})
    return schedule_response(document, response, services, caller)


@router.put(
    "/{name}",
    responses={200: TAGGED, 201: {**TAGGED, "model": ScheduleResponse}, **problem_responses(409, 412, 413, 422)},
)
async def replace_schedule(
    name: CheckedPathName,
    body: Annotated[ReplaceScheduleBody, AS_REQUEST],
    services: Services,
    caller: Operator,
    response: Response,
    *,
    precondition: IfBoth,
    note: Noted,
) -> ScheduleResponse:
    """Create (201) or replace (200) a schedule as a whole.

    With If-Match only replace, with If-None-Match: * only create. A paused schedule stays paused. For a caller who may
    not see payloads, a null payload means the stored one.

    An edit is not retroactive: nominal times up to now are those of the old trigger, and decided times stay decided. An
    interval without an anchor keeps the stored one. If nothing changes, nothing is written.
    """
    require_consistent(body, name)
    whole = with_tenant(body, caller)

    def change(stored: StoredDocument, edit: ScheduleEdit) -> Mapping[str, Any]:
        return replaced_fields(name, with_unseen_payloads(name, whole, stored, caller), stored, edit)

    warn_of_names(response, (job for _, job in whole.made), services.view, on_failure=whole.on_failure)
    document, is_new = await put_schedule_of(name, whole, caller, services, precondition=precondition, change=change)
    if is_new:
        response.status_code = HTTPStatus.CREATED
        response.headers["Location"] = note.location = f"/v1/schedules/{quote(name)}"
    return schedule_response(document, response, services, caller)


@router.patch("/{name}", responses={200: TAGGED, **problem_responses(404, 409, 412, 413, 422)})
async def patch_schedule(
    name: CheckedPathName, body: SchedulePatch, edit: Edited, services: Services, response: Response
) -> ScheduleResponse:
    """Change parts of a schedule: a JSON merge patch on the response of GET, then checked and written like PUT."""
    shown = await edit(name, patching(name, body))
    warn_of_names(response, shown.jobs or [shown.job], services.view, on_failure=shown.on_failure)
    return shown


@router.delete("/{name}", status_code=HTTPStatus.NO_CONTENT, responses=problem_responses(404, 409, 412, 422))
async def delete_schedule(name: PathName, services: Services, caller: Operator, precondition: IfMatch) -> None:
    """Delete a schedule. Jobs that it made go on."""
    await revisions.delete("schedule", name, TenantSchedules(services.schedules, caller), precondition)
