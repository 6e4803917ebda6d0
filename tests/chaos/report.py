"""What the rows showed, as a report in Markdown."""

import os
import platform
from collections.abc import Sequence

from hascheduler import __version__
from tests.chaos.story import Result

_COLUMNS = (
    "row", "obligations", "lost", "doubled", "broken", "reruns", "terms", "worst gap", "takeover p99", "recovery",
    "bound",
)  # fmt: skip


def summary(results: Sequence[Result]) -> str:
    """One line: how many rows are green, and of all of them together what was lost and what was doubled."""
    told = [result for result in results if not result.not_told]
    return (
        f"{sum(result.green for result in told)} of {len(told)} rows green,"
        f" {len(results) - len(told)} could not be told;"
        f" {sum(result.obligations for result in told)} obligations,"
        f" {sum(result.lost for result in told)} lost, {sum(result.doubled for result in told)} doubled"
    )


def markdown(results: Sequence[Result], *, seed: int, smoke: bool) -> str:
    lines = [
        "# Chaos report",
        "",
        f"hascheduler {__version__}, {_told_how(smoke)}, seed {seed}, {os.cpu_count()} cores, {platform.system()}:"
        f" {summary(results)}.",
        "",
        "An obligation is an acknowledged submit, or a nominal time of an acknowledged schedule. *broken* counts what"
        " else the checkers and the audit found, and bounds that were not met; *reruns* are second attempts, which"
        " at-least-once allows; the gap is the longest time in which nothing was decided while a replica could have;"
        " a takeover lasts from the signal to the first job that another leader gives out; recovery from the end of"
        " the trouble until all that was due had ended.",
        "",
        f"| | {' | '.join(_COLUMNS)} |",
        f"|---|{'---|' * len(_COLUMNS)}",
        *(f"| {_mark(result)} | {' | '.join(_cells(result))} |" for result in results),
        "",
        "## What goes wrong in each",
        "",
        *(f"- **{result.row.name}** ({result.took_s:.0f} s): {result.row.what}" for result in results),
        "",
    ]
    for result in results:
        if result.violations:
            lines += [f"## {result.row.name} broke", ""]
            lines += [f"- {name}: {text}" for name, found in result.violations.items() for text in found[:20]]
            lines.append("")
    return "\n".join(lines)


def _told_how(smoke: bool) -> str:
    return "short variants" if smoke else "in full"


def _mark(result: Result) -> str:
    return "not told" if result.not_told else "green" if result.green else "RED"


def _cells(result: Result) -> list[str]:
    if result.not_told:
        return [result.row.name, *[""] * (len(_COLUMNS) - 2), result.not_told]
    took_ms = result.takeover_p99_ms
    return [
        result.row.name,
        str(result.obligations),
        str(result.lost),
        str(result.doubled),
        str(result.broken),
        str(result.reruns),
        str(result.terms),
        f"{result.worst_gap_s:.2f} s",
        "" if took_ms is None else f"{took_ms} ms",
        f"{result.recovery_s:.0f} s",
        _bound(result),
    ]


def _bound(result: Result) -> str:
    row = result.row
    bounds = [f"recovery ≤ {row.recovery_max_s:g} s"]
    if row.takeover_ms is not None:
        bounds.insert(0, f"takeover ≤ {row.takeover_ms} ms")
    if row.gap_s is not None:
        bounds.insert(0, f"gap ≤ {row.gap_s:g} s")
    return ", ".join(bounds)
