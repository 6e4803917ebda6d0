"""Which job started before which, and whether that stayed within what is promised.

What is promised holds within a *flow*: jobs that only their age, priority and mode tell apart, so that whatever lets
one of them run lets any of them run. Within a flow

- a job is overtaken by one of its own mode only if that arrives less than ``64 s × priority gap`` after it, and
- a queued job by an on-demand one only if that arrives less than ``1,280 s + 64 s × priority gap`` after it, where
  1,280 s is the largest on-demand bonus over 16 points a second; without a largest one, nothing is promised.

Both follow from the score, so they apply where a policy orders a flow by it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from hascheduler.dispatch.queue.orders import own_criteria
from hascheduler.dispatch.queue.score import AGE_POINTS_PER_MS, ON_DEMAND, PRIORITY_POINTS
from hascheduler.model.definition import Definition
from hascheduler.model.lane import PRIORITY_MAX
from hascheduler.model.policy import Criteria, Criterion
from hascheduler.simulate.outcome import JobRecord, RunOutcome
from hascheduler.simulate.scenario import Scenario, ScenarioJob

GAP_MS = PRIORITY_POINTS // AGE_POINTS_PER_MS
"""How much later a job may arrive for each step of priority that it has more."""


@dataclass(frozen=True, slots=True)
class Overtakes:
    """Jobs of one mode that started earlier than one that was submitted before them.

    ``times`` counts such pairs, ``jobs`` those that were overtaken, ``most`` how often the unluckiest of them,
    ``unluckiest``, was.
    """

    times: int
    jobs: int
    most: int
    unluckiest: str | None


@dataclass(frozen=True, slots=True)
class Closest:
    """The overtaking that came closest to its bound, or broke it: ``by`` arrived ``after_ms`` after ``job``."""

    job: str
    by: str
    after_ms: int
    bound_ms: int


@dataclass(frozen=True, slots=True)
class Promise:
    """One of the two, and how it went. ``applies``: the policy makes it. ``closest`` None: no job was overtaken."""

    name: str
    applies: bool
    closest: Closest | None = None

    @property
    def held(self) -> bool:
        return self.closest is None or self.closest.after_ms < self.closest.bound_ms


def overtakes(outcome: RunOutcome) -> Overtakes:
    times, jobs, most, unluckiest = 0, 0, 0, None
    for mode in sorted({record.job.mode for record in outcome.jobs}):
        records = [record for record in outcome.jobs if record.job.mode == mode]
        for record, count in _overtaken(records):
            times += count
            jobs += count > 0
            if count > most:
                most, unluckiest = count, record.job.id
    return Overtakes(times, jobs, most, unluckiest)


def promises(outcome: RunOutcome) -> tuple[Promise, Promise]:
    """Within one mode, and of on-demand jobs past queued ones."""
    flows = _Flows(outcome.scenario)
    bonus_max = outcome.scenario.policy.config().on_demand_bonus_max
    head_start_ms = None if bonus_max is None else bonus_max // AGE_POINTS_PER_MS
    newest: dict[object, _Newest] = {}
    within: Closest | None = None
    past: Closest | None = None
    for record in _in_order_of_dispatch(outcome.jobs):
        flow = flows.of(record.job)
        if flow is None:
            continue
        started = newest.setdefault(flow, _Newest())
        within = _closer(within, started.closest(record.job, record.job.mode, 0))
        if record.job.mode != ON_DEMAND and head_start_ms is not None:
            past = _closer(past, started.closest(record.job, ON_DEMAND, head_start_ms))
        started.add(record.job)
    applies = flows.orders_by_score
    return (
        Promise("one mode", applies, within),
        Promise("on-demand past queued", applies and head_start_ms is not None, past),
    )


class _Flows:
    """The flow of each job."""

    def __init__(self, scenario: Scenario) -> None:
        self._criteria = scenario.policy.criteria
        self._definitions: dict[str, Definition] = {each.name: each for each in scenario.definitions}
        own = {lane.name: own_criteria(self._criteria, lane) for lane in scenario.lanes}
        self._own = {name: criteria for name, criteria in own.items() if criteria is not None}

    @property
    def orders_by_score(self) -> bool:
        orders: list[Criteria] = [self._criteria, *self._own.values()]
        return any(_before_score(order) is not None for order in orders)

    def of(self, job: ScenarioJob) -> object | None:
        """None: the policy does not order its lane by score."""
        before = _before_score(self._own.get(job.lane, self._criteria))
        if before is None:
            return None
        definition = self._definitions[job.definition]
        has_conflicts = definition.conflict_group is not None
        return (
            job.definition,
            job.tenant,
            job.resources,
            job.target if has_conflicts else None,
            job.limit_keys if definition.key_limits else None,
            job.lane if Criterion.LANE in before else None,
            job.fairness_key if Criterion.FAIRNESS in before else None,
        )


class _Newest:
    """The newest of a flow's jobs that were dispatched so far, by mode and priority."""

    def __init__(self) -> None:
        self._newest: dict[tuple[str, int], ScenarioJob] = {}

    def add(self, job: ScenarioJob) -> None:
        known = self._newest.get((job.mode, job.priority))
        if known is None or known.submit_at_ms < job.submit_at_ms:
            self._newest[(job.mode, job.priority)] = job

    def closest(self, job: ScenarioJob, mode: str, head_start_ms: int) -> Closest | None:
        """The overtaking of ``job`` by jobs of ``mode`` that came closest to its bound."""
        closest = None
        for priority in range(PRIORITY_MAX + 1):
            by = self._newest.get((mode, priority))
            if by is not None and by.submit_at_ms > job.submit_at_ms:
                bound_ms = head_start_ms + GAP_MS * (priority - job.priority)
                closest = _closer(closest, Closest(job.id, by.id, by.submit_at_ms - job.submit_at_ms, bound_ms))
        return closest


