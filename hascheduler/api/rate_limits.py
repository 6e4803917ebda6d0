"""Rates as requests write them and as answers show them: a token bucket, full at first."""

from typing import Annotated

from pydantic import BaseModel, Field

from hascheduler.api.bounds import JOBS_MAX, WEEK_MS, between
from hascheduler.api.texts import DurationMs, Strict
from hascheduler.model.definition import RateLimit
from hascheduler.model.durations import format_duration

PeriodMs = Annotated[DurationMs, between(1, WEEK_MS)]


class RateLimitBody(Strict):
    """A token bucket, full at first."""

    count: int = Field(ge=1, le=JOBS_MAX, description="So many at once at most")
    per: PeriodMs = Field(description="So long until as many may follow, evenly", examples=["1s"])

    def limit(self) -> RateLimit:
        return RateLimit(self.count, self.per)


class RateLimitResponse(BaseModel):
    count: int
    per: str


def show_rate_limit(limit: RateLimit | None) -> RateLimitResponse | None:
    return None if limit is None else RateLimitResponse(count=limit.count, per=format_duration(limit.per_ms))
