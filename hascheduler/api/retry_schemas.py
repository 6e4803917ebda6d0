"""A definition's retries as requests write them and as answers show them. The factor is stored in thousandths."""

from typing import Annotated, Any

from pydantic import BaseModel, Field, PlainValidator, WithJsonSchema, model_validator

from hascheduler.api.bounds import WEEK_MS, between
from hascheduler.api.texts import DurationMs, Strict, wrong
from hascheduler.model.durations import format_duration
from hascheduler.model.repr_limits import quoted
from hascheduler.model.retry import (
    ATTEMPTS_MAX_DEFAULT,
    BACKOFF_FACTOR_DEFAULT,
    BACKOFF_MAX_MS_DEFAULT,
    BACKOFF_MS_DEFAULT,
    RetryPolicy,
)

ATTEMPTS_MAX = 100
FACTOR_MAX = 10
_FACTOR_EXPECTED = f"1 to {FACTOR_MAX}, with at most three decimals"


def _factor(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong(f"{quoted(value)} is not a number", _FACTOR_EXPECTED)
    if not 1 <= value <= FACTOR_MAX:
        raise wrong(f"{value} is out of range", _FACTOR_EXPECTED)
    thousandths = round(value * 1_000)
    if thousandths / 1_000 != value:
        raise wrong(f"{value} is too exact", _FACTOR_EXPECTED)
    return thousandths


Factor = Annotated[
    int, PlainValidator(_factor), WithJsonSchema({"type": "number", "minimum": 1, "maximum": FACTOR_MAX})
]
BackoffMs = Annotated[DurationMs, between(0, WEEK_MS)]


class RetryBody(Strict):
    """How often a job is tried, and how long it waits in between: backoff, backoff × factor, … at most max."""

    attempts: int = Field(
        default=ATTEMPTS_MAX_DEFAULT,
        ge=1,
        le=ATTEMPTS_MAX,
        description="How many attempts may fail, or be lost while they run, before the job has failed",
    )
    backoff: BackoffMs = Field(default=BACKOFF_MS_DEFAULT, description="The first pause; default 2s", examples=["2s"])
    factor: Factor = Field(
        default=BACKOFF_FACTOR_DEFAULT, description="What each pause is multiplied by; default 2", examples=[2]
    )
    max: BackoffMs = Field(default=BACKOFF_MAX_MS_DEFAULT, description="The longest pause; default 1m", examples=["1m"])

    @model_validator(mode="after")
    def _has_a_longest_pause(self) -> "RetryBody":
        if self.backoff > self.max:
            backoff = format_duration(self.backoff)
            raise wrong(f"the backoff {backoff} is longer than max {format_duration(self.max)}", "a max as long")
        return self

    def policy(self) -> RetryPolicy:
        return RetryPolicy(self.attempts, self.backoff, self.factor, self.max)


class RetryResponse(BaseModel):
    attempts: int
    backoff: str
    factor: int | float
    max: str


def show_retry(policy: RetryPolicy) -> RetryResponse:
    whole, rest = divmod(policy.backoff_factor, 1_000)
    return RetryResponse(
        attempts=policy.attempts_max,
        backoff=format_duration(policy.backoff_ms),
        factor=policy.backoff_factor / 1_000 if rest else whole,
        max=format_duration(policy.backoff_max_ms),
    )
