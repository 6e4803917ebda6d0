"""``POST /v1/jobs``: submit one job, once; with ``?wait=`` the response comes when the job has ended, at any replica.

The wait is in `hascheduler.api.jobs.waiting`. If the client disconnects, the job goes on, unless
``cancel_on_disconnect`` was set and no other request is known to want the job (`hascheduler.api.routing.long_poll`).
If the caller's share of the waits is used up, the response comes at once, as if the wait had timed out.
"""

from contextlib import AbstractContextManager
from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Any

import structlog
from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from hascheduler.api.http.problems import Responses, problem_responses
from hascheduler.api.jobs import idempotency
from hascheduler.api.jobs.dependencies import definitions_of, look_up, with_dependencies, with_keys
from hascheduler.api.jobs.idempotency import IdempotencyKey
from hascheduler.api.jobs.read import job_response
from hascheduler.api.jobs.waiting import Unwanted, WaitForJobQuery, end_of
from hascheduler.api.middleware.audit import AuditNote, Noted
from hascheduler.api.middleware.auth import Caller, Submitter
from hascheduler.api.routing.long_poll import ClientGone
from hascheduler.api.routing.route_rules import JsonRoute
from hascheduler.api.routing.warnings import require_lane, warn_of_names
from hascheduler.api.services import ApiServices, Services
from hascheduler.errors import Conflict, WorldError
from hascheduler.model.job import TERMINAL, NewJob
from hascheduler.model.trace import TRACEPARENT, TRACESTATE, TraceContext, trace_context
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import StoredDocument, SubmitAnswer
from hascheduler.schema.job import JobResponse, SubmitJobBody
from hascheduler.schema.noun import AS_REQUEST
from hascheduler.telemetry.tracing import JOB_DEFINITION, JOB_ID, Attribute, Span, SpanKind, traced

log = structlog.get_logger(__name__)

router = APIRouter(prefix="/jobs", tags=["jobs"], route_class=JsonRoute)

DUPLICATE_OF = "Duplicate-Of"
"""The header with the id of the job that a duplicate is answered with."""
_ANSWERS: Responses = {
    200: {
        "model": JobResponse,
        "description": "It existed already under this key, or the request waited for its end. With a header "
        f"`{DUPLICATE_OF}`: another job, of which this one is a duplicate by `unique` of the definition",
    },
    202: {"model": JobResponse, "description": "The wait is over and it has not ended; poll `Location`"},
    **problem_responses(409, 413, 422, 429),
}


class WaitQuery(WaitForJobQuery):
    cancel_on_disconnect: bool = Field(
        default=False,
        description="Cancel the job if the client disconnects before it has ended. If several requests wait for the "
        "job at this replica, the last to disconnect cancels it, provided that all set this option and "
        "one of them created the job. Requests at other replicas do not count",
    )


Waiting = Annotated[WaitQuery, Query(), AS_REQUEST]


@router.post("", status_code=HTTPStatus.CREATED, responses=_ANSWERS, openapi_extra=idempotency.PARAMETER)
async def submit_job(
    body: Annotated[SubmitJobBody, AS_REQUEST],
    services: Services,
    caller: Submitter,
    request: Request,
    *,
    response: Response,
    waiting: Waiting,
    key: IdempotencyKey,
    note: Noted,
) -> JobResponse:
    """Submit a job. With `wait`, respond once it has ended, with its result."""
    with submit_span(request, services, body.definition, **{JOB_DEFINITION: body.definition}) as span:
        job = await _job(body, key, caller, services, note)
        if span.context is not None:
            job = replace(job, trace=span.context)
        await services.admission.admit(job.tenant, 1, dependencies=len(job.waits_for))
        submission = await services.jobs.submit(job)
        if submission.answer is not SubmitAnswer.NEW:
            services.admission.not_new(job.tenant, 1, dependencies=len(job.waits_for))
        if submission.answer is SubmitAnswer.OTHER:
            raise Conflict(idempotency.other_body(key or ""))
        document = submission.document
        span.set(JOB_ID, str(document["_id"]))
    if submission.answer is SubmitAnswer.KNOWN:
        response.status_code = HTTPStatus.OK
        response.headers.update(idempotency.REPLAYED)
    if submission.answer is SubmitAnswer.DUPLICATE:
        response.status_code = HTTPStatus.OK
        response.headers[DUPLICATE_OF] = str(document["_id"])
    response.headers["Location"] = f"/v1/jobs/{document['_id']}"
    if waiting.wait is not None:
        document = await _after_waiting(
            document,
            waiting.wait,
            request,
            services,
            made=submission.answer is SubmitAnswer.NEW,
            cancels=waiting.cancel_on_disconnect,
        )
        response.status_code = HTTPStatus.OK if document.get("state") in TERMINAL else HTTPStatus.ACCEPTED
    else:
        services.waits.keep(str(document["_id"]))
    warn_of_names(response, (body,), services.view)
    return job_response(document, services, caller)


