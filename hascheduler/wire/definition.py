"""Definitions, their retries, and the rates that definitions and tenants have.

A rate is a token bucket, full at first. The factor of a retry policy is kept in thousandths.
"""

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)

from hascheduler.errors import InvalidInput
from hascheduler.model.limit_keys import KEY_CHARACTERS_MAX, KEY_LIMITS_MAX, LIMIT_KEY_PATTERN, checked_limit_key
from hascheduler.model.resources import resources
from hascheduler.model.uniqueness import OnDuplicate
from hascheduler.model.values.error_texts import quoted
from hascheduler.schema.definition import ConflictScope, Definition, KeyLimit, RateLimit
from hascheduler.schema.retry import (
    LOST_AS_FAILED,
    RetryPolicy,
)
from hascheduler.schema.uniqueness import MAX_WAIT_PERIODS, UNIQUE_KEYS_MAX, Uniqueness
from hascheduler.wire.fields import (
    JOBS_MAX,
    WEEK_MS,
    DurationMs,
    Name,
    NullIs,
    Owner,
    ResourceAmounts,
    Revisioned,
    StrictModel,
    between,
    invalid_together,
    invalid_value,
    written_span,
)

PeriodMs = Annotated[DurationMs, between(1, WEEK_MS)]


class RateLimitBody(StrictModel):
    """A token bucket, full at first."""

    count: int = Field(ge=1, le=JOBS_MAX, description="So many at once at most")
    per: PeriodMs = Field(description="So long until as many may follow, evenly", examples=["1s"])

    def limit(self) -> RateLimit:
        return RateLimit(count=self.count, per_ms=self.per)


class RateLimitResponse(RateLimitBody):
    model_config = ConfigDict(extra="ignore")

    @classmethod
    def of(cls, limit: RateLimit | None) -> "RateLimitResponse | None":
        return None if limit is None else cls.model_construct(count=limit.count, per=limit.per_ms)


def _limit_key(text: str) -> str:
    try:
        return checked_limit_key(text)
    except InvalidInput as error:
        raise invalid_value(error.problem, error.expected) from None


LimitKey = Annotated[
    str,
    AfterValidator(_limit_key),
    Field(json_schema_extra={"pattern": f"^({LIMIT_KEY_PATTERN})$", "maxLength": KEY_CHARACTERS_MAX}),
]


class KeyLimitFields(StrictModel):
    """A limit for each value that the jobs of a tenant have at one key, such as two at once for each customer."""

    key: LimitKey = Field(
        description="`payload.<field>`, nested fields joined by dots, `label.<key>` or `target`. Jobs without a text, "
        "number or boolean there are one group of their own",
        examples=["payload.customer"],
    )
    max_concurrency: int | None = Field(
        default=None, ge=1, le=JOBS_MAX, description="How many jobs of one value run at once; null: no limit"
    )
    rate_limit: RateLimitBody | None = Field(
        default=None, description="How fast jobs of one value start; null: no limit"
    )

    def limit(self) -> KeyLimit:
        return KeyLimit(
            key=self.key,
            max_concurrency=self.max_concurrency,
            rate_limit=None if self.rate_limit is None else self.rate_limit.limit(),
        )


class KeyLimitBody(KeyLimitFields):
    @model_validator(mode="after")
    def _limits_something(self) -> "KeyLimitBody":
        if self.max_concurrency is None and self.rate_limit is None:
            raise invalid_value("a key without a limit", "max_concurrency, rate_limit, or both")
        return self


class KeyLimitResponse(KeyLimitFields):
    model_config = ConfigDict(extra="ignore")

    max_concurrency: int | None = Field(description="How many jobs of one value run at once; null: no limit")
    rate_limit: RateLimitResponse | None = Field(description="How fast jobs of one value start; null: no limit")

    @classmethod
    def of(cls, limit: KeyLimit) -> "KeyLimitResponse":
        return cls.model_construct(
            key=limit.key, max_concurrency=limit.max_concurrency, rate_limit=RateLimitResponse.of(limit.rate_limit)
        )


