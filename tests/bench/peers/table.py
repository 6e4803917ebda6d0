"""Systems side by side, a table a workload, with how many times better or worse ours does."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from rich.table import Table

from tests.bench.peers.systems import OURS

Systems = Mapping[str, Mapping[str, Any]]
"""By name: ``title``, ``keeps``, and what was measured; or ``not_run``, with the reason."""

_ONE_BY_ONE = "throughput_one_by_one_jobs_per_s"


def ratios_of(systems: Systems) -> dict[str, dict[str, float]]:
    """For each peer: our throughput divided by its own, and its lags and failover times divided by ours.

    So above 1 ours is better. What one of the two did not measure is left out, as is what would be divided by 0.
    """
    ours = _comparable(systems.get(OURS, {}))
    found: dict[str, dict[str, float]] = {}
    for name, system in systems.items():
        theirs = {} if name == OURS else _comparable(system)
        for figure in [figure for figure in ours if figure in theirs]:
            above, below = (theirs, ours) if figure.endswith("_ms") else (ours, theirs)
            if below[figure]:
                found.setdefault(name, {})[figure] = round(above[figure] / below[figure], 2)
    return found


def _comparable(system: Mapping[str, Any]) -> dict[str, float]:
    """Figures that mean the same for all. A peer has no batches: its one throughput is compared with both of ours."""
    each = system.get("throughput", {})
    found = {
        "throughput_jobs_per_s": each.get("jobs_per_s"),
        _ONE_BY_ONE: each.get("one_by_one_jobs_per_s", each.get("jobs_per_s")),
        "failover_resumed_last_ms": system.get("failover", {}).get("resumed_last_ms"),
    }
    for schedules, figures in system.get("fires", {}).items():
        found |= {f"fires_{schedules}_{name}": figures[name] for name in ("lag_p50_ms", "lag_p99_ms")}
    return {name: value for name, value in found.items() if value is not None}


def compare(systems: Systems) -> Iterator[Table]:
    """One table for each workload that a system has done, and one of the systems that could not."""
    ratios = ratios_of(systems)

    def ratio(name: str, figure: str) -> str:
        value = ratios.get(name, {}).get(figure)
        return "" if value is None else f"{value:,.1f}"

    yield from _table("throughput", _THROUGHPUT, _rows(systems, "throughput", partial(_throughput, ratio)))
    for count in dict.fromkeys(count for system in systems.values() for count in system.get("fires", {})):
        of_count = {name: system for name, system in systems.items() if count in system.get("fires", {})}
        yield from _table(
            f"fires: {count} schedules × 1 s", _FIRES, _rows(of_count, "fires", partial(_fires, ratio, count))
        )
    yield from _table(
        "failover: SIGKILL of an instance", _FAILOVER, _rows(systems, "failover", partial(_failover, ratio))
    )
    yield from _table("not run", ("why",), _rows(systems, "not_run", lambda _, why: [why]))


_THROUGHPUT = ("jobs/s", "lost", "doubled", "ours ÷ theirs", "one by one: ours ÷ theirs")
_FIRES = ("not fired", "doubled", "lag p50, ms", "lag p99, ms", "p99: theirs ÷ ours")
_FAILOVER = ("kills", "last resumed, ms", "worst, ms", "not fired", "doubled", "last: theirs ÷ ours")
_Ratio = Callable[[str, str], str]


_Rows = list[list[str]]


def _rows(systems: Systems, what: str, cells: Callable[[str, Any], list[str]]) -> _Rows:
    return [
        [f"{system['title']}, {system['keeps']}", *cells(name, system[what])]
        for name, system in systems.items()
        if what in system
    ]


def _table(title: str, heads: tuple[str, ...], rows: _Rows) -> Iterator[Table]:
    if not rows:
        return
    table = Table("", title=title, title_justify="left")
    for head in heads:
        table.add_column(head, justify="right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    yield table


def _throughput(ratio: _Ratio, name: str, each: Mapping[str, Any]) -> list[str]:
    rate = _shown(each["jobs_per_s"])
    if "one_by_one_jobs_per_s" in each:
        rate += f" (one by one {_shown(each['one_by_one_jobs_per_s'])})"
    ratios = [ratio(name, "throughput_jobs_per_s"), ratio(name, _ONE_BY_ONE)]
    return [rate, _shown(each["lost"]), _shown(each["doubled"]), *ratios]


def _fires(ratio: _Ratio, count: str, name: str, by_count: Mapping[str, Any]) -> list[str]:
    each = by_count[count]
    shown = [_shown(each[figure]) for figure in ("doubled", "lag_p50_ms", "lag_p99_ms")]
    return [f"{each['not_fired_percent']} %", *shown, ratio(name, f"fires_{count}_lag_p99_ms")]


def _failover(ratio: _Ratio, name: str, each: Mapping[str, Any]) -> list[str]:
    last = _shown(each["resumed_last_ms"])
    if each["never_resumed"]:
        last += f" ({each['never_resumed']} never)"
    lost = f"{each['not_fired']:,} of {each['expected']:,}"
    worst, doubled = _shown(each["resumed_last_worst_ms"]), _shown(each["doubled"])
    return [str(each["kills"]), last, worst, lost, doubled, ratio(name, "failover_resumed_last_ms")]


def _shown(value: int | None) -> str:
    return "unknown" if value is None else f"{value:,}"
