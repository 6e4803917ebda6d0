"""The outcome of a run for people: tables, and a line for each promise."""

from collections.abc import Sequence
from fractions import Fraction

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hascheduler.cli.output.console import new_table
from hascheduler.model.values.durations import format_duration
from hascheduler.simulate.outcome import RunOutcome
from hascheduler.simulate.overtaking import Promise
from hascheduler.simulate.report import ProcessorUse, RunReport, WaitFigures, differences

_ROWS_MAX = 20
"""The most rows of one kind: the jobs that waited longest."""


def summary(report: RunReport, note: str) -> RenderableType:
    parts: list[RenderableType] = [_head(report, note), _waits(report), _uses(report.uses)]
    return Group(*parts, *_lines(report))


def comparison(reports: Sequence[RunReport], note: str) -> RenderableType:
    """The same figures of all of them, side by side."""
    table = new_table("", "", *(report.policy for report in reports))
    for column in table.columns[1:]:
        column.justify = "right"
    for name, figures in (
        ("completed", [_count(each.completed) for each in reports]),
        ("still waiting", [_count(each.pending) for each in reports]),
        *_where_any("unschedulable", [len(each.unschedulable) for each in reports]),
        ("per hour", [_rate(each.per_hour) for each in reports]),
        ("utilisation", [_percent(each.utilisation) for each in reports]),
        ("wait, mean", [short_span_text(each.waits.mean_ms) for each in reports]),
        ("wait, median", [short_span_text(each.waits.p50_ms) for each in reports]),
        ("wait, 95 %", [short_span_text(each.waits.p95_ms) for each in reports]),
        ("wait, longest", [short_span_text(each.waits.longest_ms) for each in reports]),
        *_of_groups("tenant", [each.waits_by_tenant for each in reports]),
        *_of_groups("key", [each.waits_by_key for each in reports]),
        *_of_groups("lane", [each.waits_by_lane for each in reports]),
        *_of_groups("tier", [each.waits_by_tier for each in reports]),
        *_of_groups("mode", [each.waits_by_mode for each in reports]),
        ("overtakes", [_count(each.overtakes.times) for each in reports]),
        ("most of one job", [_count(each.overtakes.most) for each in reports]),
        ("attempts lost", [_count(each.lost) for each in reports]),
        *(_promise_row(index, reports) for index in range(len(reports[0].promises))),
    ):
        table.add_row(name, *figures)
    return Group(Text(note, style="italic"), table) if note else table


def difference_lines(outcomes: Sequence[RunOutcome]) -> list[Text]:
    """For each policy but the first: whose start it moves."""
    return [_moved(outcomes[0], other) for other in outcomes[1:]]


def _moved(first: RunOutcome, other: RunOutcome) -> Text:
    found = differences(first, other)
    text = Text(other.scenario.policy.name, style="bold").append(": ", "not bold")
    parts = []
    for count, most, how in ((found.sooner, found.most_sooner, "sooner"), (found.later, found.most_later, "later")):
        by = f" (most: {most[0]}, by {short_span_text(most[1])})" if most is not None else ""
        parts.append(f"{_count(count)} jobs start {how}{by}")
    parts.append(f"{_count(found.same)} at the same time")
    parts += [f"{_count(found.in_one_only)} in one of the two runs only"] if found.in_one_only else []
    return text.append(f"{', '.join(parts)}, than under {first.scenario.policy.name}", "not bold")


def examples_table(examples: Sequence[tuple[str, str]]) -> Table:
    table = new_table("", "example", "what there is to see")
    table.columns[0].no_wrap = True
    for name, note in examples:
        table.add_row(Text(name, style="bold"), Text(note))
    return table