def _each_key_once(limits: list[KeyLimitBody]) -> list[KeyLimitBody]:
    _demand_each_once([limit.key for limit in limits])
    return limits


def _demand_each_once(keys: list[str]) -> list[str]:
    twice = next((key for place, key in enumerate(keys) if key in keys[:place]), None)
    if twice is not None:
        raise invalid_value(f"{quoted(twice)} is there twice", "each key once")
    return keys


MaxWaitMs = Annotated[DurationMs, between(1, MAX_WAIT_PERIODS * WEEK_MS)]


class UniqueFields(StrictModel):
    """What makes submitted jobs of one tenant duplicates of each other, and what becomes of a duplicate.

    Fires, triggers, backfills and retries are exempt.
    """

    by: Annotated[list[LimitKey], NullIs([]), AfterValidator(_demand_each_once)] = Field(
        default=[],
        max_length=UNIQUE_KEYS_MAX,
        description="Duplicates have the same values at all of these keys: `payload.<field>`, `label.<key>` or "
        "`target`, as in `key_limits`; none: all jobs of the definition are duplicates",
        examples=[["payload.customer"]],
    )
    on_duplicate: Annotated[Literal["keep_first", "replace", "debounce"], NullIs("keep_first")] = Field(
        default="keep_first",
        description="keep_first: it is answered with the job that is there; replace: it takes the place of that one, "
        "which is cancelled if it was never dispatched; debounce: likewise, and it waits for `period`",
    )
    period: PeriodMs | None = Field(
        default=None,
        description="keep_first: a job has duplicates for so long after its submission, even if it has ended; null: "
        "until it has ended. debounce: how long no duplicate comes before the job may start",
        examples=["1h"],
    )
    max_wait: MaxWaitMs | None = Field(
        default=None,
        description=f"debounce: the longest that duplicates keep a job from starting; null: {MAX_WAIT_PERIODS} periods",
        examples=["10h"],
    )

    def uniqueness(self) -> Uniqueness:
        longest_ms = self.max_wait
        if self.on_duplicate == "debounce" and longest_ms is None and self.period is not None:
            longest_ms = self.period * MAX_WAIT_PERIODS
        return Uniqueness(
            by=tuple(self.by),
            on_duplicate=OnDuplicate(self.on_duplicate),
            period_ms=self.period,
            max_wait_ms=longest_ms,
        )


class UniqueBody(UniqueFields):
    @model_validator(mode="wrap")
    @classmethod
    def _has_the_spans_of_its_kind(cls, given: Any, read: ModelWrapValidatorHandler["UniqueBody"]) -> "UniqueBody":
        body = read(given)
        if body.on_duplicate == "replace" and body.period is not None:
            raise invalid_together(("period",), body, invalid_value("means nothing for replace", "null, or debounce"))
        if body.on_duplicate != "debounce":
            if body.max_wait is not None:
                wrong = invalid_value(f"means nothing for {body.on_duplicate}", "null, or debounce")
                raise invalid_together(("max_wait",), body, wrong)
            return body
        if body.period is None:
            raise invalid_together(("period",), body, invalid_value("is missing for debounce", 'a span such as "30s"'))
        if body.max_wait is not None and body.max_wait < body.period:
            longest, period = written_span(given, "max_wait", body.max_wait), written_span(given, "period", body.period)
            wrong = invalid_value(f"the max_wait {longest} is shorter than the period {period}", "one as long")
            raise invalid_together(("max_wait",), body, wrong)
        return body


class UniqueResponse(UniqueFields):
    model_config = ConfigDict(extra="ignore")

    @classmethod
    def of(cls, unique: Uniqueness | None) -> "UniqueResponse | None":
        if unique is None:
            return None
        return cls.model_construct(
            by=list(unique.by),
            on_duplicate=unique.on_duplicate.value,
            period=unique.period_ms,
            max_wait=unique.max_wait_ms,
        )


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


def _factor_number(thousandths: int) -> int | float:
    whole, rest = divmod(thousandths, 1_000)
    return thousandths / 1_000 if rest else whole


