"""How results look: tables for people, one JSON document for programs.

Colours are shown only on a terminal. Texts come from outside: none is read as markup, none moves the cursor.

Texts from outside, as a terminal may be given them.

A terminal obeys what it is given: an escape sequence in a job's error would clear the screen, set the clipboard or
draw a success; a bidirectional override would turn an id round. So of what a replica, a job or a file said only
printable characters, line feeds and tabs reach a terminal; for others stands how Python would write them (``\x1b``,
``\u202e``). In JSON they stand as JSON escapes, so a program reads what was there.
"""

import json
from collections.abc import Iterable
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.text import Text


_KEPT = "\n\t"


def is_printable(character: str) -> bool:
    """Neither a control (C0, DEL, C1), nor a mark of direction, nor invisible, nor half a character."""
    return character.isprintable() or character in _KEPT


def printable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(each if is_printable(each) else _escaped(each) for each in text)


def one_printable_line(text: str) -> str:
    """Without line feeds, which could begin a line that is not ours."""
    return printable(" ".join(text.split()))


def printable_json(document: str) -> str:
    """``document``, which is JSON, with the same meaning; outside of texts JSON has nothing that needs this."""
    if document.isprintable():
        return document
    return "".join(each if is_printable(each) else json.dumps(each)[1:-1] for each in document)


def printable_text(text: "Text") -> "Text":
    """``text`` with each style where it was."""
    plain = text.plain
    if plain.isprintable():
        return text
    from rich.text import Span  # only where something is drawn: a replica needs its log alone

    parts = [each if is_printable(each) else _escaped(each) for each in plain]
    places = [0, *accumulate(len(part) for part in parts)]
    shown = text.blank_copy("".join(parts))
    last = len(plain)
    shown.spans = [Span(places[min(span.start, last)], places[min(span.end, last)], span.style) for span in text.spans]
    return shown


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


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


def progress_bar(shown: Console) -> Progress:
    """Return the bar of what takes long; it goes when it is done, and is drawn on a terminal alone."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=shown, transient=True, disable=not shown.is_terminal)
