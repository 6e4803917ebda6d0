"""Pictures for the report. Needs matplotlib; the importer says what is to be installed where it is missing."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, StrMethodFormatter

from tests.bench.cast import KINDS
from tests.bench.results import Measured

DPI = 130
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
_OURS, _THEIRS, _INK = "#0072b2", "#b8b8b8", "#2b2b2b"
_WHOLE = StrMethodFormatter("{x:,.0f}")
_TAILS = {0.5: "50", 0.9: "90", 0.99: "99", 0.999: "99.9"}


def draw_peers(peers: Mapping[str, Any]) -> Figure | None:
    """Jobs a second, and how late 1,000 fires a second are, of each system that ran; None where none did."""
    systems = [each for each in peers["systems"].values() if each.get("throughput_jobs_per_s")]
    if not systems:
        return None
    systems.sort(key=lambda each: each["throughput_jobs_per_s"])
    figure = Figure(figsize=(10, 1.2 + 0.5 * len(systems)), layout="constrained")
    speed, missed = figure.subplots(1, 2, sharey=True)
    names = [f"{each['title']}\n({each['keeps']})" for each in systems]
    _bars(speed, names, [each["throughput_jobs_per_s"] for each in systems], "{:,.0f}")
    speed.set(title="jobs that do nothing", xlabel="jobs per second")
    fired = [each.get("fires", {}).get("1000", {}).get("not_fired_percent") for each in systems]
    _bars(missed, names, fired, "{:.1f} %")
    missed.set(title="1,000 schedules, each every second", xlabel="not fired, per cent", xlim=(0, 100))
    return figure


def draw_latency(benches: Mapping[str, Mapping[str, Measured]]) -> Figure | None:
    """How late work starts, by percentile: jobs after their submission, fires after their nominal times."""
    jobs = _samples(benches.get("latency", {}), "starts_ms")
    fires = _samples(benches.get("fires", {}), "lags_ms")
    panels = [(title, lines) for title, lines in (("jobs, from the submit", jobs), ("fires", fires)) if lines]
    if not panels:
        return None
    figure = Figure(figsize=(5 * len(panels), 3.6), layout="constrained")
    for axes, (title, lines) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        for colour, (label, values) in zip(_COLOURS, lines.items(), strict=False):
            # By the share that is later still, so that the tail has room.
            tail = [1 - rank / len(values) for rank in range(len(values))]
            axes.plot(tail, [max(value, 1) for value in values], color=colour, label=label)
        # A load that is more than the machine can do is late by another order of magnitude.
        axes.set(title=title, xscale="log", xlim=(1, 0.001), yscale="log")
        axes.yaxis.set_major_formatter(_WHOLE)
        axes.set(xlabel="per cent of them that start so soon", ylabel="ms to the start of the handler")
        axes.set_xticks([1 - part for part in _TAILS], list(_TAILS.values()))
        axes.minorticks_off()
        axes.legend(frameon=False)
        _plain(axes)
    return figure


def draw_cost(cases: Mapping[str, Measured]) -> Figure | None:
    """CPU of a job by kind of process, by rate."""
    ran = {label: each.figures for label, each in cases.items() if "jobs_per_s" in each.figures}
    ran = {label: figures for label, figures in ran.items() if "cpu_ms_per_job" in figures}
    if not ran:
        return None
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    below = [0.0] * len(ran)
    for colour, kind in zip(_COLOURS, KINDS, strict=True):
        heights = [figures.get(f"{kind}_cpu_ms_per_job", 0) for figures in ran.values()]
        if any(heights):
            axes.bar(list(ran), heights, bottom=below, color=colour, label=kind, width=0.6)
        below = [low + height for low, height in zip(below, heights, strict=True)]
    axes.set(title="what a job costs, by load", ylabel="ms of CPU per job")
    axes.legend(frameon=False, loc="upper right", reverse=True)
    _plain(axes)
    return figure


def draw_soak(samples: Mapping[str, Any]) -> Figure | None:
    """Memory and lag over time; dotted lines are kills."""
    minutes = [at_s / 60 for at_s in samples["at_s"]]
    if not minutes:
        return None
    figure = Figure(figsize=(9, 6), layout="constrained")
    memory, lag = figure.subplots(2, 1, sharex=True)
    for number, (name, row) in enumerate(samples["resident_mb"].items()):
        # NaN is a gap in the line: the process was not there.
        values = [float("nan") if value is None else value for value in row]
        style = "-" if number < len(_COLOURS) else "--"
        memory.plot(minutes, values, style, color=_COLOURS[number % len(_COLOURS)], linewidth=1, label=name)
    memory.set(title="resident memory", ylabel="MB", ylim=(0, None))
    for colour, (kind, rows) in zip(_COLOURS, samples["lags_ms"].items(), strict=False):
        for part, (name, style) in enumerate((("p50", "-"), ("p99", ":"))):
            values = [row[part] for row in rows]
            lag.plot(minutes, values, style, color=colour, linewidth=1.2, label=f"{kind}, {name}")
    lag.set(title="how late work starts", ylabel="ms", yscale="log", ylim=(1, None), xlabel="minutes")
    lag.yaxis.set_major_formatter(_WHOLE)
    lag.yaxis.set_minor_formatter(NullFormatter())
    for axes in (memory, lag):
        for at_s, _ in samples["kills"]:
            axes.axvline(at_s / 60, color=_INK, linewidth=0.5, linestyle=":", alpha=0.5)
        axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5), fontsize=8)
        _plain(axes)
    return figure


def _bars(axes: Axes, names: Sequence[str], values: Sequence[float | None], shown: str) -> None:
    colours = [_OURS if name.startswith("hascheduler") else _THEIRS for name in names]
    bars = axes.barh(list(names), [value or 0 for value in values], color=colours)
    labels = ["not measured" if value is None else shown.format(value) for value in values]
    axes.bar_label(bars, labels, padding=3, fontsize=8)
    axes.xaxis.set_major_formatter(_WHOLE)
    axes.tick_params(axis="y", labelsize=8)
    axes.margins(x=0.15)
    _plain(axes)


def _samples(cases: Mapping[str, Measured], name: str) -> dict[str, list[int]]:
    return {label: each.samples[name] for label, each in cases.items() if each.samples.get(name)}


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)
