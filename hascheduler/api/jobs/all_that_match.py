"""``POST /v1/jobs:cancel``, ``:reprioritize``, ``:retry``, ``:delete``: change all that match, up to 20,000 a request.

A request counts the matching jobs, changes them slice by slice, and rests after each slice: each change is an event for
every replica. It ends after some seconds, and a caller repeats it with ``next`` as ``after`` until it is ``complete``.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from pydantic import ConfigDict, Field

from hascheduler.api.http.limits import holding_of
from hascheduler.api.http.problems import problem_responses
from hascheduler.api.jobs.read import COUNTED_MAX, selected
from hascheduler.api.middleware.audit import AuditNote, Noted
from hascheduler.api.middleware.auth import Caller, Operator, Submitter
from hascheduler.api.routing.route_rules import JsonRoute
from hascheduler.api.services import ApiServices, Services
from hascheduler.errors import Conflict, StoreUnavailable
from hascheduler.model.job import LIVE, TERMINAL, JobState
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import JobSelection, revived_states
from hascheduler.schema.filters import ChangeOfMany, JobFilter
from hascheduler.schema.forms import Instant, instant_text, whole
from hascheduler.schema.lane import PRIORITY_MAX
from hascheduler.schema.noun import AS_REQUEST, Part

CHANGED_MAX = 20_000
"""How many jobs or schedules one request changes."""
BUSY_MS_MAX = 10_000
"""How long one request changes jobs or schedules: a third of its time limit."""
_SLICE = 500
"""Other requests wait behind the events of a slice: about as long for 500 as for 100."""
_SKEW_MS = 1_000
"""How far the clocks of those who submit and end jobs may be ahead of this replica's."""
_REST_S_MIN, _REST_S_MAX = 0.01, 1.0
_RESTS_MAX = 20

router = APIRouter(tags=["jobs"], route_class=JsonRoute)


class ChangeBody(ChangeOfMany):
    """The jobs to change."""

    filter: JobFilter
    """The jobs to select; at least one condition is required"""
    after: Instant | None = None
    """`next` of the previous response: jobs that were submitted, or failed, after this instant are not changed"""


class ReprioritizeSomeBody(ChangeBody):
    """The jobs to reprioritize."""

    priority: Annotated[int, whole(0, PRIORITY_MAX)] = Field(examples=[9])
    """From 0 to 10; 10 is the most urgent"""


class ChangedResponse(Part):
    """The result of a bulk operation."""

    model_config = ConfigDict(frozen=False)

    matched: int = Field(examples=[12])
    """How many matched when it started, or in a dry run"""
    exact: bool = Field(examples=[True])
    """False if more may match: at most 100000 are counted"""
    changed: int = Field(default=0, examples=[10])
    """How many this request changed; 0 in a dry run"""
    asked_to_stop: int = Field(default=0, examples=[2])
    """How many running jobs were asked to stop, in a cancel"""
    refused: int = 0
    """How many schedules could not be changed; `error` has one of the reasons"""
    error: str | None = None
    """Why a schedule could not be changed"""
    complete: bool = True
    """False if more are left, because one request changes at most 20000, for at most 10 s: repeat it"""
    next: str | None = None
    """`after` for the repeated request; null if it is complete"""


def counted_only(matched: int, *, exact: bool = True) -> ChangedResponse:
    """Return the answer to a dry run."""
    return ChangedResponse(matched=min(matched, COUNTED_MAX), exact=exact and matched <= COUNTED_MAX)


@dataclass(frozen=True, slots=True)
class Bulk:
    """A request to change all that match."""

    services: ApiServices
    request: Request
    note: AuditNote

    async def turns(self, body: ChangeOfMany, counted: ChangedResponse, *, is_first: bool) -> AsyncIterator[None]:
        """Yield once a slice, until the request has been busy for long enough or the replica stops.

        Between slices it rests as long as the slice took, and longer while submits are refused. For the first of
        several requests, raise a `Conflict` if over a tenth more than the caller confirmed are ``counted``.
        """
        if is_first:
            require_expected(counted, body.expected)
        holding_of(self.request.scope).take("changes")
        clock = self.services.clock
        until_ms = clock.mono_ms() + BUSY_MS_MAX
        while not self.services.view.stopping:
            began_ms = clock.mono_ms()
            yield
            worked_s = (clock.mono_ms() - began_ms) / 1_000
            await asyncio.sleep(min(max(worked_s, _REST_S_MIN), _REST_S_MAX))
            for _ in range(_RESTS_MAX):
                if not self.services.admission.is_holding_back():
                    break
                await asyncio.sleep(_REST_S_MAX / 4)
            if clock.mono_ms() >= until_ms:
                return


async def _bulk(services: Services, request: Request, note: Noted) -> Bulk:
    return Bulk(services, request, note)


BulkRequest = Annotated[Bulk, Depends(_bulk)]
REFUSALS = problem_responses(409, 413, 422, 429)


