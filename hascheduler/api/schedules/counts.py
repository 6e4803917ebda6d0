"""``GET /v1/schedules:counts``: how many schedules match, by state."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.middleware.auth import Viewer
from hascheduler.api.routing.time_slicing import run_in_slices
from hascheduler.api.schedules.selection import (
    DECISIONS_MAX,
    ScheduleFilterQuery,
    last_verdicts,
    matching,
)
from hascheduler.api.services import Services
from hascheduler.model.schedule import ScheduleState

LABELLED_MAX = 10_000
"""Schedules whose labels are looked at for one count."""
_AT_ONCE = 2_500

router = APIRouter(tags=["schedules"])


class ScheduleCountsResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"matched": 431, "exact": True, "active": 412, "paused": 17, "ended": 2}]}
    )

    matched: int = Field(description="How many match")
    exact: bool = Field(
        description=f"False: there may be more, as no more than {LABELLED_MAX} schedules are asked for their labels, "
        f"and no more than {DECISIONS_MAX} decisions looked at for the last verdict"
    )
    active: int = Field(description="How many of them have times to come")
    paused: int = Field(description="How many of them are paused")
    ended: int = Field(description="How many of them have a trigger that names no more times")


@router.get("/schedules:counts", responses=problem_responses(403, 422))
async def count_schedules(
    query: Annotated[ScheduleFilterQuery, Query()], services: Services, caller: Viewer
) -> ScheduleCountsResponse:
    """How many schedules match, by state; with the filters of the list, as far as this replica has heard of them."""
    tenant, labels = caller.filter_of(query.tenant), query.labels()
    last, exact = await last_verdicts(query.verdict, services)
    found = await run_in_slices(matching(query, tenant, last, services, with_states=True))
    counts = {state: len(names) for state, names in found.items()}
    if labels:
        exact = exact and sum(counts.values()) <= LABELLED_MAX
        state_of = {name: state for state, names in found.items() for name in names[:LABELLED_MAX]}
        names = [*state_of][:LABELLED_MAX]
        counts = dict.fromkeys(found, 0)
        for place in range(0, len(names), _AT_ONCE):
            some = names[place : place + _AT_ONCE]
            for name in await services.schedules.names_among(some, labels, tenant=tenant):
                counts[state_of[name]] += 1
    return ScheduleCountsResponse(
        matched=sum(counts.values()),
        exact=exact,
        active=counts[ScheduleState.ACTIVE],
        paused=counts[ScheduleState.PAUSED],
        ended=counts[ScheduleState.ENDED],
    )
