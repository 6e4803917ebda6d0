"""``POST /v1/jobs:cancel``, ``:reprioritize`` and ``:retry``: change all jobs that match, up to 20,000 a request.

A request counts the matching jobs, changes them slice by slice, and rests after each slice: each change is an event for
every replica. It ends after some seconds, and a caller repeats it with ``next`` as ``after`` until it is ``complete``.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, model_validator

from hascheduler.api.http.limits import holding_of
from hascheduler.api.http.problems import problem_responses
from hascheduler.api.jobs.queries import JOB_ID_LENGTH_MAX, JobFilterQuery
from hascheduler.api.middleware.audit import Noted
from hascheduler.api.middleware.auth import Caller, Operator, Submitter
from hascheduler.api.routing.route_rules import JsonRoute
from hascheduler.api.services import ApiServices, Services
from hascheduler.errors import Conflict, StoreUnavailable
from hascheduler.model.job import LIVE, JobState
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import JobSelection, revived_states
from hascheduler.wire.fields import InstantMs, Labels, Name, StrictModel, Text, instant_text, invalid_value

COUNTED_MAX = 100_000
CHANGED_MAX = 20_000
"""How many jobs or schedules one request changes."""
BUSY_MS_MAX = 10_000
"""How long one request changes jobs or schedules; a third of what it may take."""
_SLICE = 500
"""Other requests wait behind the events of a slice: behind those of 500 about as long as behind those of 100."""
_SKEW_MS = 1_000
"""By how much the clocks of those who submit and end jobs may be ahead of this replica's."""
_REST_S_MIN, _REST_S_MAX = 0.01, 1.0
_RESTS_MAX = 20

router = APIRouter(tags=["jobs"], route_class=JsonRoute)


class SomeFilterBody(StrictModel):
    """All that is given must hold, and something must be given."""

    @model_validator(mode="after")
    def _names_something(self) -> "SomeFilterBody":
        if not any(getattr(self, name) for name in type(self).model_fields):
            raise invalid_value("names nothing", "at least one of " + ", ".join(type(self).model_fields))
        return self


class FilterBody(SomeFilterBody):
    """All that is given must hold, and something must be given."""

    state: JobState | None = Field(description="Only jobs in this state", default=None, strict=False)
    definition: Name | None = Field(default=None, description="Only jobs of this type")
    schedule: Name | None = Field(default=None, description="Only jobs that this schedule made")
    tenant: Name | None = Field(default=None, description="Only jobs of this tenant")
    batch: Text | None = Field(default=None, description="Only jobs submitted in this batch, `batch:…`")
    target: Text | None = Field(default=None, description="Only jobs that work on this")
    id: Annotated[str, Field(min_length=1, max_length=JOB_ID_LENGTH_MAX)] | None = Field(
        default=None, description="Only jobs whose id begins with this text, as in `GET /v1/jobs`"
    )
    since: InstantMs | None = Field(default=None, description="Only jobs submitted at this instant or later")
    until: InstantMs | None = Field(default=None, description="Only jobs submitted before this instant")
    unschedulable: bool = Field(
        default=False, description="Only jobs that wait and that no processor which lives could ever run"
    )
    labels: Labels = Field(description="Only jobs with all of these labels", default={})

    def selection(self, caller: Caller, services: ApiServices, before_ms: int | None) -> JobSelection:
        """The jobs that the filter of the list selects; only those submitted before that instant, if there is one."""
        if self.unschedulable and not services.view.ready:
            raise StoreUnavailable(f"this replica can't tell now which jobs can't run: {services.view.unready_reason}")
        given = {
            **dict(self),
            "state": [] if self.state is None else [self.state],
            "label": [f"{key}={value}" for key, value in self.labels.items()],
            "until": min([bound for bound in (self.until, before_ms) if bound is not None], default=None),
        }
        unschedulable = services.view.unschedulable() if self.unschedulable else ()
        return JobFilterQuery.model_construct(**given).filter(caller.filter_of(self.tenant), unschedulable)


class SomeBody(StrictModel):
    """What all requests that change many have in common."""

    dry_run: bool = Field(default=False, description="Only count them")
    expected: int | None = Field(
        default=None,
        ge=0,
        le=1_000_000_000,
        description="How many there were when you agreed to it: 409 if now more than 10 % more match",
    )


_EXAMPLE: dict[str, Any] = {"filter": {"definition": "resize", "labels": {"team": "a"}}, "dry_run": True}


class ChangeBody(SomeBody):
    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    filter: FilterBody = Field(description="Which jobs")
    after: InstantMs | None = Field(
        default=None,
        description="`next` of the answer before: jobs that were submitted, or that failed, later are left alone",
    )


class ReprioritizeSomeBody(ChangeBody):
    model_config = ConfigDict(json_schema_extra={"examples": [{**_EXAMPLE, "priority": 9}]})

    priority: int = Field(ge=0, le=10, description="10 is the most urgent")


class ChangedResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "matched": 12,
                    "exact": True,
                    "changed": 10,
                    "asked_to_stop": 2,
                    "refused": 0,
                    "error": None,
                    "complete": True,
                    "next": None,
                }
            ]
        }
    )

    matched: int = Field(description="How many there were when it began, or were found in a dry run")
    exact: bool = Field(description=f"False: there may be more; no more than {COUNTED_MAX} are counted")
    changed: int = Field(description="How many this request has changed; 0 in a dry run")
    asked_to_stop: int = Field(description="Running jobs that were asked to stop, in a cancel")
    refused: int = Field(description="Schedules that could not be changed: `error` has one of the reasons")
    error: str | None = Field(description="Why a schedule could not be changed")
    complete: bool = Field(
        description=f"False: more are left, as one request changes at most {CHANGED_MAX}, for at most "
        f"{BUSY_MS_MAX // 1_000} s; repeat it",
    )
    next: str | None = Field(description="`after` of the repeated request; null when it is complete")


