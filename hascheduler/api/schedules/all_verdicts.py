"""``/v1/verdicts``: the nominal times of all schedules that did not fire, the newest decision first.

Those that fired have jobs, and are in ``/v1/jobs``.
"""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.middleware.auth import Viewer
from hascheduler.api.routing.published import query_of
from hascheduler.api.routing.queries import NewestFirstQuery, place_text
from hascheduler.api.services import Services
from hascheduler.model.verdict import Verdict
from hascheduler.ports import DecidedVerdict, VerdictSelection
from hascheduler.schema.filters import NOT_FIRED, VerdictFilter
from hascheduler.schema.forms import instant_text

router = APIRouter(prefix="/verdicts", tags=["schedules"])


class ScheduleVerdictResponse(BaseModel):
    """What became of one nominal time of a schedule, or of several that follow each other."""

    schedule: str = Field(description="The name of the schedule")
    verdict: Verdict = Field(description="What became of it")
    nominal_at: str = Field(description="The nominal time, or the first of several")
    through_at: str = Field(description="The last of several")
    count: int = Field(description="How many nominal times")
    because_of: str | None = Field(
        description="The job that was in the way of a skipped one, the limit of its tenant that a throttled one met; "
        "`expired`: the job of a missed one would have expired before it was made"
    )
    decided_at: str = Field(description="When the leader decided it")


class ScheduleVerdictPage(BaseModel):
    """A page of verdicts of all schedules."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "items": [
                        {
                            "schedule": "nightly",
                            "verdict": "missed",
                            "nominal_at": "2030-01-01T02:30:00.000Z",
                            "through_at": "2030-01-01T02:30:00.000Z",
                            "count": 1,
                            "because_of": None,
                            "decided_at": "2030-01-01T03:10:00.000Z",
                        }
                    ],
                    "next": None,
                }
            ]
        }
    )

    items: list[ScheduleVerdictResponse] = Field(description="The newest decision first, as long as they are kept")
    next: str | None = Field(description="Pass it as `after` for the next page; null on the last one")


@router.get("", responses=problem_responses(403, 422))
async def list_all_verdicts(
    filter: Annotated[VerdictFilter, query_of(VerdictFilter)],
    query: Annotated[NewestFirstQuery, Query()],
    services: Services,
    caller: Viewer,
) -> ScheduleVerdictPage:
    """The nominal times of all schedules that did not fire, the newest decision first, a page at a time.

    `since` and `until` are about when that was decided: an outage is decided when it is over. `label` is about labels
    of the schedule. Of deleted schedules there are verdicts only without `label` and for all tenants. Where few of many
    match, a page may hold less than `limit`, or nothing, and have a `next`: go on until that is null.
    """
    said = {"tenant": caller.filter_of(filter.tenant), "verdicts": filter.verdicts or NOT_FIRED}
    which = VerdictSelection.model_construct(**{**dict(filter), **said})
    found = await services.verdicts.of_all(which, query.position(), query.limit)
    return ScheduleVerdictPage(items=[_show(verdict) for verdict in found.verdicts], next=place_text(found.next))


def _show(verdict: DecidedVerdict) -> ScheduleVerdictResponse:
    run = verdict.run
    return ScheduleVerdictResponse(
        schedule=run.schedule,
        verdict=run.verdict,
        nominal_at=instant_text(run.first_ms),
        through_at=instant_text(run.last_ms),
        count=run.count,
        because_of=run.because_of,
        decided_at=instant_text(verdict.decided_at_ms),
    )
