"""Who ran what when: one row a slot, grouped by processor, one bar a run."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection

from hascheduler.dispatch.queue.score import ON_DEMAND
from hascheduler.simulate.outcome import RunOutcome
from hascheduler.simulate.plot_style import INK, Palette, TimeScale, ink_on, shortened
from hascheduler.simulate.series import GanttRow, rows_of

_GAP = 0.6
"""Between processors, in rows."""
OUTLINED_MAX = 400
_NAMES_MAX = 40
"""How many names of processors stand beside the axis; more would overlap."""
LOST = "#c1121f"
_AWAY = "#ececec"


def height_of(outcomes: Sequence[RunOutcome]) -> float:
    """The height of the tallest picture, in rows."""
    return max(1, *(sum(row.slots for row in rows) + _GAP * len(rows) for rows in map(rows_of, outcomes)))


def draw_gantt(axes: Axes, outcome: RunOutcome, palette: Palette, scale: TimeScale, height: float) -> None:
    jobs = {record.job.id: record.job for record in outcome.jobs}
    axes.set_ylim(height, 0)
    axes.grid(visible=False, axis="y")
    ticks, names, top = [], [], _GAP / 2
    bars: list[list[tuple[float, float]]] = []
    colours: list[str] = []
    edges: list[str] = []
    outlined = len(outcome.attempts) <= OUTLINED_MAX
    for row in rows_of(outcome):
        _draw_absence(axes, row, top, outcome.ended_at_ms, scale)
        for attempt, slot in row.runs:
            job = jobs[attempt.job]
            ended_ms = outcome.ended_at_ms if attempt.ended_at_ms is None else attempt.ended_at_ms
            left, right, upper = scale.of(attempt.started_at_ms), scale.of(ended_ms), top + slot + 0.06
            bars.append([(left, upper), (right, upper), (right, upper + 0.88), (left, upper + 0.88)])
            colours.append(palette.of(job))
            edges.append((INK if job.mode == ON_DEMAND else "white") if outlined else "none")
            if attempt.lost:
                axes.plot([right], [upper + 0.44], "x", color=LOST, markersize=6, markeredgewidth=1.8, zorder=5)
            _label(axes, attempt.job, (left, right), upper + 0.46, ink_on(colours[-1]))
        ticks.append(top + row.slots / 2)
        names.append(shortened(row.processor.id, 18))
        top += row.slots + _GAP
        axes.axhline(top - _GAP / 2, color="#d8d8d8", linewidth=0.6)
    # Bars that touch would have pale seams, were their sides smoothed.
    axes.add_collection(
        PolyCollection(bars, facecolors=colours, edgecolors=edges, linewidths=0.7, antialiaseds=outlined, zorder=3)
    )
    every = -(-len(ticks) // _NAMES_MAX) or 1
    axes.set_yticks(ticks[::every], names[::every])


def _draw_absence(axes: Axes, row: GanttRow, top: float, ended_at_ms: int, scale: TimeScale) -> None:
    """Grey where the processor is not there, dotted from where it takes no more jobs."""
    each = row.processor
    away = [(0, each.join_at_ms), (ended_at_ms if each.leave_at_ms is None else each.leave_at_ms, ended_at_ms)]
    for from_ms, until_ms in away:
        if from_ms < until_ms:
            span = (scale.of(from_ms), scale.of(until_ms - from_ms))
            axes.broken_barh([span], (top, row.slots), facecolor=_AWAY, zorder=1)
    for at_ms, style in ((each.leave_at_ms, "-"), (each.drain_at_ms, ":")):
        if at_ms is not None and at_ms <= ended_at_ms:
            x = scale.of(at_ms)
            axes.plot([x, x], [top, top + row.slots], style, color=LOST, linewidth=1.4, zorder=4)


def _label(axes: Axes, id: str, across: tuple[float, float], y: float, ink: str) -> None:
    """The job's id, if it fits into its bar."""
    left, right = across
    box, (start, end), (bottom, top) = axes.get_window_extent(), axes.get_xlim(), axes.get_ylim()
    points = 72 / axes.figure.dpi
    row_points = box.height * points / abs(top - bottom)
    bar_points = box.width * points * (right - left) / (end - start)
    size = min(8.0, row_points * 0.62)
    if size >= 4.5 and bar_points >= 0.62 * size * len(id) + 3:
        middle = (left + right) / 2
        axes.text(middle, y, shortened(id, 64), size=size, color=ink, ha="center", va="center", zorder=4)
