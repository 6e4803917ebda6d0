"""``GET /v1/jobs:counts``: how many jobs match, by state.

The replica's mirror counts live jobs as they come and go: where nothing else is asked than of which definition or of
which tenant, it answers for them. All else is counted in the database, with bounded work.
"""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.jobs.all_that_match import COUNTED_MAX
from hascheduler.api.jobs.queries import JobFilterQuery
from hascheduler.api.middleware.auth import Viewer
from hascheduler.api.services import ApiServices, Services
from hascheduler.model.job import LIVE, JobState
from hascheduler.ports import JobCounts, JobSelection

router = APIRouter(tags=["jobs"])


class JobCountsResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "matched": 100_019,
                    "exact": False,
                    "at_least": ["succeeded"],
                    "pending": 12,
                    "dispatched": 0,
                    "running": 4,
                    "succeeded": 100_000,
                    "failed": 3,
                    "cancelled": 0,
                }
            ]
        }
    )

    matched: int = Field(description="How many match, in all states")
    exact: bool = Field(description="False: there may be more than is said, in the states of `at_least`")
    at_least: list[JobState] = Field(
        description=f"The states in which there may be more: of no state more than {COUNTED_MAX} are counted, and no "
        "more jobs are looked at than one request may"
    )
    pending: int = Field(description="How many wait")
    dispatched: int = Field(description="How many are promised to a processor")
    running: int = Field(description="How many run")
    succeeded: int = Field(description="How many succeeded, and are still kept")
    failed: int = Field(description="How many failed for good, and are still kept: the dead letters")
    cancelled: int = Field(description="How many were cancelled, and are still kept")


@router.get("/jobs:counts", responses=problem_responses(403, 422))
async def count_jobs(
    query: Annotated[JobFilterQuery, Query()], services: Services, caller: Viewer
) -> JobCountsResponse:
    """How many jobs match, by state; with the filters of the list.

    Exact as long as an index has no more than 10,000 jobs that may match. Beyond that the newest are looked at, and the
    answer says in which states there may be more.
    """
    which = query.filter(caller.filter_of(query.tenant), services.view.unschedulable())
    live = _live_counts(which, services)
    wanted = tuple(state for state in which.states or JobState if live is None or state not in LIVE)
    stored = await services.jobs.counts(replace(which, states=wanted), COUNTED_MAX) if wanted else JobCounts({})
    by_state = {**(live or {}), **stored.by_state}
    shown = {state.value: by_state.get(state, 0) for state in JobState}
    return JobCountsResponse(
        matched=sum(shown.values()),
        exact=not stored.at_least,
        at_least=[state for state in JobState if state in stored.at_least],
        **shown,
    )


def _live_counts(which: JobSelection, services: ApiServices) -> dict[JobState, int] | None:
    """The counts of the live states that are asked for; None where the mirror can't tell."""
    others = replace(which, states=(), definition=None, tenant=None)
    if not services.view.ready or others != JobSelection() or None not in (which.definition, which.tenant):
        return None
    live = services.view.live_jobs(definition=which.definition, tenant=which.tenant)
    return {state: live.get(state, 0) for state in LIVE if not which.states or state in which.states}
