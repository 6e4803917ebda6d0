"""The waiting jobs as the policy compares them: by score, by aged priority, or else only their number."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from hascheduler.dispatch.queue.score import (
    AGE_POINTS_PER_MS,
    ON_DEMAND,
    PRIORITY_POINTS,
    grown_after_ms,
    on_demand_bonus,
)
from hascheduler.model.lane import PRIORITY_MAX, Lane
from hascheduler.model.policy import Criterion
from hascheduler.simulate.outcome import JobRecord, RunOutcome
from hascheduler.simulate.plot_style import INK, OTHERS, Palette, TimeScale
from hascheduler.simulate.scenario import ScenarioJob

LEVEL = "draws level"
"""What the marks of crossings are called in the legend."""
_LINES_MAX = 240
_RARE = 5
"""Lines of one colour that are drawn thick all the same."""


def draw_waiting(axes: Axes, outcome: RunOutcome, palette: Palette, scale: TimeScale) -> None:
    if is_scored(outcome):
        _draw_lines(axes, outcome, palette, scale)
        axes.set_ylabel("score of those that wait")
    elif Criterion.AGED_PRIORITY in outcome.scenario.policy.criteria:
        _draw_lines(axes, outcome, palette, scale)
        axes.set_ylabel("aged priority of those that wait")
        axes.set_ylim(-0.5, PRIORITY_MAX + 0.7)
    else:
        _draw_counts(axes, outcome, palette, scale)
        axes.set_ylabel("jobs that wait")


def has_crossings(outcome: RunOutcome) -> bool:
    """Whether some are marked."""
    return bool(_marked(outcome))


def _marked(outcome: RunOutcome) -> list[tuple[float, float]]:
    lines = [line for _, line in lines_of(outcome)] if is_scored(outcome) else []
    return list(crossings(lines)) if len(lines) <= FEW else []


def _draw_lines(axes: Axes, outcome: RunOutcome, palette: Palette, scale: TimeScale) -> None:
    """A line for as long as a job waits, with a dot where it is dispatched; where there are many, not every line."""
    found = lines_of(outcome)
    lines = [[(at_ms / scale.unit_ms, value) for at_ms, value in line] for _, line in found]
    colours = [palette.of(record.job) for record, _ in found]
    counts = Counter(colours)
    is_few = len(lines) <= FEW
    shown = _sample(colours)
    drawn = LineCollection(
        [lines[index] for index in shown],
        colors=[colours[index] for index in shown],
        linewidths=1.6 if is_few else [1.6 if counts[colours[index]] <= _RARE else 0.7 for index in shown],
        zorder=2,
    )
    axes.add_collection(drawn)
    started = [index for index, (record, _) in enumerate(found) if record.attempts]
    if started:
        x, y = zip(*(lines[index][-1] for index in started), strict=True)
        size = 26.0 if is_few else 7.0 if len(lines) <= _LINES_MAX else 3.0
        axes.scatter(x, y, s=size, c=[colours[index] for index in started], zorder=4, linewidths=0)
    if marked := _marked(outcome):
        x, y = zip(*((at_ms / scale.unit_ms, value) for at_ms, value in marked), strict=True)
        axes.scatter(x, y, s=44, facecolors="none", edgecolors=INK, linewidths=1.0, zorder=5)
    remark = f"{len(shown)} of {len(lines):,} lines" if len(shown) < len(lines) else "" if lines else "nobody waited"
    axes.text(0.005, 0.96, remark, transform=axes.transAxes, va="top", color="#6a6a6a", fontstyle="italic")
    axes.autoscale_view()


def _sample(colours: Sequence[str]) -> list[int]:
    """Which lines are drawn, in what order: some of each colour, evenly, and the rare ones on top."""
    of: dict[str, list[int]] = {}
    for index, colour in enumerate(colours):
        of.setdefault(colour, []).append(index)
    each_max = _LINES_MAX // max(1, len(of))
    chosen: list[int] = []
    for indices in sorted(of.values(), key=len, reverse=True):
        chosen += indices[:: -(-len(indices) // each_max)]
    return chosen


def _draw_counts(axes: Axes, outcome: RunOutcome, palette: Palette, scale: TimeScale) -> None:
    """Stacked by colour."""
    groups = [*palette.colours, *([None] if palette.has_others else [])]
    if not groups:
        return
    changes: dict[int, dict[str | None, int]] = {0: {}}
    for record in outcome.jobs:
        group = palette.group(record.job)
        name = group if group in palette.colours else None
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
        levels.append([*levels_of, level])
    times = [scale.of(at_ms) for at_ms in [*instants, max(instants[-1], outcome.ended_at_ms)]]
    colours = [palette.colours[each] if each is not None else OTHERS for each in groups]
    axes.stackplot(times, levels, step="post", colors=colours, linewidth=0, zorder=3)
    axes.set_ylim(bottom=0)


Point = tuple[float, float]
ValueLine = Sequence[Point]

FEW = 60
"""Lines; among more of them their crossings would hide them."""


def lines_of(outcome: RunOutcome) -> list[tuple[JobRecord, ValueLine]]:
    """Of those that waited at all, in the order in which they were submitted."""
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
