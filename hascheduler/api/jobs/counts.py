"""``GET /v1/jobs:counts``: how many jobs match, by state.

The replica's mirror counts live jobs as they come and go: where nothing else is asked than of which definition or of
which tenant, it answers for them. All else is counted in the database, with bounded work.
"""

from typing import Annotated

from fastapi import APIRouter
from pydantic import Field

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.jobs.all_that_match import COUNTED_MAX
from hascheduler.api.jobs.queries import selected
from hascheduler.api.middleware.auth import Viewer
from hascheduler.api.routing.published import query_of
from hascheduler.api.services import ApiServices, Services
from hascheduler.model.job import LIVE, JobState
from hascheduler.ports import JobCounts, JobSelection
from hascheduler.schema.filters import JobFilter
from hascheduler.schema.noun import Part

router = APIRouter(tags=["jobs"])


class JobCountsResponse(Part):
    """How many jobs match, by state."""

    matched: int = Field(examples=[100_019])
    """How many match, in all states"""
    exact: bool = Field(examples=[False])
    """False: there may be more than is said, in the states of `at_least`"""
    at_least: list[JobState] = Field(examples=[["succeeded"]])
    """The states in which there may be more: of no state more than 100000 are counted, and no more jobs are looked at
    than one request may"""
    pending: int = Field(default=0, examples=[12])
    """How many wait"""
    dispatched: int = Field(default=0, examples=[0])
    """How many are promised to a processor"""
    running: int = Field(default=0, examples=[4])
    """How many run"""
    succeeded: int = Field(default=0, examples=[100_000])
    """How many succeeded, and are still kept"""
    failed: int = Field(default=0, examples=[3])
    """How many failed for good, and are still kept: the dead letters"""
    cancelled: int = Field(default=0, examples=[0])
    """How many were cancelled, and are still kept"""


@router.get("/jobs:counts", responses=problem_responses(403, 422))
async def count_jobs(
    filter: Annotated[JobFilter, query_of(JobFilter)], services: Services, caller: Viewer
) -> JobCountsResponse:
    """How many jobs match, by state; with the filters of the list.

    Exact as long as an index has no more than 10,000 jobs that may match. Beyond that the newest are looked at, and the
    answer says in which states there may be more.
    """
    which = selected(filter, caller, services)
    live = _live_counts(which, services)
    wanted = tuple(state for state in which.states or JobState if live is None or state not in LIVE)
    stored = JobCounts({})
    if wanted:
        stored = await services.jobs.counts(which.model_copy(update={"states": wanted}), COUNTED_MAX)
    by_state = {**(live or {}), **stored.by_state}
    return JobCountsResponse(
        matched=sum(by_state.values()),
        exact=not stored.at_least,
        at_least=[state for state in JobState if state in stored.at_least],
        **{state.value: count for state, count in by_state.items()},
    )


def _live_counts(which: JobSelection, services: ApiServices) -> dict[JobState, int] | None:
    """Return the counts of the live states that are asked for; None if the mirror can't tell."""
    others = which.model_copy(update={"states": (), "definition": None, "tenant": None})
    if not services.view.ready or others != JobSelection() or None not in (which.definition, which.tenant):
        return None
    live = services.view.live_jobs(definition=which.definition, tenant=which.tenant)
    return {state: live.get(state, 0) for state in LIVE if not which.states or state in which.states}
