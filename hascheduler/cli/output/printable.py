"""Texts from outside, as a terminal may be given them.

A terminal obeys what it is given: an escape sequence in a job's error would clear the screen, set the clipboard or
draw a success; a bidirectional override would turn an id round. So of what a replica, a job or a file said only
printable characters, line feeds and tabs reach a terminal; for others stands how Python would write them (``\\x1b``,
``\\u202e``). In JSON they stand as JSON escapes, so a program reads what was there.
"""

import json
from itertools import accumulate
from typing import TYPE_CHECKING

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
