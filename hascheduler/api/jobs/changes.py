"""Cancel, reprioritize and retry one job: one compare-and-set, whose answer says which state it met."""

from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import Field

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.jobs import idempotency
from hascheduler.api.jobs.idempotency import IdempotencyKey, retry_key
from hascheduler.api.jobs.read import require_visible
from hascheduler.api.jobs.revival import JobRetryResponse, dependents_of, revive_dependents
from hascheduler.api.middleware.auth import Operator, Submitter
from hascheduler.api.routing.queries import JobId
from hascheduler.api.routing.route_rules import JsonRoute
from hascheduler.api.services import Services
from hascheduler.errors import Conflict, NotFound
from hascheduler.ports import CancelAnswer, ReprioritizeAnswer, SubmitAnswer
from hascheduler.schema.job import Priority
from hascheduler.schema.noun import AS_REQUEST, Part

router = APIRouter(prefix="/jobs", tags=["jobs"], route_class=JsonRoute)


class CancelResponse(Part):
    """What became of the wish to cancel a job."""

    answer: CancelAnswer = Field(examples=["cancelled"])
    """`already_running`: the running attempt was asked to stop"""


@router.post("/{id}/cancel", responses=problem_responses(404))
async def cancel_job(id: JobId, services: Services, caller: Submitter) -> CancelResponse:
    """Cancel a job that waits, ask a running one to stop; repeating it is harmless."""
    await require_visible(id, caller, services)
    answer = await services.jobs.cancel(id, services.clock.wall_ms())
    if answer is None:
        raise NotFound("job", id)
    return CancelResponse(answer=answer)


class ReprioritizeBody(Part):
    """Another priority for a job that waits."""

    priority: Priority = Field(examples=[9])
    """10 is the most urgent"""


class ReprioritizeResponse(Part):
    """What became of the wish for another priority."""

    answer: ReprioritizeAnswer = Field(examples=["ok"])
    """`already_running`: it is with a processor, and stays as it is"""


@router.post("/{id}/reprioritize", responses=problem_responses(404, 413, 422))
async def reprioritize_job(
    id: JobId, body: Annotated[ReprioritizeBody, AS_REQUEST], services: Services, caller: Operator
) -> ReprioritizeResponse:
    """Give a job that waits another priority."""
    await require_visible(id, caller, services)
    answer = await services.jobs.reprioritize(id, body.priority)
    if answer is None:
        raise NotFound("job", id)
    return ReprioritizeResponse(answer=answer)


class JobRetryBody(Part):
    """How a job shall run again."""

    with_dependents: bool = Field(default=False, examples=[True])
    """Revive too what never ran as it waited for this job, directly or not: it waits for it again. At most 500
    dependents are looked at"""


@router.post(
    "/{id}/retry",
    responses=problem_responses(404, 409, 413, 422),
    openapi_extra=idempotency.parameter("Of requests with one key, one revives the job; the others get its answer"),
)
async def retry_job(
    id: JobId,
    services: Services,
    caller: Operator,
    *,
    response: Response,
    body: Annotated[JobRetryBody, AS_REQUEST] | None = None,
    key: IdempotencyKey,
) -> JobRetryResponse:
    """Have a failed or cancelled job run again, with all its tries before it, without a deadline and without waiting
    for others. With dependents the request may be repeated: what waits already stays as it is."""
    await require_visible(id, caller, services)
    body = body or JobRetryBody()
    once = None if key is None else retry_key(key, "retry", id, body.with_dependents)
    dependents, complete = await dependents_of(id, caller, services, once) if body.with_dependents else ((), True)
    # First: a dependent that waited for a job that has failed would fail again at once.
    retry = await services.jobs.retry(id, services.clock.wall_ms(), once)
    if retry is None:
        raise NotFound("job", id)
    if retry.met is SubmitAnswer.OTHER:
        raise Conflict(idempotency.other_body(key or ""))
    if retry.met is SubmitAnswer.KNOWN:
        response.headers.update(idempotency.REPLAYED)
    revived = await revive_dependents(dependents, services, once)
    return JobRetryResponse(answer=retry.answer, dependents=revived, complete=complete)
