"""One slice of an operation: the next jobs or schedules that match are changed as a request for each would change them.

Of jobs a slice is one look along an index and one bulk change of what it found. Schedules are edited or triggered some
at a time, each by its own compare-and-set. A schedule that can't be changed is counted and left; what concerns all of
them (the database does not answer, the tenant has used up its rate) fails the slice, which is done again later. A
trigger carries a key of its operation and its schedule, so that again makes no second job.
"""

import asyncio
from dataclasses import dataclass, replace

from hascheduler.api.http.problems import ProblemError
from hascheduler.api.operations.selection import caller_of, selected_jobs, some_schedules
from hascheduler.api.routing.error_handlers import UnreadableDocument
from hascheduler.api.routing.revisions import Precondition
from hascheduler.api.schedules.pauses import pause, reset, resume
from hascheduler.api.schedules.trigger_now import TriggerNowBody, trigger
from hascheduler.api.services import ApiServices
from hascheduler.errors import CallerError, NotFound, TooMany
from hascheduler.ports import BulkOperation, JobSelection, ListPosition, OperationAction, OperationState

JOBS_AT_ONCE = 500
"""As many events come to every replica at once, and what others ask for waits behind them: with 500, about as long as
with 100."""
SCHEDULES_AT_ONCE = 32
TRIGGERS_AT_ONCE = 16
"""Fewer: where a tenant's rate holds a slice up, it begins again."""
_TOGETHER_MAX = 8
_ERROR_LENGTH_MAX = 500
_UNCONDITIONALLY = Precondition(None)


async def next_slice(operation: BulkOperation, services: ApiServices) -> BulkOperation:
    """The operation after its next slice, at its new position; done where nothing is left.

    `WorldError` and `TooMany`: the slice is to be done again, from the same position.
    """
    if operation.action.is_of_jobs:
        return await _slice_of_jobs(operation, services)
    return await _slice_of_schedules(operation, services)


async def _slice_of_jobs(operation: BulkOperation, services: ApiServices) -> BulkOperation:
    which = selected_jobs(operation, services)
    if which is None:
        return _at(operation, None, services)
    found = await services.matches.jobs(which, _job_position(operation.position), JOBS_AT_ONCE)
    changed = asked = 0
    if found.ids:
        changed, asked = await _changed_jobs(operation, JobSelection(which.states, ids=found.ids), services)
    counted = replace(operation, changed=operation.changed + changed, asked_to_stop=operation.asked_to_stop + asked)
    next = None if found.next is None else f"{found.next.at_ms}.{found.next.id or ''}"
    return _at(counted, next, services)


async def _changed_jobs(operation: BulkOperation, which: JobSelection, services: ApiServices) -> tuple[int, int]:
    """How many jobs are changed, and how many running ones are asked to stop."""
    now, limit = services.clock.wall_ms(), JOBS_AT_ONCE
    match operation.action:
        case OperationAction.CANCEL_JOBS:
            done = await services.jobs.cancel_some(which, now, limit)
            return done.cancelled, done.asked
        case OperationAction.RETRY_JOBS:
            return await services.jobs.retry_some(which, now, limit), 0
        case _:
            return await services.jobs.reprioritize_some(which, operation.priority or 0, limit), 0


async def _slice_of_schedules(operation: BulkOperation, services: ApiServices) -> BulkOperation:
    limit = TRIGGERS_AT_ONCE if operation.action is OperationAction.TRIGGER_SCHEDULES else SCHEDULES_AT_ONCE
    found = await some_schedules(operation, limit, services)
    fates: list[_Fate] = []
    for first in range(0, len(found.names), _TOGETHER_MAX):
        doing = [_fate(operation, name, services) for name in found.names[first : first + _TOGETHER_MAX]]
        # All of them to their ends, whatever becomes of one: a task that is left behind would still write.
        for fate in await asyncio.gather(*doing, return_exceptions=True):
            if isinstance(fate, BaseException):
                raise fate
            fates.append(fate)
    refusals = [fate.refusal for fate in fates if fate.refusal is not None]
    counted = replace(
        operation,
        changed=operation.changed + sum(fate.is_changed for fate in fates),
        refused=operation.refused + len(refusals),
        error=refusals[-1][:_ERROR_LENGTH_MAX] if refusals else operation.error,
    )
    return _at(counted, found.next, services)


@dataclass(frozen=True, slots=True)
class _Fate:
    """What became of one schedule; neither: it is gone."""

    is_changed: bool = False
    refusal: str | None = None


async def _fate(operation: BulkOperation, name: str, services: ApiServices) -> _Fate:
    try:
        await _change_schedule(operation, name, services)
    except TooMany:
        raise
    except NotFound:
        return _Fate()
    except (CallerError, UnreadableDocument) as error:
        return _Fate(refusal=str(error))
    except ProblemError as error:
        return _Fate(refusal=str(error.detail))
    return _Fate(is_changed=True)


async def _change_schedule(operation: BulkOperation, name: str, services: ApiServices) -> None:
    caller = caller_of(operation)
    match operation.action:
        case OperationAction.PAUSE_SCHEDULES:
            await pause(name, caller, services, _UNCONDITIONALLY, operation.reason)
        case OperationAction.RESUME_SCHEDULES:
            await resume(name, caller, services, _UNCONDITIONALLY, catch_up=operation.catch_up)
        case OperationAction.RESET_SCHEDULES:
            await reset(name, caller, services, _UNCONDITIONALLY)
        case _:
            key = f"{operation.id}/{name}"
            await trigger(name, caller, services, TriggerNowBody(), key=key, request=None)


def _at(operation: BulkOperation, position: str | None, services: ApiServices) -> BulkOperation:
    if position is None:
        return operation.ended(OperationState.DONE, services.clock.wall_ms())
    return replace(operation, position=position)


def _job_position(position: str | None) -> ListPosition | None:
    if position is None:
        return None
    at, _, id = position.partition(".")
    return ListPosition(int(at), id or None)
