"""``POST /v1/jobs``: submit one job, once; with ``wait``, the answer has its result."""

from dataclasses import replace
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import APIRouter, Request, Response

from hascheduler.api import idempotency
from hascheduler.api.access import Caller, Submitter
from hascheduler.api.body import JsonRoute
from hascheduler.api.dependencies import demand_few, look_up, waits_for
from hascheduler.api.idempotency import IdempotencyKey
from hascheduler.api.job_bodies import SubmitJobBody
from hascheduler.api.job_schemas import JobResponse, shown_job
from hascheduler.api.listeners import Left
from hascheduler.api.responses import Responses, refused
from hascheduler.api.services import ApiServices, Services
from hascheduler.api.submit_span import submit_span
from hascheduler.api.waiting import Waiting, end_of
from hascheduler.errors import Conflict, Overloaded, WorldError
from hascheduler.model.job import TERMINAL, NewJob
from hascheduler.ports import KnownJob, StoredDocument, SubmitAnswer
from hascheduler.telemetry.tracing import JOB_DEFINITION, JOB_ID

log = structlog.get_logger(__name__)

router = APIRouter(prefix="/jobs", tags=["jobs"], route_class=JsonRoute)

_ANSWERS: Responses = {
    200: {
        "model": JobResponse,
        "description": "It is there already under this key, or was waited for and has ended",
    },
    202: {"model": JobResponse, "description": "It was waited for and has not ended; `Location` is where to ask again"},
    **refused(409, 413, 422, 429),
}


@router.post("", status_code=HTTPStatus.CREATED, responses=_ANSWERS, openapi_extra=idempotency.PARAMETER)
async def submit_job(
    body: SubmitJobBody,
    services: Services,
    caller: Submitter,
    request: Request,
    *,
    response: Response,
    waiting: Waiting,
    key: IdempotencyKey,
) -> JobResponse:
    """Submit a job. With `wait` the answer comes when it has ended: the result is in it."""
    with submit_span(request, services, body.definition, **{JOB_DEFINITION: body.definition}) as span:
        job = replace(await _job(body, key, caller, services), trace=span.context)
        await services.admission.admit(job.tenant, 1)
        submission = await services.jobs.submit(job)
        if submission.answer is not SubmitAnswer.NEW:
            services.admission.not_new(job.tenant, 1)
        if submission.answer is SubmitAnswer.OTHER:
            raise Conflict(idempotency.other_body(key or ""))
        document = submission.document
        span.set(JOB_ID, str(document["_id"]))
    if submission.answer is SubmitAnswer.KNOWN:
        response.status_code = HTTPStatus.OK
        response.headers.update(idempotency.REPLAYED)
    response.headers["Location"] = f"/v1/jobs/{document['_id']}"
    if waiting.wait is not None:
        document = await _ended(document, waiting.wait, request, services, cancels=waiting.cancel_on_disconnect)
        response.status_code = HTTPStatus.OK if document.get("state") in TERMINAL else HTTPStatus.ACCEPTED
    return shown_job(document, services)


async def _job(body: SubmitJobBody, key: str | None, caller: Caller, services: ApiServices) -> NewJob:
    now = services.clock.wall_ms()
    body.demand_time(now)
    body.demand_lane(caller, services.view)
    job = body.job(services.new_job_id(), caller.tenant_of(body.tenant), now)
    if key is not None:
        job = replace(job, idempotency_key=key, request_hash=body.request_hash())
    if not body.depends_on:
        return job
    lookup = await look_up(body.depends_on, caller, services)
    found: dict[str, KnownJob] = {}
    for place, named in enumerate(body.depends_on):
        found.update((each.id, each) for each in lookup.jobs_of(named, ("depends_on", place)))
        demand_few(found, ("depends_on",))
    waiting = waits_for(list(found.values()), ignores_failures=job.ignores_failures)
    return replace(job, depends_on=tuple(found), waits_for=waiting)


async def _ended(
    document: StoredDocument, wait_ms: int, request: Request, services: ApiServices, *, cancels: bool
) -> StoredDocument:
    job_id = str(document["_id"])
    try:
        return await end_of(job_id, wait_ms, request, services) or document
    except Overloaded as error:
        # The job is submitted, so this is no refusal: the answer just does not wait for its end.
        log.info("not_waited_for", job=job_id, reason=str(error))
    except Left:
        if cancels:
            await _cancel(job_id, services)
    return document


async def _cancel(job_id: str, services: ApiServices) -> None:
    try:
        answer: Any = await services.jobs.cancel(job_id, services.clock.wall_ms())
        log.info("cancelled_as_client_left", job=job_id, answer=answer)
    except WorldError as error:
        log.warning("not_cancelled_though_client_left", job=job_id, error=str(error))
