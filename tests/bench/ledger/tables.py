"""The ledger for people: by part and by process, for whom libraries work, and MongoDB's commands."""

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from tests.bench.ledger.accounts import LOAD, Span, net_of_all

_LEAST = 0.005
"""Of the whole: smaller parts are one row."""
_ROOMS_MAX = 12


def tables_of(rest: Span, loads: Sequence[Span]) -> Iterator[Group]:
    """Each under its title, which may be wider than it is."""
    for table in _tables(rest, loads):
        title, table.title = str(table.title), None
        yield Group(Text(f"\n{title}", style="bold"), table)


def _tables(rest: Span, loads: Sequence[Span]) -> Iterator[Table]:
    yield _rest(rest)
    for span in loads:
        if span.jobs:
            yield _parts(span, rest)
            yield _processes(span, rest)
            yield _rooms(span)
    yield _commands(rest, loads)


def _rest(rest: Span) -> Table:
    table = _table("At rest, per cent of a core a process", "part")
    kinds = [kind for kind in rest.kinds if kind != LOAD]
    for kind in kinds:
        table.add_column(kind, justify="right")
    shares = {
        kind: {
            part: 100 * spent_s / rest.seconds / rest.kinds[kind].processes
            for part, spent_s in rest.kinds[kind].of_parts().items()
        }
        for kind in kinds
    }
    weights: Counter[str] = Counter()
    for by_part in shares.values():
        for part, percent in by_part.items():
            weights[part] += percent  # type: ignore[assignment]  # a counter adds what it is given
    whole = sum(weights.values())
    for part, weight in weights.most_common():
        if weight >= _LEAST * whole:
            table.add_row(part, *(_number(shares[kind].get(part)) for kind in kinds))
    table.add_section()
    table.add_row("all", *(_number(sum(shares[kind].values())) for kind in kinds))
    return table


def _parts(span: Span, rest: Span) -> Table:
    """Sorted by what they cost; "at rest" stands apart, and all rows sum to the whole."""
    whole_ms = 1_000 * span.cpu_s / span.jobs
    table = _table(f"What a job costs at {span.label}: {whole_ms:.2f} ms of CPU", "part")
    nets = {kind: net for kind, net in net_of_all(span, rest).items() if kind != LOAD}
    for kind in nets:
        table.add_column(_kind(span, kind), justify="right")
    table.add_column("ms a job", justify="right")
    table.add_column("%", justify="right")
    rows = {
        part: [1_000 * net.parts_s.get(part, 0.0) / span.jobs for net in nets.values()]
        for part in {part for net in nets.values() for part in net.parts_s}
    }
    small = [part for part, row in rows.items() if sum(row) < _LEAST * whole_ms]
    shown = sorted(((part, row) for part, row in rows.items() if part not in small), key=lambda each: -sum(each[1]))
    if small:
        shown.append((f"{len(small)} smaller", [sum(column) for column in zip(*map(rows.get, small), strict=True)]))
    shown.append(("at rest", [1_000 * net.rest_s / span.jobs for net in nets.values()]))
    for part, row in shown:
        table.add_row(part, *map(_number, row), f"{sum(row):.3f}", f"{100 * sum(row) / whole_ms:.1f}")
    table.add_section()
    columns = [1_000 * span.kinds[kind].cpu_s / span.jobs for kind in nets]
    table.add_row("all", *map(_number, columns), f"{whole_ms:.3f}", "100.0")
    return table


def _processes(span: Span, rest: Span) -> Table:
    table = _table(f"By process at {span.label}, all of a kind together, a job", "process")
    for column in ("ms of CPU", "at rest", "% of a core", "voluntary", "involuntary", "loop turns"):
        table.add_column(column, justify="right")
    table.add_column("samples", justify="right")
    table.add_column("sampler, %", justify="right")
    nets = net_of_all(span, rest)
    for kind, spent in span.kinds.items():
        table.add_row(
            _kind(span, kind),
            f"{1_000 * spent.cpu_s / span.jobs:.3f}",
            _number(1_000 * nets[kind].rest_s / span.jobs),
            f"{100 * spent.cpu_s / span.seconds:.1f}",
            f"{spent.voluntary / span.jobs:.2f}",
            f"{spent.involuntary / span.jobs:.2f}",
            _number(spent.turns / span.jobs),
            f"{spent.samples:,}" if spent.samples else "",
            f"{100 * spent.sampling_s / spent.cpu_s:.1f}" if spent.samples else "",
        )
    return table


def _rooms(span: Span) -> Table:
    """The largest shares of libraries, by the part that called them."""
    table = _table(f"For whom libraries work at {span.label}, ms a job, the rest included", "library")
    table.add_column("for")
    kinds = [kind for kind, spent in span.kinds.items() if spent.samples]
    for kind in kinds:
        table.add_column(_kind(span, kind), justify="right")
    found: Counter[tuple[str, str]] = Counter()
    for kind in kinds:
        for share, spent_s in span.kinds[kind].parts_s.items():
            if share.part != share.room:
                found[share.part, share.room] += spent_s  # type: ignore[assignment]  # seconds
    for (part, room), _ in found.most_common(_ROOMS_MAX):
        row = (
            sum(
                spent_s
                for share, spent_s in span.kinds[kind].parts_s.items()
                if (share.part, share.room) == (part, room)
            )
            for kind in kinds
        )
        table.add_row(part, room, *(_number(1_000 * spent_s / span.jobs) for spent_s in row))
    return table


def _commands(rest: Span, loads: Sequence[Span]) -> Table:
    ran = [span for span in loads if span.jobs]
    table = _table("MongoDB's commands a job, by its own count; at rest a second", "command")
    for span in ran:
        table.add_column(span.label, justify="right")
    table.add_column("at rest, /s", justify="right")
    names: Counter[str] = Counter()
    for span in (*ran, rest):
        names.update(span.commands)
    for name, _ in names.most_common():
        cells = (_number(span.commands.get(name, 0) / span.jobs) for span in ran)
        table.add_row(name, *cells, _number(rest.commands.get(name, 0) / rest.seconds))
    table.add_section()
    whole = (_number(sum(span.commands.values()) / span.jobs) for span in ran)
    table.add_row("all", *whole, _number(sum(rest.commands.values()) / rest.seconds))
    return table


def _table(title: str, first: str) -> Table:
    table = Table(title=title)
    table.add_column(first)
    return table


def _kind(span: Span, kind: str) -> str:
    count = span.kinds[kind].processes
    return kind if count == 1 else f"{kind} ×{count}"


def _number(value: float | None) -> str:
    """Nothing for zero: a table of parts is mostly empty."""
    if not value:
        return ""
    return f"{value:.3f}" if value >= 0.0005 else "0.000"
