"""Cancel, reprioritize and retry jobs: one (``/v1/jobs/{id}/cancel``), or all that match (``/v1/jobs:cancel``).

The change of one job is one compare-and-set, and the answer says which state it met. A change of many counts the
matching jobs first, and then changes them a slice at a time.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field, model_validator

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.jobs import idempotency
from hascheduler.api.jobs.idempotency import IdempotencyKey, retry_key
from hascheduler.api.jobs.read import require_visible
from hascheduler.api.jobs.responses import CancelResponse, ReprioritizeResponse
from hascheduler.api.jobs.revival import DEPENDENTS_MAX, JobRetryResponse, dependents_of, revive_dependents
from hascheduler.api.middleware.audit import Noted
from hascheduler.api.middleware.auth import Caller, Operator, Submitter
from hascheduler.api.routing.body import JsonRoute
from hascheduler.api.routing.queries import JobId
from hascheduler.api.services import ApiServices, Services
from hascheduler.errors import Conflict, NotFound
from hascheduler.model.job import LIVE, JobState
from hascheduler.ports import JobSelection, KeyedRetry, RetryKey, SubmitAnswer, revived_states
from hascheduler.wire.fields import Labels, Name, StrictModel, Text, invalid_value
from hascheduler.wire.job import Priority

COUNTED_MAX = 100_000
_SLICE = 1_000
_SLICES_MAX = 20
"""One request changes at most so many slices; it answers ``complete: false`` if more is left."""

router = APIRouter(prefix="/jobs", tags=["jobs"], route_class=JsonRoute)
bulk_router = APIRouter(tags=["jobs"], route_class=JsonRoute)


@router.post("/{id}/cancel", responses=problem_responses(404))
async def cancel_job(id: JobId, services: Services, caller: Submitter) -> CancelResponse:
    """Cancel a job that waits, ask a running one to stop; repeating it is harmless."""
    await require_visible(id, caller, services)
    answer = await services.jobs.cancel(id, services.clock.wall_ms())
    if answer is None:
        raise NotFound("job", id)
    return CancelResponse(answer=answer)


class ReprioritizeBody(StrictModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"priority": 9}]})

    priority: Priority


@router.post("/{id}/reprioritize", responses=problem_responses(404, 413, 422))
async def reprioritize_job(
    id: JobId, body: ReprioritizeBody, services: Services, caller: Operator
) -> ReprioritizeResponse:
    """Give a job that waits another priority."""
    await require_visible(id, caller, services)
    answer = await services.jobs.reprioritize(id, body.priority)
    if answer is None:
        raise NotFound("job", id)
    return ReprioritizeResponse(answer=answer)


class JobRetryBody(StrictModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"with_dependents": True}]})

    with_dependents: bool = Field(
        default=False,
        description="Revive too what never ran as it waited for this job, directly or not: it waits for it again. At "
        f"most {DEPENDENTS_MAX} dependents are looked at",
    )


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
    body: JobRetryBody | None = None,
    key: IdempotencyKey,
) -> JobRetryResponse:
    """Have a failed or cancelled job run again, with all its tries before it, without a deadline and without waiting
    for others. With dependents the request may be repeated: what waits already stays as it is."""
    await require_visible(id, caller, services)
    body = body or JobRetryBody()
    once = None if key is None else retry_key(key, "retry", id, body.with_dependents)
    dependents, complete = await dependents_of(id, caller, services, once) if body.with_dependents else ((), True)
    # First: a dependent that waited for a job that has failed would fail again at once.
    retry = await _retried(id, services, once)
    if retry is None:
        raise NotFound("job", id)
    if retry.met is SubmitAnswer.OTHER:
        raise Conflict(idempotency.other_body(key or ""))
    if retry.met is SubmitAnswer.KNOWN:
        response.headers.update(idempotency.REPLAYED)
    revived = await revive_dependents(dependents, services, once)
    return JobRetryResponse(answer=retry.answer, dependents=revived, complete=complete)


async def _retried(id: str, services: ApiServices, once: RetryKey | None) -> KeyedRetry | None:
    now = services.clock.wall_ms()
    if once is not None:
        return await services.jobs.retry_once(id, now, once)
    answer = await services.jobs.retry(id, now)
    return None if answer is None else KeyedRetry(answer)


class FilterBody(StrictModel):
    """All that is given must hold, and something must be given."""

    state: JobState | None = Field(description="Only jobs in this state", default=None, strict=False)
    definition: Name | None = Field(default=None, description="Only jobs of this type")
    schedule: Name | None = Field(default=None, description="Only jobs that this schedule made")
    tenant: Name | None = Field(default=None, description="Only jobs of this tenant")
    batch: Text | None = Field(default=None, description="Only jobs submitted in this batch, `batch:…`")
    target: Text | None = Field(default=None, description="Only jobs that work on this")
    labels: Labels = Field(description="Only jobs with all of these labels", default={})

    @model_validator(mode="after")
    def _names_something(self) -> "FilterBody":
        if not any(getattr(self, name) for name in type(self).model_fields):
            raise invalid_value("names nothing", "at least one of " + ", ".join(type(self).model_fields))
        return self

    def filter(self, caller: Caller) -> JobSelection:
        return JobSelection(
            states=() if self.state is None else (self.state,),
            definition=self.definition,
            schedule=self.schedule,
            tenant=caller.filter_of(self.tenant),
            batch=self.batch,
            target=self.target,
            labels=dict(self.labels),
        )


_EXAMPLE: dict[str, Any] = {"filter": {"definition": "resize", "labels": {"team": "a"}}, "dry_run": True}


class ChangeBody(StrictModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    filter: FilterBody = Field(description="Which jobs")
    dry_run: bool = Field(default=False, description="Only count them")


class ReprioritizeSomeBody(ChangeBody):
    model_config = ConfigDict(json_schema_extra={"examples": [{**_EXAMPLE, "priority": 9}]})

    priority: int = Field(ge=0, le=10, description="10 is the most urgent")


class ChangedResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"matched": 12, "exact": True, "changed": 10, "asked_to_stop": 2, "complete": True}]
        }
    )

    matched: int = Field(description="How many there were when it began, or were found in a dry run")
    exact: bool = Field(description=f"False: more than {COUNTED_MAX}")
    changed: int = Field(description="How many are now as asked; 0 in a dry run")
    asked_to_stop: int = Field(description="Running ones that were asked to stop, in a cancel")
    complete: bool = Field(description="False: there are more than one request may do; repeat it")


@bulk_router.post("/jobs:cancel", responses=problem_responses(413, 422))
async def cancel_jobs(body: ChangeBody, services: Services, caller: Submitter, note: Noted) -> ChangedResponse:
    """Cancel all jobs that match and have not ended; running ones are asked to stop."""
    which = body.filter.filter(caller)
    note.unaudited = body.dry_run

    async def change_slice() -> tuple[int, int]:
        done = await services.jobs.cancel_some(which, services.clock.wall_ms(), _SLICE)
        return done.cancelled, done.asked

    return await _change_in_slices(body, which, sorted(LIVE), change_slice, services)


@bulk_router.post("/jobs:reprioritize", responses=problem_responses(413, 422))
async def reprioritize_jobs(
    body: ReprioritizeSomeBody, services: Services, caller: Operator, note: Noted
) -> ChangedResponse:
    """Give all jobs that match and wait another priority."""
    which = body.filter.filter(caller)
    note.unaudited = body.dry_run

    async def change_slice() -> tuple[int, int]:
        return await services.jobs.reprioritize_some(which, body.priority, _SLICE), 0

    return await _change_in_slices(body, which, [JobState.PENDING], change_slice, services)


@bulk_router.post("/jobs:retry", responses=problem_responses(413, 422))
async def retry_jobs(body: ChangeBody, services: Services, caller: Operator, note: Noted) -> ChangedResponse:
    """Have all failed jobs that match run again; the cancelled ones where the filter says `state: cancelled`."""
    which = body.filter.filter(caller)
    note.unaudited = body.dry_run

    async def change_slice() -> tuple[int, int]:
        return await services.jobs.retry_some(which, services.clock.wall_ms(), _SLICE), 0

    return await _change_in_slices(body, which, revived_states(which), change_slice, services)


async def _change_in_slices(
    body: ChangeBody,
    which: JobSelection,
    states: Sequence[JobState],
    change_slice: Callable[[], Awaitable[tuple[int, int]]],
    services: Services,
) -> ChangedResponse:
    """Count the jobs in ``states``, then change them until none is left, or the request has done its share.

    ``change_slice`` returns how many jobs it changed, and how many running ones it asked to stop.
    """
    matched = await services.jobs.count(which, states, COUNTED_MAX + 1)
    changed = asked_to_stop = 0
    complete = body.dry_run
    for _ in range(0 if body.dry_run else _SLICES_MAX):
        more_changed, more_asked = await change_slice()
        changed, asked_to_stop = changed + more_changed, asked_to_stop + more_asked
        if more_changed + more_asked == 0:
            complete = True
            break
    return ChangedResponse(
        matched=min(matched, COUNTED_MAX),
        exact=matched <= COUNTED_MAX,
        changed=changed,
        asked_to_stop=asked_to_stop,
        complete=complete,
    )
