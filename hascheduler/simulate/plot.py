"""A picture of a run, or of several side by side: the runs of each processor, the waiting jobs, and the consumed costs.

Needs matplotlib, and nothing else here does: the importer names the package to install where it is missing.
"""

from collections.abc import Sequence
from io import BytesIO
from typing import Any
from warnings import catch_warnings, filterwarnings

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from hascheduler.dispatch.queue.score import ON_DEMAND
from hascheduler.model.policy import Criterion
from hascheduler.simulate.outcome import RunOutcome
from hascheduler.simulate.plot_gantt import LOST, OUTLINED_MAX, draw_gantt, height_of
from hascheduler.simulate.plot_style import INK, OTHERS, Palette, TimeScale, palette_of, time_scale
from hascheduler.simulate.plot_waiting import LEVEL, draw_waiting, has_crossings

FORMATS = ("png", "svg")
_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#8a8a8a",
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "svg.hashsalt": "hascheduler",  # the same run gives the same file
}
_DPI = 130


def draw(outcomes: Sequence[RunOutcome], format: str) -> bytes:
    """The picture as a file of one of the `FORMATS`; the runs, of the same jobs, stand side by side."""
    with rc_context(_STYLE), catch_warnings():
        filterwarnings("ignore", "Glyph .* missing from font")  # a box in its place says so, too
        figure = _figure(outcomes)
        buffer = BytesIO()
        figure.savefig(buffer, format=format, dpi=_DPI, metadata={"Date": None} if format == "svg" else None)
    return buffer.getvalue()


def _figure(outcomes: Sequence[RunOutcome]) -> Figure:
    palette = palette_of(outcomes)
    scale = time_scale(outcomes)
    rows = height_of(outcomes)
    heights = [min(max(0.9, 0.30 * rows), 6.5), 3.4, 2.4]
    width = 12.5 if len(outcomes) == 1 else 2.6 + 6.4 * len(outcomes)
    figure = Figure(figsize=(width, sum(heights) + 1.6), dpi=_DPI, layout="constrained")
    grid = figure.subplots(3, len(outcomes), sharex=True, squeeze=False, gridspec_kw={"height_ratios": heights})
    panels: list[list[Axes]] = grid.tolist()
    for axes in (axes for row in panels for axes in row):
        axes.set_xlim(0, scale.end * 1.01)
        axes.set_axisbelow(True)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=12, steps=[1, 2, 3, 5, 6, 10]))
    _legend(figure, outcomes, palette)
    figure.draw_without_rendering()  # the layout: what fits into a bar depends on it
    for outcome, column in zip(outcomes, zip(*panels, strict=True), strict=True):
        _draw_column(column, outcome, palette, scale, rows)
    for row in panels[1:]:
        _share_height(row)
    note = outcomes[0].scenario.note
    if note:
        figure.suptitle(note.replace("$", r"\$"), x=0.01, ha="left", fontsize=12)
    return figure


def _draw_column(axes: Sequence[Axes], outcome: RunOutcome, palette: Palette, scale: TimeScale, rows: float) -> None:
    gantt, waiting, costs = axes
    gantt.set_title(outcome.scenario.policy.name)
    draw_gantt(gantt, outcome, palette, scale, rows)
    draw_waiting(waiting, outcome, palette, scale)
    draw_costs(costs, outcome, palette, scale)
    for each in (waiting, costs):
        each.yaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    costs.set_xlabel(scale.unit)


def _share_height(axes: Sequence[Axes]) -> None:
    """The same scale on all of them, if they show the same thing."""
    if len({each.get_ylabel() for each in axes}) == 1:
        low, high = min(each.get_ylim()[0] for each in axes), max(each.get_ylim()[1] for each in axes)
        for each in axes:
            each.set_ylim(low, high)


def _legend(figure: Figure, outcomes: Sequence[RunOutcome], palette: Palette) -> None:
    entries: list[Patch | Line2D] = [
        Patch(facecolor=colour, label=palette.label(group)) for group, colour in palette.colours.items()
    ]
    if palette.has_others:
        entries.append(Patch(facecolor=OTHERS, label="others"))
    entries += _marks(outcomes, palette)
    figure.legend(handles=entries, title=palette.kind, loc="outside right upper", frameon=False, alignment="left")


def _marks(outcomes: Sequence[RunOutcome], palette: Palette) -> list[Patch | Line2D]:
    """What else there is to see, if it is there."""
    scenario, found = outcomes[0].scenario, list[Patch | Line2D]()
    if any({Criterion.SCORE, Criterion.AGED_PRIORITY} & set(outcome.scenario.policy.criteria) for outcome in outcomes):
        found.append(Line2D([], [], linestyle="", marker="o", color=INK, markersize=4, label="dispatched"))
    if any(has_crossings(outcome) for outcome in outcomes):
        mark = Line2D([], [], linestyle="", marker="o", color=INK, markerfacecolor="none", markersize=7, label=LEVEL)
        found.append(mark)
    is_outlined = max(len(outcome.attempts) for outcome in outcomes) <= OUTLINED_MAX
    if is_outlined and palette.kind != "mode" and any(job.mode == ON_DEMAND for job in scenario.jobs):
        found.append(Patch(facecolor="white", edgecolor=INK, label="on demand"))
    if any(attempt.lost for outcome in outcomes for attempt in outcome.attempts):
        found.append(Line2D([], [], linestyle="", marker="x", color=LOST, label="lost, runs again"))
    if any(each.leave_at_ms is not None for each in scenario.processors):
        found.append(Line2D([], [], color=LOST, linewidth=1.4, label="processor leaves"))
    if any(each.drain_at_ms is not None for each in scenario.processors):
        found.append(Line2D([], [], color=LOST, linewidth=1.4, linestyle=":", label="processor drains"))
    return found


_LINES_MAX = 300


def draw_costs(axes: Axes, outcome: RunOutcome, palette: Palette, scale: TimeScale) -> None:
    """Draw the costs of each account; where there are very many, of those that consumed most."""
    dearest = sorted(outcome.costs, key=lambda key: outcome.accumulated_cost_ms[key], reverse=True)[:_LINES_MAX]
    for key in reversed(dearest):
        colour = palette.colours.get(key, OTHERS) if palette.tells_keys else INK
        changes = [*outcome.costs[key], (outcome.ended_at_ms, outcome.costs[key][-1][1])]
        points = [(scale.of(at_ms), cost_ms / 1_000) for at_ms, cost_ms in changes]
        known = colour != OTHERS
        axes.step(*zip(*points, strict=True), where="post", color=colour, linewidth=1.6 if known else 0.6, zorder=3)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("accumulated cost (s)")