def _before_score(order: Criteria) -> Criteria | None:
    """What is compared before the score, if all jobs of a flow are equal in that."""
    if Criterion.SCORE not in order:
        return None
    before = order[: order.index(Criterion.SCORE)]
    return before if set(before) <= {Criterion.LANE, Criterion.TIER, Criterion.FAIRNESS} else None


def _closer(one: Closest | None, other: Closest | None) -> Closest | None:
    if one is None or other is None:
        return one or other
    return other if other.bound_ms - other.after_ms < one.bound_ms - one.after_ms else one


def _in_order_of_dispatch(records: Iterable[JobRecord]) -> list[JobRecord]:
    """By their first dispatch; those that had none last."""
    return sorted(records, key=lambda each: (0, each.attempts[0].order) if each.attempts else (1, each.sequence))


def _overtaken(records: Sequence[JobRecord]) -> Iterable[tuple[JobRecord, int]]:
    """Each job, with how many that were submitted later started earlier."""
    ranks = {at: rank for rank, at in enumerate(sorted({record.job.submit_at_ms for record in records}), 1)}
    counts = _Counts(len(ranks))
    ordered = sorted(records, key=lambda each: (each.started_at_ms is None, each.started_at_ms or 0))
    for _, group in groupby(ordered, key=lambda each: each.started_at_ms):
        together = list(group)  # those that start at one instant do not overtake each other
        for record in together:
            yield record, counts.above(ranks[record.job.submit_at_ms])
        for record in together:
            counts.add(ranks[record.job.submit_at_ms])


class _Counts:
    """How many numbers of 1 to ``size`` were added above another: a binary indexed tree."""

    def __init__(self, size: int) -> None:
        self._tree = [0] * (size + 1)
        self._total = 0

    def add(self, rank: int) -> None:
        self._total += 1
        while rank < len(self._tree):
            self._tree[rank] += 1
            rank += rank & -rank

    def above(self, rank: int) -> int:
        below = 0
        while rank:
            below += self._tree[rank]
            rank -= rank & -rank
        return self._total - below
