"""Definitions as requests write them and as answers show them."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from hascheduler.api.bounds import JOBS_MAX, WEEK_MS, between
from hascheduler.api.resource_fields import ResourceAmounts
from hascheduler.api.texts import DurationMs, Name, Strict
from hascheduler.model.definition import ATTEMPTS_MAX_DEFAULT, DEFAULT_COST_MS_DEFAULT, Definition, RateLimit
from hascheduler.model.durations import format_duration
from hascheduler.model.resources import resources

ATTEMPTS_MAX = 100
TIER_MAX = 1_000_000
CostMs = Annotated[DurationMs, between(0, WEEK_MS)]
PeriodMs = Annotated[DurationMs, between(1, WEEK_MS)]
_EXAMPLE: dict[str, Any] = {
    "default_cost": "20s",
    "max_concurrency": 3,
    "conflict_group": "git",
    "tier": 10,
    "rate_limit": {"count": 100, "per": "1s"},
    "resources": {"cpu": 2},
    "retry": {"attempts": 5},
}


class RetryBody(Strict):
    attempts: int = Field(
        default=ATTEMPTS_MAX_DEFAULT, ge=1, le=ATTEMPTS_MAX, description="Attempts that may be lost before a job fails"
    )


class RateLimitBody(Strict):
    """A token bucket, full at first."""

    count: int = Field(ge=1, le=JOBS_MAX, description="Dispatches at once at most")
    per: PeriodMs = Field(description="So long until as many may follow, evenly", examples=["1s"])


class DefinitionBody(Strict):
    """The limits of a named type of job; what is left out, or null, gets its default."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    default_cost: CostMs | None = Field(
        default=None, description="What a job is charged until the cost of its target has been learned; default 1s"
    )
    max_concurrency: int | None = Field(
        default=None, ge=1, le=JOBS_MAX, description="How many of its jobs run at once; null: no limit"
    )
    conflict_group: Name | None = Field(
        default=None, description="Two jobs of one group never run on one target at once; null: none"
    )
    tier: int | None = Field(
        default=None, ge=1, le=TIER_MAX, description="Higher goes first, and so many jobs of it run at once; null: last"
    )
    rate_limit: RateLimitBody | None = Field(default=None, description="How fast its jobs start; null: no limit")
    resources: ResourceAmounts | None = Field(default=None, description="What a job needs that does not say so itself")
    retry: RetryBody = RetryBody()

    def noun(self, name: str, rev: int = 0) -> Definition:
        limit = self.rate_limit
        return Definition(
            name=name,
            rev=rev,
            max_concurrency=self.max_concurrency,
            attempts_max=self.retry.attempts,
            default_cost_ms=DEFAULT_COST_MS_DEFAULT if self.default_cost is None else self.default_cost,
            conflict_group=self.conflict_group,
            tier=self.tier,
            rate_limit=None if limit is None else RateLimit(limit.count, limit.per),
            resources=resources(self.resources or {}),
        )


class RetryResponse(BaseModel):
    attempts: int


class RateLimitResponse(BaseModel):
    count: int
    per: str


class DefinitionResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "repack", "rev": 2, **_EXAMPLE}]})

    name: str
    rev: int = Field(description="Grows with every edit")
    default_cost: str
    max_concurrency: int | None
    conflict_group: str | None
    tier: int | None
    rate_limit: RateLimitResponse | None
    resources: dict[str, int]
    retry: RetryResponse


def show_definition(definition: Definition) -> DefinitionResponse:
    limit = definition.rate_limit
    return DefinitionResponse(
        name=definition.name,
        rev=definition.rev,
        default_cost=format_duration(definition.default_cost_ms),
        max_concurrency=definition.max_concurrency,
        conflict_group=definition.conflict_group,
        tier=definition.tier,
        rate_limit=None if limit is None else RateLimitResponse(count=limit.count, per=format_duration(limit.per_ms)),
        resources=dict(definition.resources),
        retry=RetryResponse(attempts=definition.attempts_max),
    )
