"""The appearance of results: tables for people, one JSON document for programs.

Colours are shown only on a terminal. Texts come from outside, so none is read as markup and none can move the cursor.
"""

import json
from collections.abc import Iterable
from typing import Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from hascheduler.cli.output.printable import printable, printable_json, printable_text


class _PlainConsole(Console):
    def print(self, *objects: Any, crop: bool = False, **how: Any) -> None:
        """Print; leave lines that are too long for the terminal to wrap, so that nothing is cut off."""
        super().print(*objects, crop=crop, **how)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Return segments of printable text: every text for the terminal passes here, in cells and titles too."""
        match renderable:
            case Text():
                renderable = printable_text(renderable)
            case str():
                renderable = printable(renderable)
        return super().render(renderable, options)


def console() -> Console:
    """Return a console for standard output that shows each text as it is, without highlighting or markup."""
    return _PlainConsole(highlight=False, markup=False, emoji=False)


def print_json(answer: Any) -> None:
    typer.echo(printable_json(json.dumps(answer, indent=2, ensure_ascii=False)))


def new_table(*columns: str) -> Table:
    """Return a table that folds cells that are too wide: names are there to be copied, so none is cut off."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def yes_or_no(value: bool) -> Text:
    return Text("yes", style="green") if value else Text("no", style="red")


def or_dash(value: object) -> str:
    return "–" if value is None else str(value)


def count_text(number: int, noun: str, *, exact: bool = True) -> str:
    return f"{'' if exact else 'more than '}{number} {noun}{'' if number == 1 else 's'}"


def progress_bar(shown: Console) -> Progress:
    """Return a progress bar, which is drawn on a terminal alone and disappears when it is done."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=shown, transient=True, disable=not shown.is_terminal)
