"""What an operation's filter means: which jobs or schedules that are not as asked yet, and how many there are."""

from collections.abc import Sequence

from hascheduler.api.jobs.changes import COUNTED_MAX
from hascheduler.api.middleware.auth import Caller
from hascheduler.api.operations.bodies import OperationFilterBody, stored_filter
from hascheduler.api.services import ApiServices
from hascheduler.model.instants import WallMs
from hascheduler.model.job import LIVE, JobState
from hascheduler.ports import BulkOperation, JobSelection, MatchingSchedules, OperationAction

_PAUSED = {"active": False, "paused": True}
_MET_PAUSED = {OperationAction.PAUSE_SCHEDULES: False, OperationAction.RESUME_SCHEDULES: True}


def caller_of(operation: BulkOperation) -> Caller:
    """For whom it acts."""
    return Caller(operation.role, operation.tenant, operation.by, operation.token_id)


def selected_jobs(operation: BulkOperation) -> JobSelection | None:
    """None: no job in the state that the filter wants is one that this action changes."""
    filter = stored_filter(operation)
    states = [state for state in _states(operation.action, filter) if filter.state in (None, state.value)]
    if not states:
        return None
    return JobSelection(
        states=tuple(states),
        definition=filter.definition,
        schedule=filter.schedule,
        tenant=caller_of(operation).filter_of(filter.tenant),
        batch=filter.batch,
        target=filter.target,
        labels=dict(filter.labels),
        # What comes later is not meant: else an operation might never end, and revive what it has revived before.
        before_ms=WallMs(operation.started_at_ms + 1),
    )


def selected_schedules(operation: BulkOperation) -> MatchingSchedules | None:
    """As `selected_jobs`."""
    filter = stored_filter(operation)
    paused = _MET_PAUSED.get(operation.action)
    if filter.state is not None:
        if paused not in (None, _PAUSED[filter.state]):
            return None
        paused = _PAUSED[filter.state]
    return MatchingSchedules(
        text=filter.text,
        tenant=caller_of(operation).filter_of(filter.tenant),
        paused=paused,
        labels=dict(filter.labels),
    )


async def count(operation: BulkOperation, services: ApiServices) -> int:
    """At most `COUNTED_MAX` and one more."""
    if operation.action.is_of_jobs:
        jobs = selected_jobs(operation)
        return 0 if jobs is None else await services.jobs.count(jobs, jobs.states, COUNTED_MAX + 1)
    schedules = selected_schedules(operation)
    return 0 if schedules is None else await services.matches.count_schedules(schedules, COUNTED_MAX + 1)


def _states(action: OperationAction, filter: OperationFilterBody) -> Sequence[JobState]:
    match action:
        case OperationAction.CANCEL_JOBS:
            return sorted(LIVE)
        case OperationAction.RETRY_JOBS:
            # Cancelled ones only where that is asked for.
            return [JobState.CANCELLED if filter.state == JobState.CANCELLED.value else JobState.FAILED]
        case _:
            return [JobState.PENDING]
