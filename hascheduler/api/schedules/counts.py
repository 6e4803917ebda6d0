"""``GET /v1/schedules:counts``: how many schedules match, by state."""

from typing import Annotated

from fastapi import APIRouter
from pydantic import Field

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.middleware.auth import Viewer
from hascheduler.api.routing.published import query_of
from hascheduler.api.schedules.selection import count_matching
from hascheduler.api.services import Services
from hascheduler.schema.filters import ScheduleFilter
from hascheduler.schema.noun import Part
from hascheduler.schema.schedule import ScheduleState

router = APIRouter(tags=["schedules"])


class ScheduleCountsResponse(Part):
    """How many schedules match, by state."""

    matched: int = Field(examples=[431])
    """How many match"""
    exact: bool = Field(examples=[True])
    """False: there may be more, as no more than 10000 schedules are asked for their labels, and no more than 5000
    decisions looked at for the last verdict"""
    active: int = Field(examples=[412])
    """How many of them have times to come"""
    paused: int = Field(examples=[17])
    """How many of them are paused"""
    ended: int = Field(examples=[2])
    """How many of them have a trigger that names no more times"""


@router.get("/schedules:counts", responses=problem_responses(403, 422))
async def count_schedules(
    filter: Annotated[ScheduleFilter, query_of(ScheduleFilter)], services: Services, caller: Viewer
) -> ScheduleCountsResponse:
    """How many schedules match, by state; with the filters of the list, as far as this replica has heard of them."""
    counts, exact = await count_matching(filter, caller.filter_of(filter.tenant), services)
    by_state = {state.value: counts[state] for state in ScheduleState}
    return ScheduleCountsResponse(matched=sum(counts.values()), exact=exact, **by_state)
