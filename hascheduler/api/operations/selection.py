"""What an operation's filter means: which jobs or schedules that are not as asked yet, and how many there are.

Jobs are looked up in the database. So are schedules, unless the filter says whether times are to come, or which verdict
was the last: that the replica's mirror says, as for the list of schedules, slice by slice.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hascheduler.api.jobs.changes import COUNTED_MAX
from hascheduler.api.middleware.auth import Caller
from hascheduler.api.operations.bodies import OperationFilterBody, stored_filter
from hascheduler.api.routing.time_slicing import run_in_slices
from hascheduler.api.schedules.selection import (
    LABELS_LOOKED_AT_MAX,
    ScheduleFilterQuery,
    count_matching,
    first_names,
    known_schedules,
    last_verdicts,
)
from hascheduler.api.services import ApiServices
from hascheduler.errors import StoreUnavailable
from hascheduler.model.job import LIVE, JobState
from hascheduler.model.schedule import ScheduleState
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import BulkOperation, JobSelection, MatchingSchedules, OperationAction, ScheduleSlice

_UNPAUSED = (ScheduleState.ACTIVE, ScheduleState.ENDED)
_MET = {
    OperationAction.PAUSE_SCHEDULES: _UNPAUSED,
    OperationAction.RESUME_SCHEDULES: (ScheduleState.PAUSED,),
    OperationAction.RESET_SCHEDULES: _UNPAUSED,
}


@dataclass(frozen=True, slots=True)
class Matched:
    """How many match; not ``exact``: there may be more."""

    matched: int
    exact: bool


def caller_of(operation: BulkOperation) -> Caller:
    """The caller for whom the operation acts."""
    return Caller(operation.role, operation.tenant, operation.by, operation.token_id)


def selected_jobs(operation: BulkOperation, services: ApiServices) -> JobSelection | None:
    """None: no job in the state that the filter wants is one that this action changes."""
    filter = stored_filter(operation)
    states = [state for state in _job_states(operation.action, filter) if filter.state in (None, state.value)]
    if filter.unschedulable:
        states = [state for state in states if state is JobState.PENDING]
    if not states:
        return None
    if filter.unschedulable and not services.view.ready:
        raise StoreUnavailable(f"this replica can't tell now which jobs can't run: {services.view.unready_reason}")
    # What comes later is not meant: else an operation might never end, and revive what it has revived before.
    before_ms = operation.started_at_ms + 1
    return JobSelection(
        states=tuple(states),
        definition=filter.definition,
        schedule=filter.schedule,
        tenant=caller_of(operation).filter_of(filter.tenant),
        batch=filter.batch,
        target=filter.target,
        labels=dict(filter.labels),
        since_ms=None if filter.since is None else WallMs(filter.since),
        before_ms=WallMs(before_ms if filter.until is None else min(before_ms, filter.until)),
        ids=services.view.unschedulable() if filter.unschedulable else None,
        id_prefix=filter.id,
    )


async def some_schedules(operation: BulkOperation, limit: int, services: ApiServices) -> ScheduleSlice:
    """The next ones from its position on."""
    filter, after = stored_filter(operation), operation.position
    states = _schedule_states(operation.action, filter)
    if not states:
        return ScheduleSlice([], None)
    which = _stored(operation, filter, states)
    if not _needs_the_mirror(operation.action, filter):
        return await services.matches.schedules(which, after, limit)
    asked = _query(operation.action, filter, states)
    last, _ = await last_verdicts(asked.verdict, services)
    known = await known_schedules(which.tenant, services)
    now = services.clock.wall_ms()
    steps = first_names(asked, which.tenant, last, known, LABELS_LOOKED_AT_MAX + 1, after=after, now=now)
    names = await run_in_slices(steps)
    some = names[:LABELS_LOOKED_AT_MAX]
    found = await services.matches.schedules(replace(which, names=some), after, limit)
    return ScheduleSlice(found.names, some[-1]) if found.next is None and len(names) > len(some) else found


async def count(operation: BulkOperation, services: ApiServices) -> Matched:
    """How many match, at most `COUNTED_MAX`."""
    if operation.action.is_of_jobs:
        jobs = selected_jobs(operation, services)
        found = 0 if jobs is None else await services.jobs.count(jobs, jobs.states, COUNTED_MAX + 1)
        return Matched(min(found, COUNTED_MAX), found <= COUNTED_MAX)
    filter = stored_filter(operation)
    states = _schedule_states(operation.action, filter)
    if not states:
        return Matched(0, exact=True)
    which, exact = _stored(operation, filter, states), True
    if _needs_the_mirror(operation.action, filter):
        query = _query(operation.action, filter, states)
        by_state, exact = await count_matching(query, which.tenant, services)
        found = sum(by_state.values())
    else:
        found = await services.matches.count_schedules(which, COUNTED_MAX + 1)
    return Matched(min(found, COUNTED_MAX), exact and found <= COUNTED_MAX)


def _job_states(action: OperationAction, filter: OperationFilterBody) -> Sequence[JobState]:
    match action:
        case OperationAction.CANCEL_JOBS:
            return sorted(LIVE)
        case OperationAction.RETRY_JOBS:
            # Cancelled ones only where that is asked for.
            return [JobState.CANCELLED if filter.state == JobState.CANCELLED.value else JobState.FAILED]
        case _:
            return [JobState.PENDING]


def _schedule_states(action: OperationAction, filter: OperationFilterBody) -> Sequence[ScheduleState]:
    """Empty: no schedule in the state that the filter wants is one that this action changes."""
    return [state for state in _MET.get(action, tuple(ScheduleState)) if filter.state in (None, state.value)]


def _needs_the_mirror(action: OperationAction, filter: OperationFilterBody) -> bool:
    if action is OperationAction.RESET_SCHEDULES:
        return True
    return filter.verdict is not None or filter.state in (ScheduleState.ACTIVE.value, ScheduleState.ENDED.value)


def _stored(
    operation: BulkOperation, filter: OperationFilterBody, states: Sequence[ScheduleState]
) -> MatchingSchedules:
    """What the database can tell; whether times are to come it can't."""
    paused = ScheduleState.PAUSED in states
    return MatchingSchedules(
        text=filter.text,
        tenant=caller_of(operation).filter_of(filter.tenant),
        paused=None if paused and len(states) > 1 else paused,
        labels=dict(filter.labels),
    )


def _query(
    action: OperationAction, filter: OperationFilterBody, states: Sequence[ScheduleState]
) -> ScheduleFilterQuery:
    return ScheduleFilterQuery(
        text=filter.text,
        state=list(states),
        verdict=[] if filter.verdict is None else [filter.verdict],
        label=[f"{key}={value}" for key, value in filter.labels.items()],
        ahead=action is OperationAction.RESET_SCHEDULES,
    )
