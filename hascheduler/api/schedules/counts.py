"""``GET /v1/schedules:counts``: how many schedules match, by state."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.middleware.auth import Viewer
from hascheduler.api.schedules.selection import DECISIONS_MAX, LABELLED_MAX, ScheduleFilterQuery, count_matching
from hascheduler.api.services import Services
from hascheduler.schema.schedule import ScheduleState

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
    counts, exact = await count_matching(query, caller.filter_of(query.tenant), services)
    return ScheduleCountsResponse(
        matched=sum(counts.values()),
        exact=exact,
        active=counts[ScheduleState.ACTIVE],
        paused=counts[ScheduleState.PAUSED],
        ended=counts[ScheduleState.ENDED],
    )