def short_span_text(span_ms: int) -> str:
    """As short as possible: three digits below a minute, whole seconds above."""
    if span_ms < 59_950:
        return f"{span_ms / 1_000:.3g}s"
    return format_duration((span_ms + 500) // 1_000 * 1_000)


def _head(report: RunReport, note: str) -> Text:
    text = Text(f"{note}\n", style="italic") if note else Text()
    text.append(report.policy, style="bold not italic")
    counts = [f"{_count(report.jobs)} jobs", f"{_count(report.completed)} completed"]
    others = ("running", report.running), ("waiting", report.pending), ("gave up", report.gave_up)
    for name, count in (*others, ("expired", report.expired), ("unschedulable", len(report.unschedulable))):
        counts += [f"{_count(count)} {name}"] if count else []
    figures = [f"in {short_span_text(report.ended_at_ms)}", f"{_rate(report.per_hour)} per hour"]
    rest = [*counts, *figures, f"{_percent(report.utilisation)} of all slots used"]
    return text.append("   " + "   ".join(rest), style="not italic")


def _waits(report: RunReport) -> Table:
    some_wait = bool(report.waits.waiting)
    table = new_table("Waits", "", "", "jobs", "mean", "median", "95 %", "longest")
    if some_wait:
        table.add_column("waiting")
        table.add_column("oldest")
        table.padding = (0, 1, 0, 0)  # else names would not fit into 80 columns
    for column in table.columns[2:]:
        column.justify, column.no_wrap = "right", True
    _add_waits(table, "all", [report.waits], some_wait=some_wait)
    for kind, found in (
        ("tenant", _of_several(report.waits_by_tenant)),
        ("key", report.waits_by_key),
        ("lane", report.waits_by_lane),
        ("tier", report.waits_by_tier),
        ("mode", report.waits_by_mode),
    ):
        if found:
            table.add_section()
            _add_waits(table, kind, found, some_wait=some_wait)
    return table


def _of_several(tenants: Sequence[WaitFigures]) -> Sequence[WaitFigures]:
    """A single tenant needs no rows of its own."""
    return tenants if len(tenants) > 1 else ()


def _add_waits(table: Table, kind: str, found: Sequence[WaitFigures], *, some_wait: bool) -> None:
    kept = sorted(found, key=lambda each: each.longest_ms, reverse=True)[:_ROWS_MAX]
    for each in found:
        if each in kept:
            name = "" if kind == "all" else each.name or "(none)"
            table.add_row(Text(kind, style="dim"), Text(name), *_figures(each, some_wait=some_wait))
    if len(found) > len(kept):
        table.add_row("", Text(f"{len(found) - len(kept):,} more, which waited less", style="dim"))


def _figures(waits: WaitFigures, *, some_wait: bool) -> list[str]:
    started = [short_span_text(each) for each in (waits.mean_ms, waits.p50_ms, waits.p95_ms, waits.max_ms)]
    waiting = [_count(waits.waiting), short_span_text(waits.oldest_ms)] if waits.waiting else ["", ""]
    figures = [_count(waits.jobs), *(started if waits.started else ["–"] * len(started))]
    return [*figures, *waiting] if some_wait else figures


def _uses(found: Sequence[ProcessorUse]) -> Table:
    table = new_table("Processors", "", "slots", "runs", "lost", "used")
    for column in table.columns[1:]:
        column.justify, column.no_wrap = "right", True
    for each in found[:_ROWS_MAX]:
        lost = Text(_count(each.lost), style="red") if each.lost else Text("")
        table.add_row(Text(each.processor), _count(each.slots), _count(each.runs), lost, _percent(each.share))
    if len(found) > _ROWS_MAX:
        table.add_row(Text(f"{len(found) - _ROWS_MAX:,} more", style="dim"))
    return table


def _lines(report: RunReport) -> list[Text]:
    lines = []
    if report.starved is not None:
        lines.append(Text(f"longest wait: {short_span_text(report.waits.longest_ms)}, {report.starved}"))
    overtakes = report.overtakes
    if overtakes.times:
        lines.append(
            Text(
                f"overtakes within one mode: {_count(overtakes.times)} of {_count(overtakes.jobs)} jobs, "
                f"most often {overtakes.unluckiest}: {_count(overtakes.most)}"
            )
        )
    else:
        lines.append(Text("overtakes within one mode: none"))
    lines += [_promise(each) for each in report.promises]
    if report.unschedulable:
        more = f" and {len(report.unschedulable) - 5:,} more" if len(report.unschedulable) > 5 else ""
        names = ", ".join(report.unschedulable[:5])
        lines.append(Text(f"no processor that was there at the end could run: {names}{more}", style="yellow"))
    return lines


def _promise(promise: Promise) -> Text:
    text = Text(f"promise, {promise.name}: ")
    closest = promise.closest
    if not promise.applies:
        return text.append("not made by this policy", style="dim")
    text.append("held", style="green") if promise.held else text.append("broken", style="bold red")
    if closest is None:
        return text.append("; there was no such overtaking")
    return text.append(
        f"; closest: {closest.by}, which came {short_span_text(closest.after_ms)} after {closest.job}; "
        f"bound: {'-' if closest.bound_ms < 0 else ''}{short_span_text(abs(closest.bound_ms))}"
    )


def _promise_row(index: int, reports: Sequence[RunReport]) -> tuple[str, list[str]]:
    found = [report.promises[index] for report in reports]
    return f"promise, {found[0].name}", [("held" if each.held else "broken") if each.applies else "–" for each in found]


def _of_groups(kind: str, found: Sequence[Sequence[WaitFigures]]) -> list[tuple[str, list[str]]]:
    """The mean wait of each group, where there are some but not too many."""
    names = [each.name for each in found[0]]
    if not 1 < len(names) <= _ROWS_MAX // 2:
        return []
    means = [{each.name: each.mean_ms for each in waits} for waits in found]
    return [
        (f"mean, {kind} {name or '(none)'}", [short_span_text(each.get(name, 0)) for each in means]) for name in names
    ]


def _where_any(name: str, counts: Sequence[int]) -> list[tuple[str, list[str]]]:
    return [(name, [_count(count) for count in counts])] if any(counts) else []


def _count(count: int) -> str:
    return f"{count:,}"


def _percent(share: Fraction) -> str:
    return f"{float(share) * 100:.0f} %"


def _rate(rate: Fraction) -> str:
    return f"{float(rate):,.0f}" if rate >= 100 else f"{float(rate):,.1f}"
