"""Tables that fit: if a line is too short for all columns, the least important are left out, and no word is broken.

Names and ids are there to be copied, so each is whole on one line; only columns of free text are wrapped, between
words. ``--wide`` shows all columns, however long the lines get, ``--columns`` those that it names. A pipe is as wide as
a terminal of 80 columns.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from hascheduler.errors import InvalidInput

_UNBOUNDED = 10_000
_WRAPPED_MIN = 20
"""The least width of a column of free text."""


_CHOICE: ContextVar[tuple[str, ...] | None] = ContextVar("table choice", default=None)
"""The columns to show, all if empty; None: those that fit."""


@contextmanager
def choosing(columns: str | None, *, wide: bool) -> Iterator[None]:
    """Let tables inside the block show all columns if ``wide``, or those that ``columns`` names with commas."""
    named = tuple(name.strip() for name in columns.split(",")) if columns is not None else ()
    token = _CHOICE.set(named if named or wide else None)
    try:
        yield
    finally:
        _CHOICE.reset(token)


Cell = Callable[[Any], str | Text]
"""The function that makes a column's cell from a row's object."""


def table_of(
    title: str,
    rows: Sequence[Any],
    columns: Mapping[str, Cell],
    spare: Sequence[str] = (),
    wraps: Sequence[str] = (),
    *,
    none: str = "",
) -> "FittedTable | Text":
    """Return a table with those columns, as `FittedTable` draws it, or the text ``none`` if there are no rows."""
    if none and not rows:
        return Text(none, style="dim")
    return FittedTable(title, rows, columns, spare, wraps)


def plain(*names: str, **fields: str) -> dict[str, Cell]:
    """Return columns that show these fields, some by another name, with a dash for null or a missing field."""

    def of(field: str) -> Cell:
        return lambda row: "–" if row.get(field) is None else str(row[field])

    return {name: of(field) for name, field in {**dict(zip(names, names, strict=True)), **fields}.items()}


class FittedTable:
    """A table that leaves out columns to fit.

    ``spare`` are the columns that may be left out, the least important first; ``wraps`` those of free text.
    """

    def __init__(
        self, title: str, rows: Sequence[Any], columns: Mapping[str, Cell], spare: Sequence[str], wraps: Sequence[str]
    ) -> None:
        self._title = title
        self._columns = [*columns]
        self._spare = [name for name in spare if name in columns]
        self._wraps = wraps
        cells = ([cell(row) for cell in columns.values()] for row in rows)
        # As Text: names and errors may hold what looks like markup.
        self._rows = [[Text(cell) if isinstance(cell, str) else cell for cell in row] for row in cells]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        chosen = _CHOICE.get()
        if chosen is not None:
            yield from self._table(self._named(chosen)).__rich_console__(console, options.update(width=_UNBOUNDED))
            return
        shown = list(self._columns)
        left_out = []
        for name in self._spare:
            if self._least_width(shown, console, options) <= options.max_width:
                break
            shown.remove(name)
            left_out.append(name)
        width = max(options.max_width, self._least_width(shown, console, options))
        yield from self._table(shown).__rich_console__(console, options.update(width=width))
        if left_out:
            names = ", ".join(name for name in self._columns if name in left_out)
            yield Text(f"not shown: {names}; --wide shows all", style="dim")

    def _named(self, names: Sequence[str]) -> Sequence[str]:
        known = {name.lower(): name for name in self._columns}
        for name in names:
            if name.lower() not in known:
                raise InvalidInput(
                    ("--columns",), f"{name[:64]!r} is not a column", f"some of {', '.join(self._columns)}"
                )
        return [known[name.lower()] for name in names] or self._columns

    def _table(self, shown: Sequence[str]) -> Table:
        table = Table(title=self._title or None, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
        for name in shown:
            table.add_column(name, overflow="fold", no_wrap=name not in self._wraps)
        places = [self._columns.index(name) for name in shown]
        for row in self._rows:
            table.add_row(*(row[place] for place in places))
        return table

    def _least_width(self, shown: Sequence[str], console: Console, options: ConsoleOptions) -> int:
        """Return the least width, with free text as narrow as its words allow."""
        # Two columns are three blanks apart, and each edge has one.
        return sum(self._least(name, console, options) + 3 for name in shown) - 1

    def _least(self, name: str, console: Console, options: ConsoleOptions) -> int:
        measured = options.update(width=_UNBOUNDED)
        widths = [Measurement.get(console, measured, cell) for cell in self._cells(name)]
        if name not in self._wraps:
            return max(width.maximum for width in widths)
        return min(max(width.maximum for width in widths), max(_WRAPPED_MIN, *(width.minimum for width in widths)))

    def _cells(self, name: str) -> Iterator[str | Text]:
        yield name
        place = self._columns.index(name)
        for row in self._rows:
            yield row[place]
