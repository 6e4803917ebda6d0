"""The criteria: the value of a waiting job under each, one small class per criterion, smaller values first.

The formulas of score and aged priority, in whole milli-points and milliseconds, are also here; the formula of shares is
in `hascheduler.dispatch.capacity.dominant_share`.

A job's age is the time since its submission. Jobs of one *aging rate* gain alike, so their order stays as it is::

    queued     16 points a second
    growing    48: an on-demand job whose bonus still grows
    grown      16: one whose bonus has reached its maximum
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar, Final

from hascheduler.dispatch.accounts import FairAccounts
from hascheduler.dispatch.capacity.dominant_share import LaneShares
from hascheduler.dispatch.capacity.slot_pool import SlotPool
from hascheduler.dispatch.config import PolicyConfig
from hascheduler.dispatch.queue.fifo_buckets import Arrival, arrival
from hascheduler.dispatch.rules import Rules
from hascheduler.model.job import JobRef
from hascheduler.model.policy import Criterion
from hascheduler.schema.lane import PRIORITY_MAX, Lane

PRIORITY_POINTS = 1_024_000
AGE_POINTS_PER_MS = 16
RARITY_POINTS = 500_000
ON_DEMAND_POINTS = 4_096_000
ON_DEMAND_POINTS_PER_MS = 32
ON_DEMAND = "on_demand"
FAR_FUTURE_MS = 2**63


AgingRate = int
QUEUED: Final = 0
GROWING: Final = 1
GROWN: Final = 2


def score(job: JobRef, now: int, compatible_free_slots: int, bonus_max: int | None) -> int:
    """Return the score in milli-points; the highest goes first."""
    age_ms = now - job.submitted_at_ms
    points = PRIORITY_POINTS * job.priority + AGE_POINTS_PER_MS * age_ms
    points += rarity(compatible_free_slots)
    if job.mode == ON_DEMAND:
        points += on_demand_bonus(age_ms, bonus_max)
    return points


def rarity(compatible_free_slots: int) -> int:
    """Return more points the fewer free slots there are; 0 without any, as the job then waits whatever its score."""
    return RARITY_POINTS // compatible_free_slots if compatible_free_slots > 0 else 0


def on_demand_bonus(age_ms: int, bonus_max: int | None) -> int:
    bonus = ON_DEMAND_POINTS + ON_DEMAND_POINTS_PER_MS * age_ms
    return bonus if bonus_max is None else min(bonus, bonus_max)


def bonuses(now: int, bonus_max: int | None) -> tuple[int, int, int]:
    """Return a bonus per aging rate: `rank_key` minus it, and minus the rarity, orders all jobs as their scores do."""
    return (0, ON_DEMAND_POINTS + ON_DEMAND_POINTS_PER_MS * now, bonus_max or 0)


def grown_after_ms(policy: PolicyConfig) -> int | None:
    """Return the age from which an on-demand job's bonus no longer grows; None if it always grows."""
    if policy.on_demand_bonus_max is None:
        return None
    return -((ON_DEMAND_POINTS - policy.on_demand_bonus_max) // ON_DEMAND_POINTS_PER_MS)


def overtaken_for_ms(policy: PolicyConfig) -> int | None:
    """Return how long a job has to wait until no job submitted later can reach its score.

    None if no score decides, or if the score of an on-demand job grows without bound.
    """
    if Criterion.SCORE not in policy.criteria or policy.on_demand_bonus_max is None:
        return None
    return (policy.on_demand_bonus_max + PRIORITY_MAX * PRIORITY_POINTS) // AGE_POINTS_PER_MS


def rank_key(job: JobRef, aging: AgingRate) -> int:
    """Return a key that orders jobs of that aging rate and one definition as their scores do at any time.

    The smaller the key, the higher the score.
    """
    points_per_ms = AGE_POINTS_PER_MS + (ON_DEMAND_POINTS_PER_MS if aging == GROWING else 0)
    return points_per_ms * job.submitted_at_ms - PRIORITY_POINTS * job.priority


def aged_priority(job: JobRef, now: int, lane: Lane) -> int:
    """Return the job's priority plus one step for every ``promote_after`` of its lane that it has waited, up to 10."""
    age_ms = now - job.submitted_at_ms
    if age_ms <= 0 or job.priority >= PRIORITY_MAX:
        return min(PRIORITY_MAX, job.priority)
    return min(PRIORITY_MAX, job.priority + age_ms // lane.promote_after(job.priority))


def submitted_by(priority: int, level: int, now: int, lane: Lane) -> int:
    """Return the latest submission of a job of that priority whose aged priority is now at least ``level``."""
    steps = level - min(PRIORITY_MAX, priority)
    return FAR_FUTURE_MS if steps <= 0 else now - steps * lane.promote_after(priority)


class Measure:
    """All that the queue has to know of a criterion.

    It ``tells_apart`` jobs that otherwise differ only by age if they may have different values: then a FIFO bucket
    holds those that it finds alike (`apart`). Such a criterion ``is_fixed`` if only an edit of the job changes its
    value; if it is not, the first jobs of all buckets are compared in each decision.
    """

    tells_apart: ClassVar[bool] = False
    is_fixed: ClassVar[bool] = True

    def value(self, job: JobRef, now: int) -> Any:
        """Return a value that is comparable with those of other jobs at the same moment."""
        raise NotImplementedError

    def shown(self, job: JobRef, now: int, *, names: bool = True) -> str:
        """Return the value in readable form; without ``names`` it does not show whose job it is."""
        raise NotImplementedError

    def apart(self, job: JobRef) -> object:
        """Return what is the same for two jobs if, and only if, their values are the same at any time."""
        return self.value(job, 0)


class ByLane(Measure):
    def __init__(self, shares: LaneShares) -> None:
        self._shares = shares

    def value(self, job: JobRef, now: int) -> Fraction:
        return self._shares.share(job.lane)

    def shown(self, job: JobRef, now: int, *, names: bool = True) -> str:
        return f"{job.lane}: {self._shares.share(job.lane)}"


class ByTier(Measure):
    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def value(self, job: JobRef, now: int) -> int:
        return -(self._rules.definition(job.definition).tier or 0)

    def shown(self, job: JobRef, now: int, *, names: bool = True) -> str:
        tier = self._rules.definition(job.definition).tier
        return "none" if tier is None else str(tier)


class ByFairness(Measure):
    """First what its tenant has consumed, then what its key has: so its keys decide among the jobs of one tenant."""

    def __init__(self, accounts: FairAccounts) -> None:
        self._accounts = accounts

    def value(self, job: JobRef, now: int) -> tuple[int, int]:
        return self._accounts.tenant_cost(job.tenant), self._accounts.cost(job.tenant, job.fairness_key)

    def shown(self, job: JobRef, now: int, *, names: bool = True) -> str:
        tenant_s, key_s = (cost / 1_000 for cost in self.value(job, now))
        if not names:
            return f"another tenant: {tenant_s:g} s, its key: {key_s:g} s"
        return f"tenant {job.tenant!r}: {tenant_s:g} s, key {job.fairness_key!r}: {key_s:g} s"


class ByDeadline(Measure):
    """Earliest deadline first (Liu and Layland, JACM 1973), without preemption: a running job keeps its slot."""

    tells_apart = True

    def value(self, job: JobRef, now: int) -> int:
        return FAR_FUTURE_MS if job.expires_at_ms is None else job.expires_at_ms

    def shown(self, job: JobRef, now: int, *, names: bool = True) -> str:
        return "none" if job.expires_at_ms is None else f"in {max(job.expires_at_ms - now, 0) / 1_000:g} s"


class ByAgedPriority(Measure):
    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def value(self, job: JobRef, now: int) -> int:
        return -aged_priority(job, now, self._rules.lane(job.lane))

    def shown(self, job: JobRef, now: int, *, names: bool = True) -> str:
        return f"{-self.value(job, now)} (priority {job.priority})"


class ByScore(Measure):
    def __init__(self, pool: SlotPool, bonus_max: int | None) -> None:
        self._pool = pool
        self._bonus_max = bonus_max

    def value(self, job: JobRef, now: int) -> int:
        return -score(job, now, self._pool.free(job.definition), self._bonus_max)

    def shown(self, job: JobRef, now: int, *, names: bool = True) -> str:
        points, milli_points = divmod(-self.value(job, now), 1_000)
        fraction = f".{milli_points:03d}".rstrip("0").rstrip(".")
        return f"{points:,}{fraction}".replace(",", " ") + " points"


class ByArrival(Measure):
    def value(self, job: JobRef, now: int) -> Arrival:
        return arrival(job)

    def shown(self, job: JobRef, now: int, *, names: bool = True) -> str:
        return f"{max(now - job.submitted_at_ms, 0) / 1_000:g} s ago"


Measures = Mapping[Criterion, Measure]


def measures(
    rules: Rules, pool: SlotPool, accounts: FairAccounts, shares: LaneShares, bonus_max: int | None
) -> Measures:
    return {
        Criterion.LANE: ByLane(shares),
        Criterion.TIER: ByTier(rules),
        Criterion.FAIRNESS: ByFairness(accounts),
        Criterion.DEADLINE: ByDeadline(),
        Criterion.AGED_PRIORITY: ByAgedPriority(rules),
        Criterion.SCORE: ByScore(pool, bonus_max),
        Criterion.ARRIVAL: ByArrival(),
    }
