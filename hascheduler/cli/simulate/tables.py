"""The figures of runs for people: one table with a column for each policy."""

from collections.abc import Iterator, Sequence

from rich.table import Table
from rich.text import Text

from hascheduler.cli.output.console import new_table
from hascheduler.model.values.durations import format_duration
from hascheduler.simulate.report import RunReport, report, start_shifts
from hascheduler.simulate.run import RunOutcome

_ROWS_MAX = 20
"""The most rows of one kind: the groups that waited longest."""


def comparison(outcomes: Sequence[RunOutcome]) -> Table:
    reports = [report(outcome) for outcome in outcomes]
    table = new_table("", "", *(each.policy for each in reports))
    for column in table.columns[1:]:
        column.justify = "right"
    for name, *figures in _rows(reports):
        table.add_row(Text(name), *figures)
    return table


def _rows(reports: Sequence[RunReport]) -> Iterator[list[str]]:
    counts = ("jobs", "completed", "pending", "expired", "gave_up", "lost", "unschedulable")
    for name in counts:
        found = [getattr(each, name) for each in reports]
        numbers = [len(each) if isinstance(each, tuple) else each for each in found]
        if name in counts[:3] or any(numbers):
            label = {"pending": "still waiting", "gave_up": "gave up", "lost": "attempts lost"}.get(name, name)
            yield [label, *(f"{number:,}" for number in numbers)]
    yield ["per hour", *(f"{float(each.per_hour):,.{0 if each.per_hour >= 100 else 1}f}" for each in reports)]
    yield ["slots used", *(f"{float(each.utilisation):.0%}" for each in reports)]
    waits = {"mean": "mean_ms", "median": "p50_ms", "95 %": "p95_ms", "longest": "longest_ms"}
    for name, figure in waits.items():
        yield [f"wait, {name}", *(short_span_text(getattr(each.waits, figure)) for each in reports)]
    for kind, groups in reports[0].waits_by.items():
        names = sorted(groups, key=lambda name: groups[name].longest_ms, reverse=True)
        for name in names[:_ROWS_MAX] if len(names) > 1 else ():
            figures = [each.waits_by[kind].get(name) for each in reports]
            means = ["–" if each is None else short_span_text(each.mean_ms) for each in figures]
            yield [f"mean, {kind} {name or '(none)'}", *means]
        if len(names) > _ROWS_MAX:
            yield [f"{len(names) - _ROWS_MAX:,} more, which waited less"]
    for id in list(reports[0].used)[:_ROWS_MAX]:
        yield [f"used of {id}", *(f"{float(each.used[id]):.0%}" for each in reports)]


def difference_lines(outcomes: Sequence[RunOutcome]) -> Iterator[Text]:
    """Yield what no processor could run, and whose start each policy but the first moves."""
    if ids := outcomes[0].unschedulable:
        more = f" and {len(ids) - 5:,} more" if len(ids) > 5 else ""
        yield Text(f"no processor that was there at the end could run: {', '.join(ids[:5])}{more}", style="yellow")
    first = outcomes[0].scenario.policy.name
    for other in outcomes[1:]:
        shifts, in_one_only = start_shifts(outcomes[0], other)
        parts = []
        for how, sign in (("sooner", -1), ("later", 1)):
            moved = {id: sign * by_ms for id, by_ms in shifts.items() if sign * by_ms > 0}
            most = max(moved, key=moved.__getitem__, default=None)
            by = f" (most: {most}, by {short_span_text(moved[most])})" if most is not None else ""
            parts.append(f"{len(moved):,} jobs start {how}{by}")
        parts.append(f"{sum(not by_ms for by_ms in shifts.values()):,} at the same time")
        parts += [f"{in_one_only:,} in one of the two runs only"] if in_one_only else []
        yield Text.assemble((other.scenario.policy.name, "bold"), f": {', '.join(parts)}, than under {first}")


def short_span_text(span_ms: int) -> str:
    """Return the span with three digits below a minute, in whole seconds above."""
    return f"{span_ms / 1_000:.3g}s" if span_ms < 59_950 else format_duration((span_ms + 500) // 1_000 * 1_000)
