"""``/v1/schedules:recent``: what became of the last times of several schedules, in one request."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.middleware.auth import Viewer
from hascheduler.api.schedules.selection import known_schedules
from hascheduler.api.schedules.timeline import read_past
from hascheduler.api.services import Services
from hascheduler.model.job import JobState, fire_job_id
from hascheduler.model.values.error_patterns import ERROR_BEGINNING_MAX, first_line
from hascheduler.model.values.redaction import redacted_beginning
from hascheduler.ports import VerdictRecord
from hascheduler.schema.forms import Name, instant_text
from hascheduler.schema.noun import AS_REQUEST

router = APIRouter(tags=["schedules"])

NAMES_MAX = 50
TIMES = 20

_WAITING = frozenset({JobState.PENDING, JobState.DISPATCHED})
Outcome = Literal[
    "succeeded", "failed", "cancelled", "running", "waiting",
    "missed", "skipped", "coalesced", "paused", "excluded", "throttled", "unstorable",
]  # fmt: skip
_TIME: JsonDict = {
    "nominal_at": "2030-01-01T02:30:00.000Z", "outcome": "failed", "count": 1, "job": "fire:nightly:1893465000000",
    "late_ms": 140,
}  # fmt: skip
_EXAMPLE: JsonDict = {"items": [{"name": "nightly", "times": [_TIME], "error": "ValueError: the source is empty"}]}


class RecentQuery(BaseModel):
    name: list[Name] = Field(default=[], max_length=NAMES_MAX, description="A schedule; repeat it for several")


class RecentTime(BaseModel):
    """A nominal time, or several in a row that did not fire for the same reason."""

    nominal_at: str = Field(description="The nominal time, or the first of several")
    outcome: Outcome = Field(
        description="How its job ended, `running`, or `waiting` if the job has not begun; the verdict if there is none"
    )
    count: int = Field(description="How many nominal times")
    job: str | None = Field(description="The job of a fired time")
    late_ms: int | None = Field(description="How long after the nominal time its job began; null if it has not")


class RecentSchedule(BaseModel):
    name: str = Field(description="The name of the schedule")
    times: list[RecentTime] = Field(description=f"The last {TIMES} decided times, oldest first, as long as stored")
    error: str | None = Field(description="The first line of the error of the newest failed job among them")


class RecentResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    items: list[RecentSchedule] = Field(description="The schedules in the requested order, without unknown ones")


@router.get("/schedules:recent", responses=problem_responses(422))
async def list_recent(
    query: Annotated[RecentQuery, Query(), AS_REQUEST], services: Services, caller: Viewer
) -> RecentResponse:
    """Show what became of the last decided times of several schedules, at most 50."""
    known = known_schedules(services, dict.fromkeys(query.name))
    shown = [each for each in known if caller.sees(each.template.tenant)]
    past = await read_past(shown, 0, services.clock.wall_ms(), services, TIMES)
    return RecentResponse(items=[_shown(each.name, past[each.name]) for each in shown])


def _shown(name: str, records: Sequence[VerdictRecord]) -> RecentSchedule:
    error = next((each.error for each in records if each.job_state is JobState.FAILED), None)
    return RecentSchedule(
        name=name,
        times=[_time(each) for each in reversed(records)],
        error=None if error is None else redacted_beginning(first_line(error), ERROR_BEGINNING_MAX),
    )


def _time(record: VerdictRecord) -> RecentTime:
    run, state, began_ms = record.run, record.job_state, record.began_at_ms
    outcome: Any = run.verdict.value if state is None else "waiting" if state in _WAITING else state.value
    return RecentTime(
        nominal_at=instant_text(run.first_ms),
        outcome=outcome,
        count=run.count,
        job=None if state is None else fire_job_id(run.schedule, run.first_ms),
        late_ms=None if began_ms is None else max(began_ms - run.first_ms, 0),
    )