def counted_only(matched: int, *, exact: bool = True) -> ChangedResponse:
    """The answer to a dry run."""
    return ChangedResponse(
        matched=min(matched, COUNTED_MAX),
        exact=exact and matched <= COUNTED_MAX,
        changed=0,
        asked_to_stop=0,
        refused=0,
        error=None,
        complete=True,
        next=None,
    )


@router.post("/jobs:cancel", responses=problem_responses(409, 413, 422, 429))
async def cancel_jobs(
    body: ChangeBody, services: Services, caller: Submitter, request: Request, note: Noted
) -> ChangedResponse:
    """Cancel all jobs that match and have not ended; running ones are asked to stop. Repeat it until it is complete."""

    async def change_slice(which: JobSelection, at_ms: WallMs, limit: int) -> tuple[int, int]:
        done = await services.jobs.cancel_some(which, services.clock.wall_ms(), limit)
        return done.cancelled, done.asked

    return await _change(body, lambda _: sorted(LIVE), change_slice, services, caller, request=request, note=note)


@router.post("/jobs:reprioritize", responses=problem_responses(409, 413, 422, 429))
async def reprioritize_jobs(
    body: ReprioritizeSomeBody, services: Services, caller: Operator, request: Request, note: Noted
) -> ChangedResponse:
    """Give all jobs that match and wait another priority. Repeat it until it is complete."""

    async def change_slice(which: JobSelection, at_ms: WallMs, limit: int) -> tuple[int, int]:
        return await services.jobs.reprioritize_some(which, body.priority, limit), 0

    return await _change(body, lambda _: [JobState.PENDING], change_slice, services, caller, request=request, note=note)


@router.post("/jobs:retry", responses=problem_responses(409, 413, 422, 429))
async def retry_jobs(
    body: ChangeBody, services: Services, caller: Operator, request: Request, note: Noted
) -> ChangedResponse:
    """Have all failed jobs that match run again; the cancelled ones if the filter says `state: cancelled`. Repeat it
    until it is complete."""

    async def change_slice(which: JobSelection, at_ms: WallMs, limit: int) -> tuple[int, int]:
        return await services.jobs.retry_some(which, WallMs(at_ms + _SKEW_MS), limit), 0

    return await _change(body, revived_states, change_slice, services, caller, request=request, note=note)


async def _change(
    body: ChangeBody,
    states: Callable[[JobSelection], Sequence[JobState]],
    change_slice: Callable[[JobSelection, WallMs, int], Awaitable[tuple[int, int]]],
    services: ApiServices,
    caller: Caller,
    *,
    request: Request,
    note: Noted,
) -> ChangedResponse:
    """Count the jobs in ``states``, then change them until none is left or the request has done its share.

    ``change_slice`` returns how many jobs it changed, and how many running ones it asked to stop.
    """
    note.unaudited = body.dry_run
    at_ms = services.clock.wall_ms() if body.after is None else WallMs(body.after)
    which = body.filter.selection(caller, services, None if body.after is None else at_ms + _SKEW_MS)
    which = replace(which, not_of=await _tenants_of_copies(services))
    answer = counted_only(await services.jobs.count(which, states(which), COUNTED_MAX + 1))
    if body.dry_run:
        return answer
    if body.after is None:
        require_expected(answer, body)
    answer.complete, answer.next = False, instant_text(at_ms)
    with holding_of(request.scope).take("changes"):
        async for _ in turns(services):
            which = replace(which, not_of=await _tenants_of_copies(services))
            left = CHANGED_MAX - answer.changed - answer.asked_to_stop
            changed, asked = await change_slice(which, at_ms, min(_SLICE, left))
            answer.changed, answer.asked_to_stop = answer.changed + changed, answer.asked_to_stop + asked
            if not changed and not asked:
                answer.complete, answer.next = True, None
                break
            if answer.changed + answer.asked_to_stop >= CHANGED_MAX:
                break
    return answer


async def _tenants_of_copies(services: ApiServices) -> Collection[str]:
    """Return the tenants that are about to move here: what is here of them are copies, which nobody may change."""
    partitions = services.view.copied_partitions()
    if services.tenants_in is None or not partitions:
        return ()
    return {tenant for partition in sorted(partitions) for tenant in await services.tenants_in(partition)}


def require_expected(counted: ChangedResponse, body: SomeBody) -> None:
    """`Conflict` if people agreed to another number than what would be changed."""
    expected = body.expected
    if expected is not None and expected < COUNTED_MAX and counted.matched * 10 > expected * 11:
        least = "" if counted.exact else "at least "
        raise Conflict(f"{least}{counted.matched} match now, and {expected} were expected; look again")


async def turns(services: ApiServices) -> AsyncIterator[None]:
    """Yield once a slice, until the request has been busy for long enough or the replica stops.

    Between slices it rests as long as the slice took, and longer while submits are refused.
    """
    clock = services.clock
    until_ms = clock.mono_ms() + BUSY_MS_MAX
    while not services.view.stopping:
        began_ms = clock.mono_ms()
        yield
        worked_s = (clock.mono_ms() - began_ms) / 1_000
        await asyncio.sleep(min(max(worked_s, _REST_S_MIN), _REST_S_MAX))
        for _ in range(_RESTS_MAX):
            if not services.admission.is_holding_back():
                break
            await asyncio.sleep(_REST_S_MAX / 4)
        if clock.mono_ms() >= until_ms:
            return
