"""``/v1/operations``: begin one, follow its progress, stop it."""

import hashlib
from dataclasses import replace
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Path, Response
from fastapi.responses import JSONResponse

from hascheduler.api.http.problems import Responses, problem_responses
from hascheduler.api.jobs import idempotency
from hascheduler.api.jobs.changes import COUNTED_MAX
from hascheduler.api.jobs.idempotency import IdempotencyKey
from hascheduler.api.middleware.audit import Noted
from hascheduler.api.middleware.auth import Caller, RequiredPower, Submitter, Viewer
from hascheduler.api.operations.bodies import (
    MatchedResponse,
    OperationResponse,
    StartOperationBody,
    show_operation,
)
from hascheduler.api.operations.selection import Matched, count
from hascheduler.api.routing.body import JsonRoute
from hascheduler.api.routing.error_handlers import UnreadableDocument
from hascheduler.api.routing.queries import Page, Paging, page
from hascheduler.api.services import ApiServices, Services
from hascheduler.errors import Conflict, InvalidInput, NotFound, Overloaded, TooMany
from hascheduler.ports import BulkOperation, StoredDocument, decode_operation
from hascheduler.ports.operations import UNFINISHED_MAX

router = APIRouter(prefix="/operations", tags=["operations"], route_class=JsonRoute)

OperationId = Annotated[str, Path(description="The id of the operation; its ':' may stand here as it is")]
_AGAIN_S = 5
_KEY_LENGTH = 32
_STARTED: Responses = {
    200: {"model": MatchedResponse, "description": "A dry run: how many match"},
    202: {
        "description": "It has begun, or had under this key",
        "headers": {"Location": {"description": "Where to follow it", "schema": {"type": "string"}}},
    },
    **problem_responses(403, 409, 413, 422, 429),
}


@router.post(
    "",
    status_code=HTTPStatus.ACCEPTED,
    response_model=OperationResponse,
    responses=_STARTED,
    openapi_extra=idempotency.parameter("Of requests with one key and one body, one begins an operation"),
)
async def start_operation(
    body: StartOperationBody,
    services: Services,
    caller: Submitter,
    response: Response,
    note: Noted,
    *,
    key: IdempotencyKey,
) -> OperationResponse | Response:
    """Do something with all jobs or schedules that match and are not as asked: they are counted, and changed after the
    answer. What a token may do with one it may do with all of its tenant.

    Jobs that are submitted later are left alone, and each is met once. The operation goes on when this replica ends.
    At most 4 of a tenant (or of a token for all tenants) are unfinished at a time.
    """
    RequiredPower(body.action.power).check(caller)
    body.require_consistent()
    note.unaudited, note.because = body.dry_run, body.reason
    operation = _new(body, caller, services)
    note.location = f"/v1/operations/{operation.id}"
    counted = await count(operation, services)
    if body.dry_run:
        return JSONResponse(MatchedResponse(matched=counted.matched, exact=counted.exact).model_dump())
    _require_expected(counted, body.expected)
    if not services.operation_queue.has_room:
        raise Overloaded("this replica has as many operations as it takes", _AGAIN_S)
    operation = replace(operation, matched=counted.matched, exact=counted.exact)
    stored = await services.operations.create(operation, None if key is None else _digest(key))
    if stored is None:
        raise TooMany(f"{UNFINISHED_MAX} operations are unfinished; wait for one, or stop it", _AGAIN_S)
    accepted = _readable(stored)
    if accepted.id == operation.id:
        services.operation_queue.put(accepted)
    elif accepted.request_hash != operation.request_hash:
        raise Conflict(idempotency.other_body(key or ""))
    else:
        response.headers.update(idempotency.REPLAYED)
    response.headers["Location"] = f"/v1/operations/{accepted.id}"
    return show_operation(accepted)


@router.get("", responses=problem_responses(422))
async def list_operations(query: Paging, services: Services, caller: Viewer) -> Page[OperationResponse]:
    """The newest first, a page at a time. A token of one tenant sees those that tokens of that tenant began."""
    party = None if caller.only is None else _party(caller)
    documents = await services.operations.list(party, query.after, query.limit + 1)
    return page(documents, query.limit, lambda stored: show_operation(decode_operation(stored)))


@router.get("/{id}", responses=problem_responses(404))
async def get_operation(id: OperationId, services: Services, caller: Viewer) -> OperationResponse:
    """How far it is."""
    return _shown(await _visible(id, caller, services))


@router.post("/{id}/stop", responses=problem_responses(403, 404))
async def stop_operation(id: OperationId, services: Services, caller: Submitter) -> OperationResponse:
    """End it after the slice that is under way: what is changed stays so. Repeating it is harmless, and one that has
    ended stays as it is. It takes the power that the action takes."""
    RequiredPower((await _visible(id, caller, services)).action.power).check(caller)
    stored = await services.operations.request_stop(id, services.clock.wall_ms(), caller.name)
    if stored is None:
        raise NotFound("operation", id)
    return _shown(_readable(stored))


def _new(body: StartOperationBody, caller: Caller, services: ApiServices) -> BulkOperation:
    # Without defaults: a field that a later release brings must not make another request of a repeated one.
    asked = body.model_dump(mode="json", exclude_defaults=True, exclude={"expected", "dry_run"})
    return BulkOperation(
        id=f"operation:{services.new_id()}",
        action=body.action,
        filter=asked["filter"],
        party=_party(caller),
        role=caller.role,
        tenant=caller.tenant,
        by=caller.name,
        token_id=caller.id,
        started_at_ms=services.clock.wall_ms(),
        matched=0,
        exact=True,
        priority=body.priority,
        catch_up=body.catch_up,
        reason=body.reason,
        request_hash=idempotency.request_hash("operation", asked),
    )


def _require_expected(counted: Matched, expected: int | None) -> None:
    """`Conflict` where people agreed to another number than what would be changed."""
    if expected is not None and expected < COUNTED_MAX and counted.matched * 10 > expected * 11:
        least = "" if counted.exact else "at least "
        raise Conflict(f"{least}{counted.matched} match now, and {expected} were expected; look again")


def _party(caller: Caller) -> str:
    """All tokens of a tenant are one; a token for all tenants is one by itself."""
    return f"tenant:{caller.only}" if caller.only is not None else f"token:{caller.id or caller.name}"


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:_KEY_LENGTH]


async def _visible(id: str, caller: Caller, services: ApiServices) -> BulkOperation:
    """`NotFound` for those of others."""
    stored = await services.operations.get(id)
    operation = None if stored is None else _readable(stored)
    if operation is None or (caller.only is not None and operation.party != _party(caller)):
        raise NotFound("operation", id)
    return operation


def _readable(stored: StoredDocument) -> BulkOperation:
    try:
        return decode_operation(stored)
    except InvalidInput as error:
        raise UnreadableDocument("operation", str(stored["_id"]), error) from error


def _shown(operation: BulkOperation) -> OperationResponse:
    try:
        return show_operation(operation)
    except InvalidInput as error:
        raise UnreadableDocument("operation", operation.id, error) from error
