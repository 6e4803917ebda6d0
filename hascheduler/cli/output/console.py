"""How results look: tables for people, one JSON document for programs, and ``--watch``, which redraws every second.

Colours are shown only on a terminal. Texts come from outside: none is read as markup, none moves the cursor.
"""

import json
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType
from rich.live import Live
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from hascheduler.cli.output.printable import printable, printable_json, printable_text
from hascheduler.errors import InvalidInput, WorldError

_WATCH_EVERY_S = 1.0

T = TypeVar("T")


class _PlainConsole(Console):
    def print(self, *objects: Any, crop: bool = False, **how: Any) -> None:
        """What is too long for the terminal is the terminal's to wrap: nothing is cut off."""
        super().print(*objects, crop=crop, **how)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Every text on its way to the terminal comes by here, those in cells and titles too."""
        match renderable:
            case Text():
                renderable = printable_text(renderable)
            case str():
                renderable = printable(renderable)
        return super().render(renderable, options)


def console() -> Console:
    """Writes to standard output, and shows each text as it is: it highlights nothing, and nothing is markup."""
    return _PlainConsole(highlight=False, markup=False, emoji=False)


def print_json(answer: Any) -> None:
    typer.echo(printable_json(json.dumps(answer, indent=2, ensure_ascii=False)))


def print_answer(answer: T, picture: Callable[[T], RenderableType], *, as_json: bool) -> None:
    """Print ``answer`` as JSON, or else the picture of it; lines of text are not broken, as they may be copied."""
    if as_json:
        print_json(answer)
    else:
        shown = picture(answer)
        console().print(shown, soft_wrap=isinstance(shown, str | Text))


def new_table(title: str, *columns: str) -> Table:
    """Its cells are folded where they are too wide: names are there to be copied, so none is cut off."""
    table = Table(title=title or None, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def yes_or_no(value: bool) -> Text:
    return Text("yes", style="green") if value else Text("no", style="red")


def or_dash(value: object) -> str:
    return "–" if value is None else str(value)


def show(ask: Callable[[], T], picture: Callable[[T], RenderableType], *, as_json: bool, watch: bool) -> None:
    """Print what ``ask`` answers as JSON or as a picture, or keep showing pictures of it."""
    refuse_json_with_watch(as_json=as_json, watch=watch)
    if as_json:
        print_json(ask())
    else:
        show_or_watch(lambda: picture(ask()), watch=watch)


def show_or_watch(picture: Callable[[], RenderableType], *, watch: bool) -> None:
    """Print ``picture()`` once, or keep showing what it gives."""
    if not watch:
        console().print(picture())
        return
    from hascheduler.cli.replica import as_cli_errors

    with Live(picture(), console=console(), screen=True, auto_refresh=False) as live:
        while True:
            time.sleep(_WATCH_EVERY_S)
            try:
                with as_cli_errors():
                    shown = picture()
                live.update(shown, refresh=True)
            except WorldError as error:  # the replica may come back, and the user watches for that
                live.update(Text(str(error), style="red"), refresh=True)


def refuse_json_with_watch(*, as_json: bool, watch: bool) -> None:
    if as_json and watch:
        raise InvalidInput(("--watch",), "can't be had with --json", "one of the two")