async def _job(body: SubmitJobBody, key: str | None, caller: Caller, services: ApiServices, note: AuditNote) -> NewJob:
    job = job_of(body, caller, services, services.clock.wall_ms())
    note.location = f"/v1/jobs/{job.id}"
    job = with_keys(job, await definitions_of((body.definition,), services))
    if key is not None:
        job = replace(job, idempotency_key=key, request_hash=body.request_hash())
    if not body.depends_on:
        return job
    lookup = await look_up(body.depends_on, caller, services)
    return with_dependencies(job, body.depends_on, lookup.found, services)


def job_of(body: SubmitJobBody, caller: Caller, services: ApiServices, now: WallMs) -> NewJob:
    """Return the job that ``body`` asks for, without its keys and dependencies; raise an error if it is not allowed."""
    body.require_time_to_start(now)
    require_lane(body.lane, caller, services.view)
    tenant = caller.tenant_of(body.tenant)
    return body.job(services.new_job_id(tenant), tenant, now)


async def _after_waiting(
    document: StoredDocument, wait_ms: int, request: Request, services: ApiServices, *, made: bool, cancels: bool
) -> StoredDocument:
    """Return the job as it is when the wait is over, or ``document`` if there was no wait."""
    job_id = str(document["_id"])
    try:
        return await end_of(job_id, wait_ms, request, services, made=made, cancels=cancels) or document
    except WorldError as error:
        # The job is submitted, so this is no failure: the response just does not wait for its end.
        log.info("job_wait_refused", job=job_id, reason=str(error))
    except Unwanted:
        await _cancel(job_id, services)
    except ClientGone:
        log.debug("client_disconnected", job=job_id)
    return document


async def _cancel(job_id: str, services: ApiServices) -> None:
    try:
        answer: Any = await services.jobs.cancel(job_id, services.clock.wall_ms())
        log.info("job_cancelled_on_disconnect", job=job_id, answer=answer)
    except WorldError as error:
        log.warning("job_cancel_on_disconnect_failed", job=job_id, error=str(error))


def submit_span(
    request: Request | None, services: ApiServices, subject: str, **attributes: Attribute
) -> AbstractContextManager[Span]:
    """Return the tracing span of a request that submits jobs, within the caller's trace if it sends one.

    The jobs continue the span. ``attributes`` have dots in their names. ``subject`` is a definition if there is one.
    ``request`` is None for a job that is made by a change of all that match.
    """
    if request is None:
        return traced(services.tracer, SpanKind.SUBMIT, subject, None, attributes)
    described = {"http.request.method": request.method, "url.path": request.scope["path"], **attributes}
    return traced(services.tracer, SpanKind.SUBMIT, subject, _parent(request), described)


def _parent(request: Request) -> TraceContext | None:
    parents = request.headers.getlist(TRACEPARENT)
    return trace_context(parents[0], ",".join(request.headers.getlist(TRACESTATE))) if len(parents) == 1 else None
