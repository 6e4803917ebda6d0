"""Tables that fit: where a line is too short for all columns, the least important are left out, and no word is broken.

Names and ids are there to be copied, so each stands whole on one line; only columns of free text are wrapped, between
words. ``--wide`` shows all columns, however long the lines get, ``--columns`` those that it names. A pipe is as wide as
a terminal of 80 columns.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from hascheduler.cli.options import Command, widened
from hascheduler.cli.output.console import console, print_json, show_or_watch
from hascheduler.cli.output.printable import one_printable_line
from hascheduler.errors import InvalidInput

_UNBOUNDED = 10_000
_WRAPPED_MIN = 20
"""Free text gets at least so much room."""


@dataclass(frozen=True, slots=True)
class _Choice:
    wide: bool = False
    columns: tuple[str, ...] = ()


_NO_CHOICE = _Choice()
_CHOICE: ContextVar[_Choice] = ContextVar("table choice", default=_NO_CHOICE)

_WIDE = Annotated[bool, typer.Option("--wide", help="Show all columns, however long the lines get.")]
_COLUMNS = Annotated[str | None, typer.Option("--columns", metavar="NAME,…", help="Show these columns alone.")]


def with_columns(command: Command) -> Command:
    """The command with ``--wide`` and ``--columns``, which hold for the tables that it shows."""
    return with_wide(command, columns=(_COLUMNS, None))


def with_wide(command: Command, **more: tuple[Any, Any]) -> Command:
    """The command with ``--wide`` alone, for pages of several tables."""

    def run(*, wide: bool, columns: str | None = None, **values: Any) -> None:
        named = tuple(name.strip() for name in columns.split(",")) if columns is not None else ()
        with _chosen(_Choice(wide, named)):
            command(**values)

    return widened(command, run, {"wide": (_WIDE, False), **more})


@contextmanager
def _chosen(choice: _Choice) -> Iterator[None]:
    token = _CHOICE.set(choice)
    try:
        yield
    finally:
        _CHOICE.reset(token)


class OutputForm(StrEnum):
    TEXT = "text"
    JSON = "json"
    YAML = "yaml"
    """As files of `hascheduler apply` have it."""
    NAME = "name"
    WIDE = "wide"
    """As text, with all columns."""


_OUTPUT = Annotated[OutputForm, typer.Option("-o", "--output", help="How to print it; yaml: as files have it.")]
_AS_JSON = Annotated[bool, typer.Option("--json", hidden=True, help="The same as -o json.")]
_AS_YAML = Annotated[bool, typer.Option("--yaml", hidden=True, help="The same as -o yaml.")]


def with_output(command: Command) -> Command:
    """The command with ``-o``, which it gets as ``output``."""

    def run(*, output: OutputForm, as_json: bool, as_yaml: bool, **values: Any) -> None:
        form = OutputForm.JSON if as_json else OutputForm.YAML if as_yaml else output
        choice = _CHOICE.get()
        with _chosen(replace(choice, wide=choice.wide or form is OutputForm.WIDE)):
            command(**values, output=form)

    more = {"output": (_OUTPUT, OutputForm.TEXT), "as_json": (_AS_JSON, False), "as_yaml": (_AS_YAML, False)}
    return widened(command, run, more, {"output"})


def print_all(
    found: Sequence[Mapping[str, Any]],
    table: Callable[[Sequence[Any]], RenderableType],
    manifest: Callable[[Any], str],
    output: OutputForm,
    name: str = "name",
) -> None:
    """Print a list in that form; ``manifest`` makes the YAML of one, whose field ``name`` says which it is."""
    match output:
        case OutputForm.JSON:
            print_json({"items": found})
        case OutputForm.YAML:
            typer.echo("---\n".join(map(manifest, found)), nl=False)
        case OutputForm.NAME:
            for one in found:
                typer.echo(one_printable_line(one[name]))
        case _:
            console().print(table(found))


def print_one(
    answer: Mapping[str, Any], manifest: Callable[[Any], str], output: OutputForm, name: str = "name"
) -> None:
    """Print one as JSON, as YAML, or its name."""
    match output:
        case OutputForm.JSON:
            print_json(answer)
        case OutputForm.YAML:
            typer.echo(manifest(answer), nl=False)
        case _:
            typer.echo(one_printable_line(answer[name]))


def show_list(
    ask: Callable[[], Mapping[str, Any]],
    table: Callable[[Sequence[Any]], RenderableType],
    manifest: Callable[[Any], str],
    output: OutputForm,
    *,
    watch: bool,
    name: str = "name",
) -> None:
    """Print the ``items`` of what ``ask`` answers as `print_all` does, as JSON the whole; or keep showing the table."""
    if watch and output not in (OutputForm.TEXT, OutputForm.WIDE):
        raise InvalidInput(("--watch",), f"can't be had with -o {output}", "one of the two")
    if watch:
        show_or_watch(lambda: table(ask()["items"]), watch=True)
    elif output is OutputForm.JSON:
        print_json(ask())
    else:
        print_all(ask()["items"], table, manifest, output, name)


Cell = Callable[[Any], str | Text]
"""What stands in a column, of what one row shows."""


def table_of(
    title: str, rows: Iterable[Any], columns: Mapping[str, Cell], spare: Sequence[str] = (), wraps: Sequence[str] = ()
) -> "FittedTable":
    """Return a table with those columns; see `FittedTable`."""
    table = FittedTable(title, *columns, spare=spare, wraps=wraps)
    for row in rows:
        table.add_row(*(cell(row) for cell in columns.values()))
    return table


class FittedTable:
    """``spare`` are the columns that may be left out, the least important first; ``wraps`` those of free text."""

    def __init__(self, title: str, *columns: str, spare: Sequence[str] = (), wraps: Sequence[str] = ()) -> None:
        self._title = title
        self._columns = columns
        self._spare = [name for name in spare if name in columns]
        self._wraps = wraps
        self._rows: list[tuple[Text, ...]] = []

    def add_row(self, *cells: str | Text) -> None:
        """As Text: names and errors may hold what looks like markup."""
        self._rows.append(tuple(Text(cell) if isinstance(cell, str) else cell for cell in cells))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        choice = _CHOICE.get()
        if choice.columns or choice.wide:
            yield from self._table(self._named(choice.columns)).__rich_console__(
                console, options.update(width=_UNBOUNDED)
            )
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
                raise InvalidInput(("--columns",), f"{name[:64]!r} is no column", f"some of {', '.join(self._columns)}")
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
        """With free text as narrow as its words allow."""
        # Between two columns stand three blanks, and one at either edge.
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
