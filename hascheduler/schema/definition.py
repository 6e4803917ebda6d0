"""A definition: a named type of job and its limits, and when an attempt times out.

A job of an unknown definition has the defaults.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, Field, Strict

from hascheduler.model.job import NewJob
from hascheduler.model.limit_keys import KEY_LIMITS_MAX, limit_keys
from hascheduler.model.resources import NO_RESOURCES, Resources
from hascheduler.model.values.instants import WallMs, format_duration
from hascheduler.schema.forms import (
    WEEK_MS,
    Count,
    Listed,
    Name,
    ResourceAmounts,
    each_once,
    span,
    whole,
    written_span,
    wrong,
)
from hascheduler.schema.noun import Noun, Owner, Part, together
from hascheduler.schema.retry import LOST_AS_FAILED, RetryPolicy, tries_text
from hascheduler.schema.uniqueness import LimitKey, Uniqueness

TIER_MAX = 1_000_000
DEFAULT_COST_MS = 1_000


class RateLimit(Part):
    """A token bucket, full at first."""

    count: Count = Field(examples=[100])
    """The size of the bucket: how many at once"""
    per_ms: Annotated[int, span(1, WEEK_MS)] = Field(examples=["1s"])
    """How long an empty bucket takes to fill, evenly"""


class KeyLimit(Part):
    """A limit for each value of a key among the jobs of a tenant, such as two at once for each customer."""

    key: LimitKey = Field(examples=["payload.customer"])
    """`payload.<field>`, with dots between nested fields, `label.<key>` or `target`. Jobs without a text, number or
    boolean there form one group"""
    max_concurrency: Count | None = Field(default=None, examples=[2])
    """How many jobs with the same value run at once; null: no limit"""
    rate_limit: RateLimit | None = Field(default=None, examples=[{"count": 10, "per": "1m"}])
    """How fast jobs with the same value start; null: no limit"""

    def check_request(self, given: Mapping[str, Any]) -> None:
        if self.max_concurrency is None and self.rate_limit is None:
            raise wrong("the key has no limit", "max_concurrency, rate_limit, or both")


class ConflictScope(StrEnum):
    """Which jobs of a conflict group exclude each other on one target."""

    TENANT = "tenant"
    """Jobs of the same tenant, and jobs of any tenant whose definition is shared."""
    SHARED = "shared"
    """Jobs of all tenants; also the scope of a stored definition without the field."""


class StartLimits(Part):
    """The limits of a definition that decide when its jobs may start."""

    kept = ("conflict_scope",)

    default_cost_ms: Annotated[int, span(0, WEEK_MS)] = Field(default=DEFAULT_COST_MS, examples=["20s"])
    """The cost charged for a job until the cost of its target is learned; default 1s"""
    max_concurrency: Count | None = Field(default=None, examples=[3])
    """How many of its jobs run at once; null: no limit"""
    conflict_group: Name | None = Field(default=None, examples=["git"])
    """Two jobs of one group never run on the same target at once; null: excludes no other jobs"""
    conflict_scope: Annotated[ConflictScope, Strict(False)] = ConflictScope.TENANT
    """tenant: jobs of different tenants do not exclude each other; shared: all jobs of the group exclude each other;
    null: the stored value, or tenant for a new definition"""
    tier: Annotated[int, whole(1, TIER_MAX)] | None = Field(default=None, examples=[10])
    """Higher tiers go first, and at most this many jobs of the definition run at once; null: last"""
    rate_limit: RateLimit | None = Field(default=None, examples=[{"count": 100, "per": "1s"}])
    """How fast its jobs start; null: no limit"""
    key_limits: Annotated[tuple[KeyLimit, ...], Listed, AfterValidator(each_once)] = Field(
        default=(),
        max_length=KEY_LIMITS_MAX,
        examples=[[{"key": "payload.customer", "max_concurrency": 2, "rate_limit": {"count": 10, "per": "1m"}}]],
    )
    """Limits for each value of a key, separate for each tenant; they apply to jobs made after the change"""
    resources: ResourceAmounts = Field(default=NO_RESOURCES, examples=[{"cpu": 2}])
    """What a job needs if it names no resources itself"""


class DefinitionBody(StartLimits):
    """The limits of a named type of job; an omitted or null field gets its default."""

    unique: Uniqueness | None = Field(
        default=None,
        examples=[{"by": ["payload.customer"], "on_duplicate": "debounce", "period": "30s", "max_wait": "5m"}],
    )
    """When submitted jobs are duplicates, and what happens to a duplicate; null: no duplicates"""
    retry: RetryPolicy = RetryPolicy()
    """How often a job is tried, and the pauses between attempts"""
    timeout_ms: Annotated[int, span(1, 4 * WEEK_MS)] | None = Field(default=None, examples=["5m"])
    """How long one attempt may run; null: no limit"""
    total_timeout_ms: Annotated[int, span(1, 4 * WEEK_MS)] | None = Field(default=None, examples=["1h"])
    """How long all attempts and pauses may take, from the first start; null: no limit"""
    on_failure: Name | None = Field(default=None, examples=["notify"])
    """The definition of a job that is submitted when a job of this one fails for good, with the failed job's id and
    error as its payload; null: no job"""
    owner: Owner = None

    def check_request(self, given: Mapping[str, Any]) -> None:
        if self.timeout_ms and self.total_timeout_ms and self.timeout_ms > self.total_timeout_ms:
            timeout = written_span(given, "timeout", self.timeout_ms)
            total = written_span(given, "total_timeout", self.total_timeout_ms)
            problem = f"the timeout {timeout} is longer than the total_timeout {total}"
            raise together(("timeout", "total_timeout"), type(self), problem, "a total_timeout at least as long")


class Definition(DefinitionBody, Noun):
    """A named type of job and its limits."""

    @classmethod
    def from_stored(cls, document: dict[str, Any]) -> dict[str, Any]:
        """Return the fields with the retry's, which are stored at the top level.

        A document of 0.2.0 has neither a scope, which means shared, nor a limit of losses, which then count as
        failures.
        """
        retry = {name: document[name] for name in RetryPolicy.model_fields if name in document}
        return {
            "conflict_scope": ConflictScope.SHARED,
            **document,
            "retry": {"lost_attempts_max": LOST_AS_FAILED, **retry},
        }

    def to_stored(self, fields: dict[str, Any]) -> dict[str, Any]:
        return {**fields.pop("retry"), **fields}

    @property
    def keyed_by(self) -> tuple[str, ...]:
        """Return the keys whose values its jobs get when they are made."""
        return tuple(limit.key for limit in self.key_limits)

    @property
    def may_exclude(self) -> bool:
        """Return True if some of its jobs may have to wait for others that run."""
        return self.conflict_group is not None or bool(self.key_limits)

    def key_limit(self, key: str) -> KeyLimit | None:
        """Return the limit on that key; None if there is none."""
        return next((limit for limit in self.key_limits if limit.key == key), None)

    def with_limit_keys(self, job: NewJob) -> NewJob:
        """Return the job with its values at the keys of the limits."""
        if not self.keyed_by:
            return job
        return replace(job, limit_keys=limit_keys(self.keyed_by, job.payload, job.target, job.labels))

    def with_keys(self, job: NewJob) -> NewJob:
        """Return a submitted job with all its keys."""
        job = self.with_limit_keys(job)
        if self.unique is None:
            return job
        values = limit_keys(self.unique.by, job.payload, job.target, job.labels)
        return replace(job, unique=self.unique.key(job.tenant, job.definition, values))

    def end_of(self, first_started_at_ms: int | None) -> int | None:
        """Return when the total timeout ends for a job that first started then; None: never, or not started yet."""
        if self.total_timeout_ms is None or first_started_at_ms is None:
            return None
        return first_started_at_ms + self.total_timeout_ms

    def needs(self, own: Resources | None) -> Resources:
        """Return the resources that a job takes; ``own`` is its own demand, None if it has none."""
        return self.resources if own is None else own


@dataclass(frozen=True, slots=True)
class TimeOver:
    """The end of an attempt's time, and the error with which it then has failed; the same for all processors.

    A ``final`` one is the end of the job's total time: it is not tried again.
    """

    at_ms: WallMs
    error: str
    final: bool = False


def time_over(
    rules: Definition, began_ms: int, first_started_at_ms: int | None, *, failures: int, losses: int
) -> TimeOver | None:
    """Return the end of the attempt's timeout, if it began then, or of the total one if earlier; None: no limit.

    ``failures`` and ``losses`` are those before it.
    """
    over = None
    if rules.timeout_ms is not None:
        over = TimeOver(WallMs(began_ms + rules.timeout_ms), f"timed out after {format_duration(rules.timeout_ms)}")
    end_ms = rules.end_of(first_started_at_ms)
    if end_ms is not None and (over is None or end_ms < over.at_ms):
        total = format_duration(rules.total_timeout_ms or 0)
        tries = tries_text(failures + losses + 1, losses)
        over = TimeOver(WallMs(end_ms), f"timed out after {total} in all ({tries})", final=True)
    return over
