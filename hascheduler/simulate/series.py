"""What the pictures of a run show, as plain values: the runs of each processor, and the jobs that wait over time.

`hascheduler.simulate.plot` draws them with matplotlib.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from hascheduler.dispatch.queue.score import (
    AGE_POINTS_PER_MS,
    ON_DEMAND,
    PRIORITY_POINTS,
    grown_after_ms,
    on_demand_bonus,
)
from hascheduler.model.lane import PRIORITY_MAX, Lane
from hascheduler.model.policy import Criterion
from hascheduler.simulate.outcome import JobRecord, RunOutcome, SimulatedAttempt
from hascheduler.simulate.plot_style import Palette
from hascheduler.simulate.scenario import ScenarioJob, ScenarioProcessor


@dataclass(frozen=True, slots=True)
class GanttRow:
    """A processor with its runs, each in the lowest slot that was free; ``slots`` that were used at once at most."""

    processor: ScenarioProcessor
    runs: tuple[tuple[SimulatedAttempt, int], ...]
    slots: int


def rows_of(outcome: RunOutcome) -> list[GanttRow]:
    """One for each processor, in the order of the file."""
    attempts: dict[str, list[SimulatedAttempt]] = {each.id: [] for each in outcome.scenario.processors}
    for attempt in outcome.attempts:
        attempts[attempt.processor].append(attempt)
    return [_row(each, attempts[each.id], outcome.ended_at_ms) for each in outcome.scenario.processors]


def _row(processor: ScenarioProcessor, attempts: Sequence[SimulatedAttempt], ended_at_ms: int) -> GanttRow:
    free_from: list[int] = []
    runs: list[tuple[SimulatedAttempt, int]] = []
    for attempt in attempts:
        slot = next((slot for slot, at_ms in enumerate(free_from) if at_ms <= attempt.started_at_ms), len(free_from))
        if slot == len(free_from):
            free_from.append(0)
        free_from[slot] = ended_at_ms + 1 if attempt.ended_at_ms is None else attempt.ended_at_ms
        runs.append((attempt, slot))
    return GanttRow(processor, tuple(runs), max(1, len(free_from)))


LINES_MAX = 240
"""How many waiting jobs are drawn; more lines would hide each other."""


def sample(groups: Sequence[str]) -> list[int]:
    """Which lines are drawn, in what order: some of each group, evenly, and the rare ones on top."""
    of: dict[str, list[int]] = {}
    for index, group in enumerate(groups):
        of.setdefault(group, []).append(index)
    each_max = LINES_MAX // max(1, len(of))
    chosen: list[int] = []
    for indices in sorted(of.values(), key=len, reverse=True):
        chosen += indices[:: -(-len(indices) // each_max)]
    return chosen


def waiting_counts(outcome: RunOutcome, palette: Palette) -> tuple[list[int], list[list[int]]]:
    """The instants at which it changes how many jobs wait, and for each colour (the others last) how many from then
    on."""
    groups = palette.groups
    if not groups:
        return [], []
    changes: dict[int, dict[str | None, int]] = {0: {}}
    for record in outcome.jobs:
        name = palette.known(record.job)
        until_ms = waited_until(record, outcome)
        for at_ms, change in ((record.job.submit_at_ms, 1), (until_ms, -1)):
            if until_ms > record.job.submit_at_ms:
                known = changes.setdefault(at_ms, {})
                known[name] = known.get(name, 0) + change
    instants = sorted(changes)
    levels: list[list[int]] = []
    for each in groups:
        level, levels_of = 0, []
        for at_ms in instants:
            level += changes[at_ms].get(each, 0)
            levels_of.append(level)
        levels.append(levels_of)
    return instants, levels


Point = tuple[float, float]
ValueLine = Sequence[Point]

FEW = 60
"""Lines; among more of them their crossings would hide them."""


def lines_of(outcome: RunOutcome) -> list[tuple[JobRecord, ValueLine]]:
    """The lines of the jobs that waited at all, in the order in which they were submitted."""
    kind = _Scores(outcome) if is_scored(outcome) else _AgedPriorities(outcome)
    waited = [record for record in outcome.jobs if waited_until(record, outcome) > record.job.submit_at_ms]
    return [
        (record, kind.line(record.job, index, waited_until(record, outcome))) for index, record in enumerate(waited)
    ]


def is_scored(outcome: RunOutcome) -> bool:
    """Whether its policy looks at scores."""
    return Criterion.SCORE in outcome.scenario.policy.criteria


def crossings(lines: Sequence[ValueLine]) -> Iterator[Point]:
    """Where one of those that wait draws level with another."""
    for one, other in combinations(lines, 2):
        for (a, b), (c, d) in ((s, t) for s in pairwise(one) for t in pairwise(other)):
            rise, fall = _slope(a, b), _slope(c, d)
            if rise is None or fall is None or rise == fall:
                continue
            x = (c[1] - a[1] + rise * a[0] - fall * c[0]) / (rise - fall)
            if max(a[0], c[0]) < x <= min(b[0], d[0]):
                yield x, a[1] + rise * (x - a[0])


def waited_until(record: JobRecord, outcome: RunOutcome) -> int:
    return outcome.ended_at_ms if record.started_at_ms is None else record.started_at_ms


class _Scores:
    """Points over age, without the share for rarity, which changes with every slot that is taken."""

    def __init__(self, outcome: RunOutcome) -> None:
        self._config = outcome.scenario.policy.config()
        self._bends_after_ms = grown_after_ms(self._config)

    def line(self, job: ScenarioJob, index: int, until_ms: int) -> ValueLine:
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

    def __init__(self, outcome: RunOutcome) -> None:
        self._lanes = {lane.name: lane for lane in outcome.scenario.lanes}
        self._apart = 0.6 / max(len(outcome.jobs), 12)

    def line(self, job: ScenarioJob, index: int, until_ms: int) -> ValueLine:
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