Factor = Annotated[
    int,
    PlainValidator(_factor),
    PlainSerializer(_factor_number, when_used="json"),
    WithJsonSchema({"type": "number", "minimum": 1, "maximum": FACTOR_MAX}, mode="validation"),
]
BackoffMs = Annotated[DurationMs, between(0, WEEK_MS)]


class RetryFields(StrictModel):
    """How often a job is tried, and how long it waits in between: backoff, backoff × factor, … at most max."""

    attempts: int = Field(
        default=5,
        ge=1,
        le=ATTEMPTS_MAX,
        description="How many attempts may fail before the job has failed",
    )
    lost_attempts: int = Field(
        default=10,
        ge=LOST_AS_FAILED,
        le=ATTEMPTS_MAX,
        description="How many attempts may be lost while they run (their processor died, was cut off or fenced itself) "
        "before the job has failed; 0: what is lost counts as failed",
    )
    backoff: BackoffMs = Field(default=2_000, description="The first pause; default 2s", examples=["2s"])
    factor: Factor = Field(default=2_000, description="What each pause is multiplied by; default 2", examples=[2])
    max: BackoffMs = Field(default=60_000, description="The longest pause; default 1m", examples=["1m"])

    def policy(self) -> RetryPolicy:
        return RetryPolicy(
            attempts_max=self.attempts,
            backoff_ms=self.backoff,
            backoff_factor=self.factor,
            backoff_max_ms=self.max,
            lost_attempts_max=self.lost_attempts,
        )


class RetryBody(RetryFields):
    @model_validator(mode="wrap")
    @classmethod
    def _has_a_longest_pause(cls, given: Any, read: ModelWrapValidatorHandler["RetryBody"]) -> "RetryBody":
        body = read(given)
        if body.backoff > body.max:
            backoff, longest = written_span(given, "backoff", body.backoff), written_span(given, "max", body.max)
            raise invalid_value(f"the backoff {backoff} is longer than max {longest}", "a max as long")
        return body


class RetryResponse(RetryFields):
    model_config = ConfigDict(extra="ignore")

    @classmethod
    def of(cls, policy: RetryPolicy) -> "RetryResponse":
        return cls.model_construct(
            attempts=policy.attempts_max,
            lost_attempts=policy.lost_attempts_max,
            backoff=policy.backoff_ms,
            factor=policy.backoff_factor,
            max=policy.backoff_max_ms,
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
    "key_limits": [
        {"key": "payload.customer", "max_concurrency": 2, "rate_limit": {"count": 10, "per": "1m"}},
    ],
    "unique": {"by": ["payload.customer"], "on_duplicate": "debounce", "period": "30s", "max_wait": "5m"},
    "resources": {"cpu": 2},
    "retry": {"attempts": 5, "lost_attempts": 10, "backoff": "2s", "factor": 2, "max": "1m"},
    "timeout": "5m",
    "total_timeout": "1h",
    "owner": "team-a",
}


