"""The value of a waiting job under each criterion: one small class a criterion, smaller values first.

The formulas are those of `hascheduler.dispatch.queue.score` and `hascheduler.dispatch.capacity.dominant_share`.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Protocol

from hascheduler.dispatch.accounts import FairAccounts
from hascheduler.dispatch.capacity.dominant_share import LaneShares
from hascheduler.dispatch.capacity.slot_pool import SlotPool
from hascheduler.dispatch.queue.fifo_buckets import Arrival, arrival
from hascheduler.dispatch.queue.score import aged_priority, deadline_ms, score
from hascheduler.dispatch.rules import Rules
from hascheduler.model.job import JobRef
from hascheduler.model.policy import Criterion


class Measure(Protocol):
    def value(self, job: JobRef, now: int) -> Any:
        """Comparable with the values of other jobs at the same moment."""
        ...

    def shown(self, job: JobRef, now: int, *, names: bool = True) -> str:
        """The value as people write it; without ``names`` it does not say whose job it is."""
        ...


class ByLane:
    def __init__(self, shares: LaneShares) -> None:
        self._shares = shares

    def value(self, job: JobRef, now: int) -> Fraction:
        return self._shares.share(job.lane)

    def shown(self, job: JobRef, now: int, *, names: bool = True) -> str:
        return f"{job.lane}: {self._shares.share(job.lane)}"


class ByTier:
    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def value(self, job: JobRef, now: int) -> int:
        return -(self._rules.definition(job.definition).tier or 0)

    def shown(self, job: JobRef, now: int, *, names: bool = True) -> str:
        tier = self._rules.definition(job.definition).tier
        return "none" if tier is None else str(tier)


class ByFairness:
    """First what its tenant has consumed, then what its key has: so among the jobs of one tenant its keys decide."""

    def __init__(self, accounts: FairAccounts) -> None:
        self._accounts = accounts

    def value(self, job: JobRef, now: int) -> tuple[int, int]:
        return self._accounts.tenant_cost(job.tenant), self._accounts.cost(job.tenant, job.fairness_key)

    def shown(self, job: JobRef, now: int, *, names: bool = True) -> str:
        tenant_s, key_s = (cost / 1_000 for cost in self.value(job, now))
        if not names:
            return f"another tenant: {tenant_s:g} s, its key: {key_s:g} s"
        return f"tenant {job.tenant!r}: {tenant_s:g} s, key {job.fairness_key!r}: {key_s:g} s"


class ByDeadline:
    """Earliest deadline first (Liu and Layland, JACM 1973), without preemption: a job that runs keeps its slot."""

    def value(self, job: JobRef, now: int) -> int:
        return deadline_ms(job)

    def shown(self, job: JobRef, now: int, *, names: bool = True) -> str:
        return "none" if job.expires_at_ms is None else f"in {max(job.expires_at_ms - now, 0) / 1_000:g} s"


class ByAgedPriority:
    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def value(self, job: JobRef, now: int) -> int:
        return -aged_priority(job, now, self._rules.lane(job.lane))

    def shown(self, job: JobRef, now: int, *, names: bool = True) -> str:
        return f"{-self.value(job, now)} (priority {job.priority})"


class ByScore:
    def __init__(self, pool: SlotPool, bonus_max: int | None) -> None:
        self._pool = pool
        self._bonus_max = bonus_max

    def value(self, job: JobRef, now: int) -> int:
        return -score(job, now, self._pool.free(job.definition), self._bonus_max)

    def shown(self, job: JobRef, now: int, *, names: bool = True) -> str:
        points, milli_points = divmod(-self.value(job, now), 1_000)
        fraction = f".{milli_points:03d}".rstrip("0").rstrip(".")
        return f"{points:,}{fraction}".replace(",", " ") + " points"


class ByArrival:
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
