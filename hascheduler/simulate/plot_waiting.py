"""The waiting jobs as the policy compares them: by score, by aged priority, or else only their number."""

from collections import Counter

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from hascheduler.model.lane import PRIORITY_MAX
from hascheduler.model.policy import Criterion
from hascheduler.simulate.outcome import RunOutcome
from hascheduler.simulate.plot_style import INK, OTHERS, Palette, TimeScale
from hascheduler.simulate.series import FEW, LINES_MAX, crossings, is_scored, lines_of, sample, waiting_counts

LEVEL = "draws level"
"""What the marks of crossings are called in the legend."""
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
    shown = sample(colours)
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
        size = 26.0 if is_few else 7.0 if len(lines) <= LINES_MAX else 3.0
        axes.scatter(x, y, s=size, c=[colours[index] for index in started], zorder=4, linewidths=0)
    if marked := _marked(outcome):
        x, y = zip(*((at_ms / scale.unit_ms, value) for at_ms, value in marked), strict=True)
        axes.scatter(x, y, s=44, facecolors="none", edgecolors=INK, linewidths=1.0, zorder=5)
    remark = f"{len(shown)} of {len(lines):,} lines" if len(shown) < len(lines) else "" if lines else "nobody waited"
    axes.text(0.005, 0.96, remark, transform=axes.transAxes, va="top", color="#6a6a6a", fontstyle="italic")
    axes.autoscale_view()


def _draw_counts(axes: Axes, outcome: RunOutcome, palette: Palette, scale: TimeScale) -> None:
    """Stacked by colour."""
    instants, counts = waiting_counts(outcome, palette)
    if not counts:
        return
    levels = [[*level, level[-1]] for level in counts]
    times = [scale.of(at_ms) for at_ms in [*instants, max(instants[-1], outcome.ended_at_ms)]]
    colours = [palette.colours[each] if each is not None else OTHERS for each in palette.groups]
    axes.stackplot(times, levels, step="post", colors=colours, linewidth=0, zorder=3)
    axes.set_ylim(bottom=0)