@router.post("/jobs:cancel", responses=REFUSALS)
async def cancel_jobs(body: Annotated[ChangeBody, AS_REQUEST], bulk: BulkRequest, caller: Submitter) -> ChangedResponse:
    """Cancel all matching jobs that have not ended; running ones are asked to stop. Repeat it until it is complete."""

    async def change_slice(which: JobSelection, at_ms: WallMs, limit: int) -> tuple[int, int]:
        done = await bulk.services.jobs.cancel_some(which, bulk.services.clock.wall_ms(), limit)
        return done.cancelled, done.asked

    return await _change(body, lambda _: sorted(LIVE), change_slice, bulk, caller)


@router.post("/jobs:reprioritize", responses=REFUSALS)
async def reprioritize_jobs(
    body: Annotated[ReprioritizeSomeBody, AS_REQUEST], bulk: BulkRequest, caller: Operator
) -> ChangedResponse:
    """Change the priority of all matching jobs that wait. Repeat it until it is complete."""

    async def change_slice(which: JobSelection, at_ms: WallMs, limit: int) -> tuple[int, int]:
        return await bulk.services.jobs.reprioritize_some(which, body.priority, limit), 0

    return await _change(body, lambda _: [JobState.PENDING], change_slice, bulk, caller)


@router.post("/jobs:retry", responses=REFUSALS)
async def retry_jobs(body: Annotated[ChangeBody, AS_REQUEST], bulk: BulkRequest, caller: Operator) -> ChangedResponse:
    """Retry all matching jobs that failed, or were cancelled if the filter has `state: cancelled`.

    Repeat it until it is complete.
    """

    async def change_slice(which: JobSelection, at_ms: WallMs, limit: int) -> tuple[int, int]:
        return await bulk.services.jobs.retry_some(which, WallMs(at_ms + _SKEW_MS), limit), 0

    return await _change(body, revived_states, change_slice, bulk, caller)


@router.post("/jobs:delete", responses=REFUSALS)
async def delete_jobs(body: Annotated[ChangeBody, AS_REQUEST], bulk: BulkRequest, caller: Operator) -> ChangedResponse:
    """Delete all matching jobs that have ended. Repeat it until it is complete.

    They are gone, and their idempotency keys free, after ten minutes, like jobs at the end of their retention; a retry
    until then keeps the job. Jobs of schedules that exist are not deleted: they show what became of its times.
    """
    services = bulk.services

    async def change_slice(which: JobSelection, at_ms: WallMs, limit: int) -> tuple[int, int]:
        return await services.jobs.delete_some(which, services.clock.wall_ms(), limit), 0

    made_by = await services.jobs.schedules_of(selected(body.filter, caller, services))
    kept = await services.schedules.names_among([*made_by], {}, tenant=None) if made_by else ()
    return await _change(body, lambda _: sorted(TERMINAL), change_slice, bulk, caller, kept=kept)


async def _change(
    body: ChangeBody,
    states: Callable[[JobSelection], Sequence[JobState]],
    change_slice: Callable[[JobSelection, WallMs, int], Awaitable[tuple[int, int]]],
    bulk: Bulk,
    caller: Caller,
    *,
    kept: Collection[str] | None = None,
) -> ChangedResponse:
    """Count the jobs in ``states``, then change them until none is left or the request has done its share.

    ``change_slice`` returns how many jobs it changed, and how many running ones it asked to stop. ``kept`` are, in a
    deletion, the schedules whose jobs stay.
    """
    services = bulk.services
    bulk.note.unaudited = body.dry_run
    if body.filter.unschedulable and not services.view.ready:
        raise StoreUnavailable(f"this replica does not know now which jobs can't run: {services.view.unready_reason}")
    at_ms = services.clock.wall_ms() if body.after is None else body.after
    which = selected(body.filter, caller, services)
    if kept is not None:
        which = which.to_delete(services.clock.wall_ms()).model_copy(update={"not_made_by": kept})
    if body.after is not None:
        until_ms = WallMs(at_ms + _SKEW_MS)
        bounds = (bound for bound in (which.until_ms, until_ms) if bound is not None)
        which = which.model_copy(update={"until_ms": min(bounds)})
    which = which.model_copy(update={"not_of": await _tenants_of_copies(services)})
    answer = counted_only(await services.jobs.count(which, states(which), COUNTED_MAX + 1))
    if body.dry_run:
        return answer
    answer.complete, answer.next = False, instant_text(at_ms)
    async for _ in bulk.turns(body, answer, is_first=body.after is None):
        which = which.model_copy(update={"not_of": await _tenants_of_copies(services)})
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
    """Return the tenants that are about to move here: their documents here are copies, which nobody may change."""
    partitions = services.view.copied_partitions()
    if services.tenants_in is None or not partitions:
        return ()
    return {tenant for partition in sorted(partitions) for tenant in await services.tenants_in(partition)}


def require_expected(counted: ChangedResponse, expected: int | None) -> None:
    """Raise a `Conflict` if over a tenth more jobs match than the caller confirmed."""
    if expected is not None and expected < COUNTED_MAX and counted.matched * 10 > expected * 11:
        least = "" if counted.exact else "at least "
        raise Conflict(f"{least}{counted.matched} match now, but {expected} were expected; check and retry")
