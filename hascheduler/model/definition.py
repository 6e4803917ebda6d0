"""A definition: a named type of job and its limits, and when the time of an attempt is over.

A job of an unknown definition has the defaults.
"""

from dataclasses import dataclass
from enum import StrEnum

from hascheduler.model.resources import NO_RESOURCES, Resources
from hascheduler.model.retry import DEFAULT_RETRY, RetryPolicy, tries_text
from hascheduler.model.uniqueness import Uniqueness
from hascheduler.model.values.durations import format_duration
from hascheduler.model.values.instants import WallMs

DEFAULT_COST_MS_DEFAULT = 1_000


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most ``count`` dispatches at once, and one more for each ``per_ms / count`` that passes: a token bucket."""

    count: int
    per_ms: int


@dataclass(frozen=True, slots=True)
class KeyLimit:
    """For each value that jobs of one tenant have at ``key`` (see `hascheduler.model.limit_keys`): how many of them may
    be dispatched or running at once, and how fast they are dispatched. None: no limit."""

    key: str
    max_concurrency: int | None = None
    rate_limit: RateLimit | None = None


class ConflictScope(StrEnum):
    """Which jobs of a conflict group exclude each other on one target."""

    TENANT = "tenant"
    """Jobs of one tenant; and jobs of all tenants, if the other job's definition is shared."""
    SHARED = "shared"
    """Jobs of all tenants. A stored definition without the field means this."""


@dataclass(frozen=True, slots=True)
class Definition:
    """Caps count dispatched and running jobs; None: no cap.

    ``tier`` is the rank of its jobs, and how many jobs of that tier may run. Two jobs of one ``conflict_group`` never
    run on one target at once, if they are of one tenant or the ``conflict_scope`` of one is shared.
    ``default_cost_ms`` is charged for a target whose cost is not learned yet. ``resources`` are the demand of a job
    without a demand of its own. An attempt may run for ``timeout_ms``; all attempts, with the pauses between, for
    ``total_timeout_ms`` from the first start. ``key_limits`` have each key once. ``unique`` None: no
    submitted job is a duplicate of another. ``owner`` decides nothing here: it is whose `hascheduler apply` wrote it.
    """

    name: str
    rev: int = 0
    max_concurrency: int | None = None
    default_cost_ms: int = DEFAULT_COST_MS_DEFAULT
    conflict_group: str | None = None
    tier: int | None = None
    rate_limit: RateLimit | None = None
    resources: Resources = NO_RESOURCES
    retry: RetryPolicy = DEFAULT_RETRY
    timeout_ms: int | None = None
    total_timeout_ms: int | None = None
    conflict_scope: ConflictScope = ConflictScope.SHARED
    owner: str | None = None
    key_limits: tuple[KeyLimit, ...] = ()
    unique: Uniqueness | None = None

    @property
    def keyed_by(self) -> tuple[str, ...]:
        """The keys whose values its jobs get when they are made."""
        return tuple(limit.key for limit in self.key_limits)

    @property
    def may_exclude(self) -> bool:
        """Whether some of its jobs may have to wait for others that run."""
        return self.conflict_group is not None or bool(self.key_limits)

    def key_limit(self, key: str) -> KeyLimit | None:
        """The limit on that key; None: there is none."""
        return next((limit for limit in self.key_limits if limit.key == key), None)

    def end_of(self, first_started_at_ms: int | None) -> int | None:
        """When the total timeout ends of a job that first started then; None: never, or not started yet."""
        if self.total_timeout_ms is None or first_started_at_ms is None:
            return None
        return first_started_at_ms + self.total_timeout_ms

    def needs(self, own: Resources | None) -> Resources:
        """The resources that a job takes; ``own``: its own demand, None if it has none."""
        return self.resources if own is None else own


@dataclass(frozen=True, slots=True)
class TimeOver:
    """When the time of an attempt is over, and with what error it has failed then; the same for all processors.

    A ``final`` one is the end of the job's total time: it is not tried again.
    """

    at_ms: WallMs
    error: str
    final: bool = False


def time_over(
    rules: Definition, began_ms: int, first_started_at_ms: int | None, *, failures: int, losses: int
) -> TimeOver | None:
    """The nearer one of the timeout of an attempt that began then and the end of the total one; None: no limit.

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
