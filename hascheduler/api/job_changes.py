"""Cancel, reprioritize and retry single jobs: each is one compare-and-set, and the answer says which state it met."""

from fastapi import APIRouter

from hascheduler.api.access import Operator, Submitter
from hascheduler.api.body import JsonRoute
from hascheduler.api.job_bodies import ReprioritizeBody
from hascheduler.api.job_schemas import CancelResponse, JobRetryResponse, ReprioritizeResponse
from hascheduler.api.responses import refused
from hascheduler.api.services import Services
from hascheduler.api.stored_jobs import demand_seen
from hascheduler.errors import NotFound

router = APIRouter(prefix="/jobs", tags=["jobs"], route_class=JsonRoute)


@router.post("/{id}/cancel", responses=refused(404))
async def cancel_job(id: str, services: Services, caller: Submitter) -> CancelResponse:
    """Cancel a job that waits, ask a running one to stop; repeating it is harmless."""
    await demand_seen(id, caller, services)
    answer = await services.jobs.cancel(id, services.clock.wall_ms())
    if answer is None:
        raise NotFound("job", id)
    return CancelResponse(answer=answer)


@router.post("/{id}/reprioritize", responses=refused(404, 413, 422))
async def reprioritize_job(
    id: str, body: ReprioritizeBody, services: Services, caller: Operator
) -> ReprioritizeResponse:
    """Give a job that waits another priority."""
    await demand_seen(id, caller, services)
    answer = await services.jobs.reprioritize(id, body.priority)
    if answer is None:
        raise NotFound("job", id)
    return ReprioritizeResponse(answer=answer)


@router.post("/{id}/retry", responses=refused(404))
async def retry_job(id: str, services: Services, caller: Operator) -> JobRetryResponse:
    """Have a failed job run again, with all its tries before it, without a deadline and without waiting for others."""
    await demand_seen(id, caller, services)
    answer = await services.jobs.retry(id, services.clock.wall_ms())
    if answer is None:
        raise NotFound("job", id)
    return JobRetryResponse(answer=answer)
