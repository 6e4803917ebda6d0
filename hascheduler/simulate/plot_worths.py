"""What each job that waited was worth while it did, as a line of (ms, value): its score or its aged priority."""

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

from hascheduler.dispatch.score import AGE_POINTS_PER_MS, ON_DEMAND, PRIORITY_POINTS, grown_after_ms, on_demand_bonus
from hascheduler.model.lane import PRIORITY_MAX, Lane
from hascheduler.model.policy import Criterion
from hascheduler.simulate.outcome import JobRecord, Outcome
from hascheduler.simulate.scenario import ScenarioJob

Point = tuple[float, float]
Line = Sequence[Point]

FEW = 60
"""Lines; among more of them their crossings would hide them."""


def lines_of(outcome: Outcome) -> list[tuple[JobRecord, Line]]:
    """Of those that waited at all, in the order in which they were submitted."""
    kind = _Scores(outcome) if is_scored(outcome) else _AgedPriorities(outcome)
    waited = [record for record in outcome.jobs if waited_until(record, outcome) > record.job.submit_at_ms]
    return [
        (record, kind.line(record.job, index, waited_until(record, outcome))) for index, record in enumerate(waited)
    ]


def is_scored(outcome: Outcome) -> bool:
    """Whether its policy looks at scores."""
    return Criterion.SCORE in outcome.scenario.policy.criteria


def crossings(lines: Sequence[Line]) -> Iterator[Point]:
    """Where one of those that wait draws level with another."""
    for one, other in combinations(lines, 2):
        for (a, b), (c, d) in ((s, t) for s in pairwise(one) for t in pairwise(other)):
            rise, fall = _slope(a, b), _slope(c, d)
            if rise is None or fall is None or rise == fall:
                continue
            x = (c[1] - a[1] + rise * a[0] - fall * c[0]) / (rise - fall)
            if max(a[0], c[0]) < x <= min(b[0], d[0]):
                yield x, a[1] + rise * (x - a[0])


def waited_until(record: JobRecord, outcome: Outcome) -> int:
    return outcome.ended_at_ms if record.started_at_ms is None else record.started_at_ms


class _Scores:
    """Points over age, without the share for rarity, which changes with every slot that is taken."""

    def __init__(self, outcome: Outcome) -> None:
        self._config = outcome.scenario.policy.config()
        self._bends_after_ms = grown_after_ms(self._config)

    def line(self, job: ScenarioJob, index: int, until_ms: int) -> Line:
        ages = [0, until_ms - job.submit_at_ms]
        bend = self._bends_after_ms
        if job.mode == ON_DEMAND and bend is not None and 0 < bend < ages[1]:
            ages.insert(1, bend)
        return [(job.submit_at_ms + age, self._points(job, age)) for age in ages]

    def _points(self, job: ScenarioJob, age_ms: int) -> float:
        points = PRIORITY_POINTS * job.priority + AGE_POINTS_PER_MS * age_ms
        if job.mode == ON_DEMAND:
            points += on_demand_bonus(age_ms, self._config.on_demand_bonus_max)
        return points / 1_000


class _AgedPriorities:
    """Steps over age; jobs are drawn a little apart, so that each can be seen."""

    def __init__(self, outcome: Outcome) -> None:
        self._lanes = {lane.name: lane for lane in outcome.scenario.lanes}
        self._apart = 0.6 / max(len(outcome.jobs), 12)

    def line(self, job: ScenarioJob, index: int, until_ms: int) -> Line:
        lane = self._lanes.get(job.lane) or Lane(job.lane)
        step_ms, level = lane.promote_after(job.priority), job.priority + index * self._apart
        points: list[Point] = [(job.submit_at_ms, level)]
        for priority in range(job.priority + 1, PRIORITY_MAX + 1):
            at_ms = job.submit_at_ms + (priority - job.priority) * step_ms
            if at_ms > until_ms:
                break
            points += [(at_ms, level), (at_ms, level + 1)]
            level += 1
        return [*points, (until_ms, level)]


def _slope(a: Point, b: Point) -> float | None:
    return (b[1] - a[1]) / (b[0] - a[0]) if b[0] > a[0] else None
