"""Definitions as requests write them and as answers show them."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from hascheduler.api.bounds import JOBS_MAX, WEEK_MS, between
from hascheduler.api.rate_limits import RateLimitBody, RateLimitResponse, show_rate_limit
from hascheduler.api.resource_fields import ResourceAmounts
from hascheduler.api.retry_schemas import RetryBody, RetryResponse, show_retry
from hascheduler.api.texts import DurationMs, Name, Strict
from hascheduler.model.definition import DEFAULT_COST_MS_DEFAULT, ConflictScope, Definition
from hascheduler.model.durations import format_duration
from hascheduler.model.resources import resources

TIER_MAX = 1_000_000
CostMs = Annotated[DurationMs, between(0, WEEK_MS)]
TimeoutMs = Annotated[DurationMs, between(1, 4 * WEEK_MS)]
_EXAMPLE: dict[str, Any] = {
    "default_cost": "20s",
    "max_concurrency": 3,
    "conflict_group": "git",
    "conflict_scope": "tenant",
    "tier": 10,
    "rate_limit": {"count": 100, "per": "1s"},
    "resources": {"cpu": 2},
    "retry": {"attempts": 5, "backoff": "2s", "factor": 2, "max": "1m"},
    "timeout": "5m",
    "total_timeout": "1h",
}


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
    conflict_scope: Literal["tenant", "shared"] | None = Field(
        default=None,
        description="tenant: jobs of different tenants do not exclude each other; shared: all of the group do; null: "
        "as it is stored, and of a new definition tenant",
    )
    tier: int | None = Field(
        default=None, ge=1, le=TIER_MAX, description="Higher goes first, and so many jobs of it run at once; null: last"
    )
    rate_limit: RateLimitBody | None = Field(default=None, description="How fast its jobs start; null: no limit")
    resources: ResourceAmounts | None = Field(default=None, description="What a job needs that does not say so itself")
    retry: RetryBody = RetryBody()
    timeout: TimeoutMs | None = Field(default=None, description="How long one attempt may run; null: for ever")
    total_timeout: TimeoutMs | None = Field(
        default=None,
        description="How long all attempts and pauses may take from the first start; null: for ever",
    )

    def over(self, stored: Definition | None) -> "DefinitionBody":
        """As it is meant where that is stored: what excludes each other must not change by being left out."""
        if self.conflict_scope is not None or stored is None:
            return self
        return self.model_copy(update={"conflict_scope": stored.conflict_scope.value})

    def noun(self, name: str, rev: int = 0) -> Definition:
        return Definition(
            name=name,
            rev=rev,
            max_concurrency=self.max_concurrency,
            retry=self.retry.policy(),
            default_cost_ms=DEFAULT_COST_MS_DEFAULT if self.default_cost is None else self.default_cost,
            conflict_group=self.conflict_group,
            conflict_scope=ConflictScope(self.conflict_scope or ConflictScope.TENANT),
            tier=self.tier,
            rate_limit=None if self.rate_limit is None else self.rate_limit.limit(),
            resources=resources(self.resources or {}),
            timeout_ms=self.timeout,
            total_timeout_ms=self.total_timeout,
        )


class DefinitionResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "repack", "rev": 2, **_EXAMPLE}]})

    name: str
    rev: int = Field(description="Grows with every edit")
    default_cost: str
    max_concurrency: int | None
    conflict_group: str | None
    conflict_scope: ConflictScope
    tier: int | None
    rate_limit: RateLimitResponse | None
    resources: dict[str, int]
    retry: RetryResponse
    timeout: str | None
    total_timeout: str | None


def show_definition(definition: Definition) -> DefinitionResponse:
    return DefinitionResponse(
        name=definition.name,
        rev=definition.rev,
        default_cost=format_duration(definition.default_cost_ms),
        max_concurrency=definition.max_concurrency,
        conflict_group=definition.conflict_group,
        conflict_scope=definition.conflict_scope,
        tier=definition.tier,
        rate_limit=show_rate_limit(definition.rate_limit),
        resources=dict(definition.resources),
        retry=show_retry(definition.retry),
        timeout=_span_or_none(definition.timeout_ms),
        total_timeout=_span_or_none(definition.total_timeout_ms),
    )


def _span_or_none(span_ms: int | None) -> str | None:
    return None if span_ms is None else format_duration(span_ms)
