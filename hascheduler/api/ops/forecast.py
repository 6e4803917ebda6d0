"""``/v1/forecast``: how many jobs are going to start when, for how many slots, and where that is too much."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.config import JsonDict

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.middleware.auth import Viewer
from hascheduler.api.routing.forecasts import DAY_MS, WEEK_MS
from hascheduler.api.routing.warnings import warn_of_unseen
from hascheduler.api.services import Services
from hascheduler.dispatch.forecast.forecast import Forecast, LimitedBy, Peak
from hascheduler.dispatch.forecast.queueing import STEP_MS
from hascheduler.dispatch.forecast.shares import CONTRIBUTORS_MAX, Contributor, Shares
from hascheduler.model.values.durations import format_duration
from hascheduler.wire.fields import QueryDurationMs, between, instant_text, invalid_together, invalid_value

router = APIRouter(prefix="/forecast", tags=["cluster"])

BUCKETS_MAX = 2_016
_HOUR_MS = 3_600_000
_EXAMPLE: JsonDict = {
    "as_of": "2030-01-01T00:00:00.000Z",
    "until": "2030-01-01T06:00:00.000Z",
    "slots": 16,
    "buckets": [
        {
            "at": "2030-01-01T03:00:00.000Z",
            "fires": 41,
            "other_fires": 0,
            "jobs": 41,
            "slots_wanted": 41,
            "waiting": 25,
            "wait_ms": 720_000,
        }
    ],
    "peaks": [
        {
            "at": "2030-01-01T03:00:00.000Z",
            "until": "2030-01-01T03:12:00.000Z",
            "lasts_ms": 720_000,
            "jobs": 41,
            "waiting": 25,
            "slots": 16,
            "more_slots": 25,
            "limited_by": "slots",
            "definition": None,
            "summary": "41 jobs for 16 slots, about 12 minutes",
            "advice": "spread the schedules with `jitter`, or add 25 slots",
            "schedules": [{"name": "backup", "fires": 1, "jobs": 1, "expected_ms": 900_000}],
            "other_jobs": 40,
        }
    ],
    "paused": None,
    "left_out": 0,
    "spread": 0,
}


class ForecastQuery(BaseModel):
    model_config = ConfigDict(frozen=True)

    ahead: Annotated[QueryDurationMs, between(STEP_MS, WEEK_MS)] = Field(
        default="24h",
        validate_default=True,
        description="How far to look, at most `7d`",
        examples=["24h"],
    )
    bucket: Annotated[QueryDurationMs, between(STEP_MS, DAY_MS)] = Field(
        default="5m",
        validate_default=True,
        description=f"The span of each bucket, in whole minutes; `ahead` has at most {BUCKETS_MAX:,} of them",
        examples=["5m"],
    )
    tenant: str | None = Field(
        default=None, max_length=256, description="Name and count the schedules of this tenant, all else as others"
    )
    lane: str | None = Field(
        default=None, max_length=256, description="Name and count the schedules whose jobs go into this lane"
    )

    @model_validator(mode="after")
    def _fits(self) -> "ForecastQuery":
        if self.bucket % STEP_MS:
            wrong = invalid_value(f"{format_duration(self.bucket)} is no number of whole minutes", "5m, 15m, 1h")
            raise invalid_together(["bucket"], self, wrong)
        if self.ahead > BUCKETS_MAX * self.bucket:
            least = format_duration(-(-self.ahead // BUCKETS_MAX // STEP_MS + 1) * STEP_MS)
            wrong = invalid_value(
                f"{format_duration(self.ahead)} has more than {BUCKETS_MAX:,} buckets of"
                f" {format_duration(self.bucket)}",
                f"a bucket of {least} or longer",
            )
            raise invalid_together(["bucket"], self, wrong)
        return self


class ForecastBucket(BaseModel):
    """What is going to happen from `at` until the next one."""

    at: str = Field(description="When it begins; the first one began before now")
    fires: int = Field(description="Nominal times of the schedules that were asked for")
    other_fires: int = Field(description="Nominal times of all others")
    jobs: int = Field(description="Jobs that are going to be made, of all schedules; what waits now is in the first")
    slots_wanted: int = Field(description="Slots with which no job would wait longer than a minute, at the most")
    waiting: int = Field(description="Jobs that wait longer than a minute, at the most")
    wait_ms: int = Field(description="How long jobs that are made here are going to wait, at the longest")


class ForecastSchedule(BaseModel):
    """A schedule that has a part in a peak."""

    name: str = Field(description="The schedule")
    fires: int = Field(description="Nominal times between the beginning of the peak and its worst minute")
    jobs: int = Field(description="The jobs that these make")
    expected_ms: int = Field(description="How long those are expected to run, added up")


class ForecastPeak(BaseModel):
    """More jobs want to run than may, for longer than a minute."""

    at: str = Field(description="When jobs begin to wait")
    until: str | None = Field(description="When all of them have begun; null: not within the forecast")
    lasts_ms: int = Field(description="From `at` to `until`, or to the end of the forecast")
    jobs: int = Field(description="Jobs that want to run when it is worst, those that run among them")
    waiting: int = Field(description="How many of them wait then")
    slots: int = Field(description="How many may run at once")
    more_slots: int = Field(description="How many more would let all of them begin within that minute")
    limited_by: LimitedBy = Field(
        description="Slots of live processors; `max_concurrency` of a definition, or the slots that take its jobs; or"
        " that no live processor takes them"
    )
    definition: str | None = Field(description="The definition whose `max_concurrency` it is")
    summary: str = Field(description="In a sentence, for people")
    advice: str = Field(description="What would help, for people")
    schedules: list[ForecastSchedule] = Field(
        description=f"Those with the most work in it, at most {CONTRIBUTORS_MAX}, of those that were asked for"
    )
    other_jobs: int = Field(description="Jobs that other schedules make for it")


class ForecastResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    as_of: str = Field(description="When it was made: for all who ask, at most some seconds ago")
    until: str = Field(description="How far it looks")
    slots: int = Field(description="Of live processors that take jobs, or fewer where the deployment caps running jobs")
    buckets: list[ForecastBucket] = Field(description="In order, without gaps")
    peaks: list[ForecastPeak] = Field(description="Where jobs wait for longer than a minute: the worst, in order")
    paused: Literal["schedules", "everything"] | None = Field(
        description="People paused that; the forecast is what would be if they resumed it now"
    )
    left_out: int = Field(
        description="Schedules that are not in it: a calendar is missing, or there are too many cron expressions"
    )
    spread: int = Field(description="Schedules whose fires are spread evenly, as there are too many to add up")


@router.get("", responses=problem_responses(403, 422))
async def get_forecast(
    query: Annotated[ForecastQuery, Query()], services: Services, caller: Viewer, response: Response
) -> ForecastResponse:
    """What the schedules are going to ask for, what of it will wait, and for how long: by learned costs, and by the
    slots that there are now.

    It is a model, see the page on limits: of jobs that are not submitted yet, retries, resources, quotas and rates
    it knows nothing. It is made once for all that ask within some seconds. A token of one tenant sees the names of its
    own schedules; the numbers of the others are added up. Where replicas follow some shards alone, it is of those, and
    a `Warning` names the others.
    """
    warn_of_unseen(response, services.view, "schedules and slots")
    tenant = caller.filter_of(query.tenant)
    forecast, shares, whole = await services.forecasts.of(
        query.ahead, tenant, query.lane, services.view, services.clock
    )
    return show_forecast(forecast, shares, whole, query.ahead, query.bucket)


def show_forecast(forecast: Forecast, shares: Shares, whole: Shares, ahead_ms: int, bucket_ms: int) -> ForecastResponse:
    now, inputs = forecast.inputs.now, forecast.inputs
    until_ms = now + ahead_ms
    return ForecastResponse(
        as_of=instant_text(now),
        until=instant_text(until_ms),
        slots=forecast.slots,
        buckets=[
            _bucket(forecast, shares, at_ms, bucket_ms) for at_ms in range(now - now % bucket_ms, until_ms, bucket_ms)
        ],
        peaks=[
            _peak(peak, shares.contributors[place], whole.jobs[place])
            for place, peak in enumerate(forecast.peaks)
            if peak.from_ms < until_ms
        ],
        paused="everything" if inputs.dispatch_paused else "schedules" if inputs.schedules_paused else None,
        left_out=forecast.left_out,
        spread=forecast.spread,
    )


def _bucket(forecast: Forecast, shares: Shares, at_ms: int, bucket_ms: int) -> ForecastBucket:
    first = at_ms // STEP_MS - forecast.origin
    steps = slice(max(first, 0), max(first + bucket_ms // STEP_MS, 0))
    fires = sum(shares.fires[steps])
    return ForecastBucket(
        at=instant_text(at_ms),
        fires=fires,
        other_fires=sum(forecast.fires[steps]) - fires,
        jobs=sum(forecast.jobs[steps]),
        slots_wanted=max(forecast.wanted[steps], default=0),
        waiting=max(forecast.waiting[steps], default=0),
        wait_ms=max(forecast.waits[steps], default=0) * STEP_MS,
    )


def _peak(peak: Peak, contributors: tuple[Contributor, ...], jobs: int) -> ForecastPeak:
    return ForecastPeak(
        at=instant_text(peak.from_ms),
        until=None if peak.until_ms is None else instant_text(peak.until_ms),
        lasts_ms=peak.lasts_ms,
        jobs=peak.jobs,
        waiting=peak.waiting,
        slots=peak.slots,
        more_slots=peak.more_slots,
        limited_by=peak.limited_by,
        definition=peak.definition,
        summary=_summary(peak),
        advice=_advice(peak),
        schedules=[
            ForecastSchedule(name=one.schedule, fires=one.fires, jobs=one.jobs, expected_ms=one.work_ms)
            for one in contributors
        ],
        other_jobs=jobs - sum(one.jobs for one in contributors),
    )


def _summary(peak: Peak) -> str:
    jobs = f"{peak.jobs:,} job{'' if peak.jobs == 1 else 's'}"
    if peak.limited_by is LimitedBy.NO_PROCESSOR:
        return f"{jobs} that no live processor takes"
    if peak.limited_by is LimitedBy.MAX_CONCURRENCY:
        what = f"{jobs} of {peak.definition} for {peak.slots:,} at a time"
    else:
        what = f"{jobs} for {peak.slots:,} slot{'' if peak.slots == 1 else 's'}"
    return f"{what}, {'not worked off by the end' if peak.until_ms is None else f'about {_about(peak.lasts_ms)}'}"


def _about(span_ms: int) -> str:
    minutes = span_ms // STEP_MS
    if span_ms < 2 * _HOUR_MS:
        return f"{minutes} minute{'' if minutes == 1 else 's'}"
    hours = (span_ms + _HOUR_MS // 2) // _HOUR_MS
    return f"{hours} hours" if span_ms < 2 * DAY_MS else f"{(span_ms + DAY_MS // 2) // DAY_MS} days"


def _advice(peak: Peak) -> str:
    match peak.limited_by:
        case LimitedBy.NO_PROCESSOR:
            return "start a processor that takes them"
        case LimitedBy.MAX_CONCURRENCY:
            return (
                f"raise `max_concurrency` of {peak.definition} where it is what caps it, add slots that take its jobs,"
                " or let its schedules fire at other times"
            )
        case LimitedBy.SLOTS:
            slots = f"{peak.more_slots:,} slot{'' if peak.more_slots == 1 else 's'}"
            return f"spread the schedules with `jitter`, or add {slots}"
