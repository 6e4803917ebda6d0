"""What the rows showed, as a report in Markdown."""

import os
import platform
from collections.abc import Sequence

from hascheduler import __version__
from tests.chaos.story import Result

_COLUMNS = (
    "row", "obligations", "lost", "doubled", "broken", "reruns", "terms", "worst gap", "takeover p99", "recovery",
    "bound", "what goes wrong",
)  # fmt: skip


def summary(results: Sequence[Result]) -> str:
    """One line: how many rows are green, and of all of them together what was lost and what was doubled."""
    ran = [result for result in results if not result.skipped]
    return (
        f"{sum(result.green for result in ran)} of {len(ran)} rows green,"
        f" {len(results) - len(ran)} skipped;"
        f" {sum(result.obligations for result in ran)} obligations,"
        f" {sum(result.lost for result in ran)} lost, {sum(result.doubled for result in ran)} doubled"
    )


def markdown(results: Sequence[Result], *, seed: int, smoke: bool) -> str:
    """*broken* counts what else the checkers and the audit found, and bounds that were not met; *reruns* are second
    attempts, which at-least-once allows; a takeover lasts from the signal to the first job that another leader gives
    out; recovery from the end of the trouble until all that was due had ended."""
    told_how = "short variants" if smoke else "in full"
    lines = [
        "# Chaos report",
        "",
        f"hascheduler {__version__}, {told_how}, seed {seed}, {os.cpu_count()} cores, {platform.system()}:"
        f" {summary(results)}.",
        "",
        f"| | {' | '.join(_COLUMNS)} |",
        f"|---|{'---|' * len(_COLUMNS)}",
        *(f"| {' | '.join(_cells(result))} |" for result in results),
        "",
    ]
    for result in results:
        lines += [f"- {result.row.name}: {name}: {each}" for name, found in result.violations.items() for each in found]
    return "\n".join(lines) + "\n"


def _cells(result: Result) -> list[str]:
    row, took_ms = result.row, result.takeover_p99_ms
    bounds = [f"recovery ≤ {row.recovery_max_s:g} s"]
    if row.takeover_ms is not None:
        bounds.insert(0, f"takeover ≤ {row.takeover_ms} ms")
    if row.gap_s is not None:
        bounds.insert(0, f"gap ≤ {row.gap_s:g} s")
    counts = (result.obligations, result.lost, result.doubled, result.broken, result.reruns, result.terms)
    took = ("" if took_ms is None else f"{took_ms} ms", f"{result.recovery_s:.0f} s")
    shown = [*map(str, counts), f"{result.worst_gap_s:.2f} s", *took, ", ".join(bounds)]
    mark = "skipped" if result.skipped else "green" if result.green else "RED"
    return [mark, row.name, *(len(shown) * [""] if result.skipped else shown), result.skipped or row.what]
