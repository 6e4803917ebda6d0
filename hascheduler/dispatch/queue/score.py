"""The formulas by which jobs are compared: score, aged priority and deadline, in whole milli-points and milliseconds.

A job's age is the time since its submission. Jobs of one *aging rate* gain alike, so their order stays as it is::

    queued     16 points a second
    growing    48: an on-demand job whose bonus still grows
    grown      16: one whose bonus has reached its maximum
"""

from typing import Final

from hascheduler.dispatch.config import PolicyConfig
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
    """In milli-points; the highest goes first."""
    age_ms = now - job.submitted_at_ms
    points = PRIORITY_POINTS * job.priority + AGE_POINTS_PER_MS * age_ms
    points += rarity(compatible_free_slots)
    if job.mode == ON_DEMAND:
        points += on_demand_bonus(age_ms, bonus_max)
    return points


def rarity(compatible_free_slots: int) -> int:
    """More points the fewer free slots there are; 0 without any: then the job waits, whatever its score."""
    return RARITY_POINTS // compatible_free_slots if compatible_free_slots > 0 else 0


def on_demand_bonus(age_ms: int, bonus_max: int | None) -> int:
    bonus = ON_DEMAND_POINTS + ON_DEMAND_POINTS_PER_MS * age_ms
    return bonus if bonus_max is None else min(bonus, bonus_max)


def bonuses(now: int, bonus_max: int | None) -> tuple[int, int, int]:
    """By aging rate: a `rank_key` less that, and less the points for rarity, orders all jobs as their scores do."""
    return (0, ON_DEMAND_POINTS + ON_DEMAND_POINTS_PER_MS * now, bonus_max or 0)


def grown_after_ms(policy: PolicyConfig) -> int | None:
    """The age from which an on-demand job's bonus no longer grows; None: never."""
    if policy.on_demand_bonus_max is None:
        return None
    return -((ON_DEMAND_POINTS - policy.on_demand_bonus_max) // ON_DEMAND_POINTS_PER_MS)


def overtaken_for_ms(policy: PolicyConfig) -> int | None:
    """How long a job has to wait until no job submitted later can reach its score.

    None: no score decides, or that of an on-demand job grows without end.
    """
    if Criterion.SCORE not in policy.criteria or policy.on_demand_bonus_max is None:
        return None
    return (policy.on_demand_bonus_max + PRIORITY_MAX * PRIORITY_POINTS) // AGE_POINTS_PER_MS


def rank_key(job: JobRef, aging: AgingRate) -> int:
    """Orders jobs of that aging rate and one definition as their scores do at any time: the smaller, the higher."""
    points_per_ms = AGE_POINTS_PER_MS + (ON_DEMAND_POINTS_PER_MS if aging == GROWING else 0)
    return points_per_ms * job.submitted_at_ms - PRIORITY_POINTS * job.priority


def deadline_ms(job: JobRef) -> int:
    """When the job expires unless it has begun; a job that never expires comes after all others."""
    return FAR_FUTURE_MS if job.expires_at_ms is None else job.expires_at_ms


def aged_priority(job: JobRef, now: int, lane: Lane) -> int:
    """The job's priority, one step higher for every ``promote_after`` of its lane that it has waited, 10 at most."""
    age_ms = now - job.submitted_at_ms
    if age_ms <= 0 or job.priority >= PRIORITY_MAX:
        return min(PRIORITY_MAX, job.priority)
    return min(PRIORITY_MAX, job.priority + age_ms // lane.promote_after(job.priority))


def submitted_by(priority: int, level: int, now: int, lane: Lane) -> int:
    """The latest submission of a job of that priority whose aged priority is ``level`` or more now."""
    steps = level - min(PRIORITY_MAX, priority)
    return FAR_FUTURE_MS if steps <= 0 else now - steps * lane.promote_after(priority)
