"""The picture of a run, or of several side by side: what ran where and when, one row per slot, one bar per run.

It needs matplotlib, which nothing else here does.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from typing import Any
from warnings import catch_warnings, filterwarnings

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from hascheduler.simulate.run import RunOutcome, SimulatedAttempt
from hascheduler.simulate.scenario import ScenarioJob, ScenarioProcessor, account_names

FORMATS = ("png", "svg")
_DPI = 130
_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "svg.hashsalt": "hascheduler",  # the same run gives the same file
}
_COLOURS = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#7a5195", "#b5a200", "#8c564b", "#003f5c",
)  # fmt: skip
"""After Okabe and Ito, distinct to colour-blind people too, and some more."""
_OTHERS, _LOST, _AWAY, _EDGE = "#9a9a9a", "#c1121f", "#ececec", "#d8d8d8"
_UNITS = ((3 * 3_600_000, 3_600_000, "hours"), (300_000, 60_000, "minutes"), (0, 1_000, "seconds"))
_GAP = 0.6
"""The gap between processors, in rows."""
_NAMES_MAX = 40
"""The most names of processors next to the axis; more would overlap."""
_OUTLINED_MAX = 400
_Row = tuple[ScenarioProcessor, list[tuple[SimulatedAttempt, int]], int]
"""A processor, its runs, each with the lowest slot that was free, and how many slots it used."""


def draw(outcomes: Sequence[RunOutcome], format: str) -> bytes:
    """Return a file of one of the `FORMATS`; the runs are of the same jobs."""
    with rc_context(_STYLE), catch_warnings():
        filterwarnings("ignore", "Glyph .* missing from font")  # the box in its place shows that too
        buffer = BytesIO()
        metadata = {"Date": None} if format == "svg" else None
        _figure(outcomes).savefig(buffer, format=format, dpi=_DPI, metadata=metadata)
    return buffer.getvalue()


def _figure(outcomes: Sequence[RunOutcome]) -> Figure:
    kind, group, colours = _palette(outcomes[0])
    end_ms = max(1, 1, *(each.finished_at_ms or outcome.ended_at_ms for outcome in outcomes for each in outcome.jobs))
    unit_ms, unit = next((ms, name) for least, ms, name in _UNITS if end_ms >= least)
    rows = [_rows(outcome) for outcome in outcomes]
    height = max(1, *(sum(slots for _, _, slots in each) + _GAP * len(each) for each in rows))
    width = 12.5 if len(outcomes) == 1 else 2.6 + 6.4 * len(outcomes)
    figure = Figure(figsize=(width, min(max(2.0, 0.30 * height), 9.0) + 1.2), dpi=_DPI, layout="constrained")
    columns = figure.subplots(1, len(outcomes), squeeze=False).tolist()[0]
    for axes, outcome, own in zip(columns, outcomes, rows, strict=True):
        axes.set_title(outcome.scenario.policy.name)
        axes.set_xlim(0, end_ms / unit_ms * 1.01)
        axes.set_ylim(height, 0)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=12, steps=[1, 2, 3, 5, 6, 10]))
        axes.set_xlabel(unit)
        colour_of = {each.job.id: colours.get(group(each.job), _OTHERS) for each in outcome.jobs}
        _draw(axes, outcome, own, colour_of, unit_ms)
    entries: list[Patch | Line2D] = [Patch(facecolor=colour, label=_shown(name)) for name, colour in colours.items()]
    if any(group(each.job) not in colours for each in outcomes[0].jobs):
        entries.append(Patch(facecolor=_OTHERS, label="others"))
    if any(attempt.lost for outcome in outcomes for attempt in outcome.attempts):
        entries.append(Line2D([], [], linestyle="", marker="x", color=_LOST, label="lost, runs again"))
    figure.legend(handles=entries, title=kind, loc="outside right upper", frameon=False, alignment="left")
    figure.suptitle(_shown(outcomes[0].scenario.note, 200), x=0.01, ha="left", fontsize=12)
    return figure


def _palette(outcome: RunOutcome) -> tuple[str, Callable[[ScenarioJob], str], dict[str, str]]:
    """Return what the colours tell apart (fairness keys, if there are several), and those of the busiest groups."""
    jobs = [record.job for record in outcome.jobs]
    called = account_names(outcome.scenario.jobs)
    kinds: dict[str, Callable[[ScenarioJob], str]] = {
        "fairness key": lambda job: called(job.tenant, job.fairness_key),
        "lane": lambda job: job.lane,
        "definition": lambda job: job.definition,
        "priority": lambda job: str(job.priority),
    }
    kind = next((kind for kind, group in kinds.items() if len(set(map(group, jobs))) > 1), "fairness key")
    weights: Counter[str] = Counter()
    for job in jobs:
        weights[kinds[kind](job)] += 1 + job.duration_ms
    chosen = {name for name, _ in weights.most_common(len(_COLOURS))}
    order = (name for name in dict.fromkeys(map(kinds[kind], jobs)) if name in chosen)
    return kind, kinds[kind], dict(zip(order, _COLOURS, strict=False))


def _rows(outcome: RunOutcome) -> list[_Row]:
    found: dict[str, tuple[list[tuple[SimulatedAttempt, int]], list[int]]] = {
        each.id: ([], []) for each in outcome.scenario.processors
    }
    for attempt in outcome.attempts:
        runs, free_from = found[attempt.processor]
        slot = next((slot for slot, at_ms in enumerate(free_from) if at_ms <= attempt.started_at_ms), len(free_from))
        free_from[slot : slot + 1] = [outcome.ended_at_ms + 1 if attempt.ended_at_ms is None else attempt.ended_at_ms]
        runs.append((attempt, slot))
    return [(each, found[each.id][0], max(1, len(found[each.id][1]))) for each in outcome.scenario.processors]


def _draw(axes: Axes, outcome: RunOutcome, rows: list[_Row], colour_of: Mapping[str, str], unit_ms: int) -> None:
    end_ms, outlined = outcome.ended_at_ms, len(outcome.attempts) <= _OUTLINED_MAX
    points = axes.get_window_extent().width * 72 / _DPI / axes.get_xlim()[1]
    ticks, top = [], _GAP / 2
    bars: list[list[tuple[float, float]]] = []
    for processor, runs, slots in rows:
        left_ms = end_ms if processor.leave_at_ms is None else processor.leave_at_ms
        away = [(0, processor.join_at_ms / unit_ms), (left_ms / unit_ms, max(0, end_ms - left_ms) / unit_ms)]
        axes.broken_barh(away, (top, slots), facecolor=_AWAY, zorder=1)
        for attempt, slot in runs:
            left = attempt.started_at_ms / unit_ms
            right = (end_ms if attempt.ended_at_ms is None else attempt.ended_at_ms) / unit_ms
            upper, middle, lower = (top + slot + part for part in (0.06, 0.5, 0.94))
            bars.append([(left, upper), (right, upper), (right, lower), (left, lower)])
            if outlined and points * (right - left) > 4 * len(attempt.job):
                axes.text((left + right) / 2, middle, _shown(attempt.job, 64), size=6.5, ha="center", va="center")
            if attempt.lost:
                axes.plot([right], [middle], "x", color=_LOST, markersize=6, markeredgewidth=1.8, zorder=5)
        ticks.append((top + slots / 2, _shown(processor.id, 18)))
        top += slots + _GAP
        axes.axhline(top - _GAP / 2, color=_EDGE, linewidth=0.6)
    colours = [colour_of[attempt.job] for _, runs, _ in rows for attempt, _ in runs]
    # Bars that touch would have pale seams if their sides were smoothed.
    edges = "white" if outlined else "none"
    axes.add_collection(PolyCollection(bars, facecolors=colours, edgecolors=edges, antialiaseds=outlined))
    shown = ticks[:: -(-len(ticks) // _NAMES_MAX) or 1]
    axes.set_yticks([at for at, _ in shown], [name for _, name in shown])


def _shown(text: str, longest: int = 24) -> str:
    """Return the text without what a drawing would take for a formula, shortened."""
    text = text.replace("$", r"\$")
    return (text if len(text) <= longest else text[: longest - 1] + "…") or "none"
