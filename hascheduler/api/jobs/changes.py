"""Cancel, reprioritize and retry one job: one compare-and-set, whose answer names the state it found.

A retry may also revive the jobs that failed because this one had failed::

    find the dependents, level by level ─► order them ─► the job itself, then each dependent after what it waits for

A dependent is revived if it never ran, because a job that it waited for failed or was cancelled. A dependent that
failed for a reason of its own, or was cancelled by people, stays as it is, and so do the jobs that waited for it.
Nothing is undone: a request that broke off in the middle is repeated, and finds the jobs that wait already as
`not_ended`.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import Field

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.jobs import idempotency
from hascheduler.api.jobs.dependencies import by_id, levels_of, waits_for
from hascheduler.api.jobs.idempotency import IdempotencyKey, retry_key
from hascheduler.api.jobs.read import require_visible
from hascheduler.api.middleware.auth import Caller, Operator, Submitter
from hascheduler.api.routing.queries import JobId
from hascheduler.api.routing.route_rules import JsonRoute
from hascheduler.api.services import ApiServices, Services
from hascheduler.errors import Conflict, NotFound
from hascheduler.model.job import LIVE, JobState
from hascheduler.ports import (
    CancelAnswer,
    Dependent,
    ReprioritizeAnswer,
    RetryAnswer,
    RetryKey,
    SubmitAnswer,
)
from hascheduler.schema.job import Priority
from hascheduler.schema.noun import AS_REQUEST, Part, example_of

DEPENDENTS_MAX = 500
"""The most dependents of one request: each costs a read of its dependencies, and a write."""
_ENDED_BADLY = (JobState.FAILED, JobState.CANCELLED)


class DependentAnswer(StrEnum):
    OK = "ok"
    NOT_ENDED = "not_ended"
    KEPT = "kept"
    DEPENDENCY_FAILED = "dependency_failed"
    CHANGED = "changed"


class DependentResponse(Part):
    """The result for a job that depends on the retried one."""

    job: str = Field(examples=["job:0194f3a1b2c3000002deadbeef01"])
    """The id of the dependent job"""
    answer: DependentAnswer = Field(examples=["ok"])
    """`ok`: it waits again for its dependencies; `not_ended`: it waits or runs already; `kept`: it succeeded, failed
    for another reason, or was cancelled; `dependency_failed`: another dependency failed; `changed`: another request
    changed it first"""


class JobRetryResponse(Part):
    """The result of a retry."""

    answer: RetryAnswer = Field(examples=["ok"])
    """`ok`: the job waits again, with all its tries left"""
    dependents: list[DependentResponse] = Field(default=[], examples=[[example_of(DependentResponse)]])
    """The jobs that depend on it, directly or not, if requested; each follows its dependencies"""
    complete: bool = True
    """False if it has more dependents than one request may read"""


async def dependents_of(
    job_id: str, caller: Caller, services: ApiServices, once: RetryKey | None
) -> tuple[Sequence[Dependent], bool]:
    """Return the jobs that wait for the job, directly or not, and True if these are all.

    Each comes after those that it waits for itself. Jobs that ended for a reason of their own are included, but not
    the jobs that wait for those alone.
    """
    found: dict[str, Dependent] = {}
    stored = await services.jobs.get(job_id)
    level = _named(job_id, None if stored is None else stored.get("batch"))
    complete = True
    while level and complete:
        room = DEPENDENTS_MAX - len(found)
        read = await services.jobs.dependents(level, caller.only, [job_id, *found], room + 1)
        complete = len(read) <= room
        new = read[:room]
        found |= {one.id: one for one in new}
        level = [
            name
            for one in new
            if one.state not in _ENDED_BADLY or one.failed_of_dependency or _is_done(one, once)
            for name in _named(one.id, one.batch)
        ]
    return _in_order(list(found.values())), complete


def _named(job_id: str, batch: str | None) -> list[str]:
    """Return the ids by which a dependent may name this job."""
    return [job_id] if batch is None else [job_id, batch]


def _in_order(jobs: Sequence[Dependent]) -> list[Dependent]:
    places: dict[str, list[int]] = {}
    for place, job in enumerate(jobs):
        for name in _named(job.id, job.batch):
            places.setdefault(name, []).append(place)
    needs = [[place for id in job.depends_on for place in places.get(id, ())] for job in jobs]
    levels, _ = levels_of(needs)
    return [jobs[place] for level in levels for place in level]


def _is_done(job: Dependent, once: RetryKey | None) -> bool:
    """Return True if this request has revived the job before."""
    return once is not None and once.digest in job.retried_under


async def _revive(job: Dependent, services: ApiServices, once: RetryKey | None) -> DependentAnswer:
    if _is_done(job, once):
        return DependentAnswer.OK
    if job.state in LIVE:
        return DependentAnswer.NOT_ENDED
    if not job.failed_of_dependency:
        return DependentAnswer.KEPT
    known = await services.jobs.known(job.depends_on)
    if not job.ignores_failures and any(one.state in _ENDED_BADLY for one in known):
        return DependentAnswer.DEPENDENCY_FAILED
    waiting = waits_for(by_id(known), ignores_failures=job.ignores_failures)
    is_ours = await services.jobs.retry_dependent(job, waiting, services.clock.wall_ms(), once)
    return DependentAnswer.OK if is_ours else DependentAnswer.CHANGED


router = APIRouter(prefix="/jobs", tags=["jobs"], route_class=JsonRoute)


class CancelResponse(Part):
    """The result of a cancel."""

    answer: CancelAnswer = Field(examples=["cancelled"])
    """`already_running`: the running attempt was asked to stop"""


@router.post("/{id}/cancel", responses=problem_responses(404))
async def cancel_job(id: JobId, services: Services, caller: Submitter) -> CancelResponse:
    """Cancel a waiting job, or ask a running one to stop. The request may be repeated."""
    await require_visible(id, caller, services)
    answer = await services.jobs.cancel(id, services.clock.wall_ms())
    if answer is None:
        raise NotFound("job", id)
    return CancelResponse(answer=answer)


class ReprioritizeBody(Part):
    """The new priority of a waiting job."""

    priority: Priority = Field(examples=[9])
    """From 0 to 10; 10 is the most urgent"""


class ReprioritizeResponse(Part):
    """The result of a change of priority."""

    answer: ReprioritizeAnswer = Field(examples=["ok"])
    """`already_running`: a processor has the job, so nothing was changed"""


@router.post("/{id}/reprioritize", responses=problem_responses(404, 413, 422))
async def reprioritize_job(
    id: JobId, body: Annotated[ReprioritizeBody, AS_REQUEST], services: Services, caller: Operator
) -> ReprioritizeResponse:
    """Change the priority of a waiting job."""
    await require_visible(id, caller, services)
    answer = await services.jobs.reprioritize(id, body.priority)
    if answer is None:
        raise NotFound("job", id)
    return ReprioritizeResponse(answer=answer)


class JobRetryBody(Part):
    """The options of a retry."""

    with_dependents: bool = Field(default=False, examples=[True])
    """Also retry the jobs that never ran because they depended on this one, directly or not; they wait for it again.
    At most 500 dependents are read"""


@router.post(
    "/{id}/retry",
    responses=problem_responses(404, 409, 413, 422),
    openapi_extra=idempotency.parameter(
        "Of all requests with the same key, one retries the job; the others return its result"
    ),
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
    """Retry a failed or cancelled job: it gets all its tries again, and no deadline or dependencies.

    A request with dependents may be repeated: jobs that already wait are not changed.
    """
    await require_visible(id, caller, services)
    body = body or JobRetryBody()
    once = None if key is None else retry_key(key, "retry", id, body.with_dependents)
    dependents, complete = await dependents_of(id, caller, services, once) if body.with_dependents else ((), True)
    # The job first: a dependent would fail again at once if a job that it waits for has failed.
    retry = await services.jobs.retry(id, services.clock.wall_ms(), once)
    if retry is None:
        raise NotFound("job", id)
    if retry.met is SubmitAnswer.OTHER:
        raise Conflict(idempotency.other_body(key or ""))
    if retry.met is SubmitAnswer.KNOWN:
        response.headers.update(idempotency.REPLAYED)
    revived = [DependentResponse(job=one.id, answer=await _revive(one, services, once)) for one in dependents]
    return JobRetryResponse(answer=retry.answer, dependents=revived, complete=complete)
