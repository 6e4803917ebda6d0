"""The jobs that a list, a count or an action selects, as far as the caller may see them."""

from hascheduler.api.middleware.auth import Caller
from hascheduler.api.services import ApiServices
from hascheduler.model.job import JobState
from hascheduler.ports import JobSelection
from hascheduler.schema.filters import JobAttributes


def selected(filter: JobAttributes, caller: Caller, services: ApiServices) -> JobSelection:
    """Return the selection of ``filter``; raise an error if it names a tenant that is not the caller's."""
    which = JobSelection.model_construct(**{**dict(filter), "tenant": caller.filter_of(filter.tenant)})
    if not which.unschedulable:
        return which
    waiting = not which.states or JobState.PENDING in which.states
    ids = services.view.unschedulable() if waiting else ()
    # These wait, so their range is read.
    return which.model_copy(update={"states": (JobState.PENDING,), "ids": ids})