class StartLimits(StrictModel):
    """What of a definition decides when its jobs may start."""

    default_cost: Annotated[CostMs, NullIs(1_000)] = Field(
        default=1_000,
        description="What a job is charged until the cost of its target has been learned; default 1s",
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
    key_limits: Annotated[list[KeyLimitBody], NullIs([]), AfterValidator(_each_key_once)] = Field(
        default=[],
        max_length=KEY_LIMITS_MAX,
        description="Limits for each value at a key, of jobs made from then on; each tenant's values are its own",
    )
    resources: Annotated[ResourceAmounts, NullIs({})] = Field(
        default={}, description="What a job needs that does not say so itself"
    )

    def resource(self, name: str, rev: int = 0) -> Definition:
        return Definition(
            name=name,
            rev=rev,
            max_concurrency=self.max_concurrency,
            default_cost_ms=self.default_cost,
            conflict_group=self.conflict_group,
            conflict_scope=ConflictScope(self.conflict_scope or ConflictScope.TENANT),
            tier=self.tier,
            rate_limit=None if self.rate_limit is None else self.rate_limit.limit(),
            resources=resources(self.resources),
            key_limits=tuple(limit.limit() for limit in self.key_limits),
        )


_UNIQUE = "What makes submitted jobs duplicates of each other, and what becomes of a duplicate; null: none are"


class DefinitionFields(StartLimits):
    unique: UniqueFields | None = Field(default=None, description=_UNIQUE)
    retry: RetryFields = Field(
        default=RetryFields(), description="How often a job is tried, and how long it waits in between"
    )
    timeout: TimeoutMs | None = Field(default=None, description="How long one attempt may run; null: for ever")
    total_timeout: TimeoutMs | None = Field(
        default=None,
        description="How long all attempts and pauses may take from the first start; null: for ever",
    )
    owner: Owner = None

    def resource(self, name: str, rev: int = 0) -> Definition:
        return (
            super()
            .resource(name, rev)
            .model_copy(
                update={
                    "retry": self.retry.policy(),
                    "timeout_ms": self.timeout,
                    "total_timeout_ms": self.total_timeout,
                    "unique": None if self.unique is None else self.unique.uniqueness(),
                    "owner": self.owner,
                }
            )
        )


class DefinitionBody(DefinitionFields):
    """The limits of a named type of job; what is left out, or null, gets its default."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    unique: UniqueBody | None = Field(default=None, description=_UNIQUE)
    retry: RetryBody = Field(
        default=RetryBody(), description="How often a job is tried, and how long it waits in between"
    )

    @model_validator(mode="wrap")
    @classmethod
    def _has_time_for_an_attempt(
        cls, given: Any, read: ModelWrapValidatorHandler["DefinitionBody"]
    ) -> "DefinitionBody":
        body = read(given)
        if body.timeout is not None and body.total_timeout is not None and body.timeout > body.total_timeout:
            timeout = written_span(given, "timeout", body.timeout)
            total = written_span(given, "total_timeout", body.total_timeout)
            wrong = invalid_value(
                f"the timeout {timeout} is longer than the total_timeout {total}", "a total_timeout as long"
            )
            raise invalid_together(("timeout", "total_timeout"), body, wrong)
        return body

    def over(self, stored: Definition | None) -> "DefinitionBody":
        """This body for a stored definition: a conflict scope that is left out stays as it is, as jobs rely on it."""
        if self.conflict_scope is not None or stored is None:
            return self
        return self.model_copy(update={"conflict_scope": stored.conflict_scope.value})


class DefinitionResponse(DefinitionFields, Revisioned):
    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "repack", "rev": 2, **_EXAMPLE}]})

    conflict_scope: ConflictScope = Field(
        description="tenant: jobs of different tenants do not exclude each other; shared: all of the group do"
    )  # type: ignore[assignment]  # the same two texts, under their published name
    rate_limit: RateLimitResponse | None = Field(description="How fast its jobs start; null: no limit")
    key_limits: list[KeyLimitResponse] = Field(
        description="Limits for each value at a key, of jobs made from then on; each tenant's values are its own"
    )  # type: ignore[assignment]  # read back, with what a newer replica adds
    unique: UniqueResponse | None = Field(description=_UNIQUE)
    resources: dict[str, int] = Field(description="What a job needs that does not say so itself")
    retry: RetryResponse = Field(description="How often a job is tried, and how long it waits in between")

    @classmethod
    def of(cls, definition: Definition) -> "DefinitionResponse":
        return cls.model_construct(
            name=definition.name,
            rev=definition.rev,
            default_cost=definition.default_cost_ms,
            max_concurrency=definition.max_concurrency,
            conflict_group=definition.conflict_group,
            conflict_scope=definition.conflict_scope,
            tier=definition.tier,
            rate_limit=RateLimitResponse.of(definition.rate_limit),
            key_limits=[KeyLimitResponse.of(limit) for limit in definition.key_limits],
            unique=UniqueResponse.of(definition.unique),
            resources=dict(definition.resources),
            retry=RetryResponse.of(definition.retry),
            timeout=definition.timeout_ms,
            total_timeout=definition.total_timeout_ms,
            owner=definition.owner,
        )
