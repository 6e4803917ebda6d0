"""A definition: a named type of job and its limits. A job of an unknown definition has the defaults."""

from dataclasses import dataclass

from hascheduler.model.resources import NOTHING, Resources

ATTEMPTS_MAX_DEFAULT = 5
DEFAULT_COST_MS_DEFAULT = 1_000


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most ``count`` dispatches at once, and one more for each ``per_ms / count`` that passes: a token bucket."""

    count: int
    per_ms: int


@dataclass(frozen=True, slots=True)
class Definition:
    """Caps count dispatched and running jobs; None: no cap.

    ``tier`` is the rank of its jobs, and how many jobs of that tier may run. Two jobs of one ``conflict_group`` never
    run on one target at once. ``default_cost_ms`` is charged for a target whose cost has yet to be learned.
    ``resources`` are what a job needs that does not say so itself. ``attempts_max`` counts lost attempts.
    """

    name: str
    rev: int = 0
    max_concurrency: int | None = None
    attempts_max: int = ATTEMPTS_MAX_DEFAULT
    default_cost_ms: int = DEFAULT_COST_MS_DEFAULT
    conflict_group: str | None = None
    tier: int | None = None
    rate_limit: RateLimit | None = None
    resources: Resources = NOTHING

    def needs(self, own: Resources | None) -> Resources:
        """What a job of it takes whose ``own`` demand is that; None: it does not say."""
        return self.resources if own is None else own
