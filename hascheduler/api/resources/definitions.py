"""``/v1/definitions``: the named types of job and their limits. A job of an unknown type has the defaults.

A rate is a token bucket, full at first. The factor of a retry policy is stored in thousandths.
"""

from http import HTTPStatus
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema, model_validator

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.middleware.auth import OperatorOfAll, Viewer
from hascheduler.api.resources.handler import GET, PATCH, ResourceHandler, patch_body, put_answers
from hascheduler.api.routing.body import JsonRoute
from hascheduler.api.routing.field_types import (
    JOBS_MAX,
    WEEK_MS,
    DurationMs,
    Name,
    ResourceAmounts,
    StrictModel,
    between,
    invalid_value,
)
from hascheduler.api.routing.queries import Page, Paging
from hascheduler.api.routing.revisions import IfMatch, IfNoneMatch
from hascheduler.api.services import Services
from hascheduler.model.definition import DEFAULT_COST_MS_DEFAULT, ConflictScope, Definition, RateLimit
from hascheduler.model.documents.definition import decode_definition
from hascheduler.model.durations import format_duration
from hascheduler.model.repr_limits import quoted
from hascheduler.model.resources import resources
from hascheduler.model.retry import (
    ATTEMPTS_MAX_DEFAULT,
    BACKOFF_FACTOR_DEFAULT,
    BACKOFF_MAX_MS_DEFAULT,
    BACKOFF_MS_DEFAULT,
    RetryPolicy,
)

PeriodMs = Annotated[DurationMs, between(1, WEEK_MS)]


class RateLimitBody(StrictModel):
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


ATTEMPTS_MAX = 100
FACTOR_MAX = 10
_FACTOR_EXPECTED = f"1 to {FACTOR_MAX}, with at most three decimals"


def _factor(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise invalid_value(f"{quoted(value)} is not a number", _FACTOR_EXPECTED)
    if not 1 <= value <= FACTOR_MAX:
        raise invalid_value(f"{value} is out of range", _FACTOR_EXPECTED)
    thousandths = round(value * 1_000)
    if thousandths / 1_000 != value:
        raise invalid_value(f"{value} is too exact", _FACTOR_EXPECTED)
    return thousandths


Factor = Annotated[
    int, PlainValidator(_factor), WithJsonSchema({"type": "number", "minimum": 1, "maximum": FACTOR_MAX})
]
BackoffMs = Annotated[DurationMs, between(0, WEEK_MS)]


class RetryBody(StrictModel):
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
            raise invalid_value(
                f"the backoff {backoff} is longer than max {format_duration(self.max)}", "a max as long"
            )
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


class DefinitionBody(StrictModel):
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
        """This body for a stored definition: a conflict scope that is left out stays as it is, as jobs rely on it."""
        if self.conflict_scope is not None or stored is None:
            return self
        return self.model_copy(update={"conflict_scope": stored.conflict_scope.value})

    def resource(self, name: str, rev: int = 0) -> Definition:
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


router = APIRouter(prefix="/definitions", tags=["definitions"], route_class=JsonRoute)

_definitions = ResourceHandler(
    "definition",
    lambda services: services.definitions,
    DefinitionBody,
    decode_definition,
    show_definition,
    over=DefinitionBody.over,
)

Patch = Annotated[
    dict[str, Any], patch_body("a definition", {"max_concurrency": None, "tier": 10, "retry": {"attempts": 3}})
]


@router.put("/{name}", responses=put_answers(DefinitionResponse))
async def put_definition(
    name: Name,
    body: DefinitionBody,
    services: Services,
    caller: OperatorOfAll,
    response: Response,
    *,
    precondition: IfMatch,
    unless: IfNoneMatch,
) -> DefinitionResponse:
    """Create (201) or replace (200) a definition; with If-Match only replace, with If-None-Match: * only create it."""
    return await _definitions.put(name, body, services, response, precondition=precondition, unless=unless)


@router.get("", responses=problem_responses(422))
async def list_definitions(paging: Paging, services: Services, caller: Viewer) -> Page[DefinitionResponse]:
    """Definitions by name, a page at a time."""
    return await _definitions.list(paging, services)


@router.get("/{name}", response_model=DefinitionResponse, responses=GET)
async def get_definition(
    name: str, services: Services, caller: Viewer, response: Response, known: IfNoneMatch
) -> DefinitionResponse | Response:
    """One definition."""
    return await _definitions.get(name, services, response, known)


@router.patch("/{name}", responses=PATCH)
async def patch_definition(
    name: Name, body: Patch, services: Services, caller: OperatorOfAll, response: Response, *, precondition: IfMatch
) -> DefinitionResponse:
    """Change parts of a definition: a JSON merge patch on what GET shows, which is then checked like a PUT."""
    return await _definitions.patch(name, body, services, response, precondition=precondition)


@router.delete("/{name}", status_code=HTTPStatus.NO_CONTENT, responses=problem_responses(404, 409, 412, 422))
async def delete_definition(name: str, services: Services, caller: OperatorOfAll, precondition: IfMatch) -> None:
    """Delete a definition. Its jobs go on, with the default limits."""
    await _definitions.delete(name, services, precondition)
