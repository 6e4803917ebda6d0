"""The ledger as a picture. Needs matplotlib; who imports this says what is to be installed where it is missing."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tests.bench.cast import KINDS
from tests.bench.ledger.accounts import LOAD

_COLOURS = ("#0072b2", "#56b4e9", "#009e73", "#e69f00", "#cc79a7")
_REST, _INK = "#c8c8c8", "#2b2b2b"
_PARTS_MAX = 20
_KINDS = tuple(kind for kind in KINDS if kind != LOAD)


def draw_ledger(ledger: Mapping[str, Any]) -> Figure | None:
    """One panel a load: its parts by size, coloured by the kind of process; the whole in its title.

    ``ledger`` is `tests.bench.ledger.accounts.as_json` by label; None where no load ran a job.
    """
    loads = {label: load for label, load in ledger.items() if _cpu_ms(load) is not None}
    if not loads:
        return None
    figure = Figure(figsize=(6.4 * len(loads), 8.2), layout="constrained")
    whole, *panels = figure.subplots(1, len(loads) + 1, width_ratios=[0.55, *[1] * len(loads)])
    _draw_whole(whole, loads)
    for axes, (label, load) in zip(panels, loads.items(), strict=True):
        _draw_parts(axes, label, load)
    return figure


def _draw_whole(axes: Axes, loads: Mapping[str, Any]) -> None:
    below = [0.0] * len(loads)
    for colour, kind in zip(_COLOURS, _KINDS, strict=True):
        heights = [_of_kind(load, kind) for load in loads.values()]
        axes.bar(range(len(loads)), heights, bottom=below, color=colour, label=kind, width=0.6)
        below = [low + height for low, height in zip(below, heights, strict=True)]
    rests = [sum(_rest_ms(load, kind) for kind in _KINDS) for load in loads.values()]
    axes.bar(range(len(loads)), rests, bottom=below, color=_REST, label="at rest", width=0.6)
    axes.set(title="what a job costs", ylabel="ms of CPU a job")
    axes.set_xticks(range(len(loads)), [label.replace(" in ", "\nin ") for label in loads], fontsize=8, rotation=20)
    axes.legend(frameon=False, reverse=True, fontsize=8)
    _plain(axes)


def _draw_parts(axes: Axes, label: str, load: Mapping[str, Any]) -> None:
    rows = {
        part: [load["kinds"].get(kind, {}).get("parts_cpu_ms", {}).get(part, {}).get("per_job", 0.0) for kind in _KINDS]
        for part in _parts(load)
    }
    rows["at rest"] = [_rest_ms(load, kind) for kind in _KINDS]
    names = sorted(rows, key=lambda part: -sum(rows[part]))[:_PARTS_MAX]
    left = [0.0] * len(names)
    for column, (colour, kind) in enumerate(zip(_COLOURS, _KINDS, strict=True)):
        widths = [rows[name][column] for name in names]
        axes.barh(names, widths, left=left, color=colour, label=kind)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    axes.set(title=f"{label}: {_cpu_ms(load):.2f} ms", xlabel="ms of CPU a job")
    axes.invert_yaxis()
    axes.tick_params(axis="y", labelsize=8)
    axes.legend(frameon=False, loc="lower right", fontsize=8)
    _plain(axes)


def _parts(load: Mapping[str, Any]) -> Sequence[str]:
    return list(dict.fromkeys(part for kind in _KINDS for part in load["kinds"].get(kind, {}).get("parts_cpu_ms", {})))


def _cpu_ms(load: Mapping[str, Any]) -> float | None:
    kinds = [each for kind, each in load["kinds"].items() if kind != LOAD]
    if not load["jobs"]:
        return None
    return sum(float(each["cpu_ms"]["per_job"]) for each in kinds)


def _of_kind(load: Mapping[str, Any], kind: str) -> float:
    """Without what is spent at rest."""
    if kind not in load["kinds"]:
        return 0.0
    return float(load["kinds"][kind]["cpu_ms"]["per_job"]) - _rest_ms(load, kind)


def _rest_ms(load: Mapping[str, Any], kind: str) -> float:
    return float(load["kinds"].get(kind, {}).get("at_rest_cpu_ms", {}).get("per_job", 0.0))


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#e6e6e6", linewidth=0.6)
    axes.set_axisbelow(True)
