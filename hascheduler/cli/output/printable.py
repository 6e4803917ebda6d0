r"""Makes texts from outside safe for a terminal.

A terminal obeys its input: an escape sequence in a job's error could clear the screen, set the clipboard or draw a
success; a bidirectional override could reverse an id. So of the texts of a replica, a job or a file only printable
characters, line feeds and tabs reach a terminal; the others are written as Python would (``\x1b``, ``\u202e``). In
JSON they are written as JSON escapes, so a program reads the original.
"""

import json
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

_KEPT = "\n\t"


def is_printable(character: str) -> bool:
    """Return False for controls (C0, DEL, C1), marks of direction, invisible characters and half a surrogate pair."""
    return character.isprintable() or character in _KEPT


def printable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(each if is_printable(each) else _escaped(each) for each in text)


def one_printable_line(text: str) -> str:
    """Return the text without line feeds, which could begin a line that is not ours."""
    return printable(" ".join(text.split()))


def printable_json(document: str) -> str:
    """Return the JSON ``document`` with the same meaning; only texts in JSON can hold characters to escape."""
    if document.isprintable():
        return document
    return "".join(each if is_printable(each) else json.dumps(each)[1:-1] for each in document)


def printable_text(text: "Text") -> "Text":
    """Return ``text`` in printable form, with each style in its place."""
    plain = text.plain
    if plain.isprintable():
        return text
    from rich.text import Span  # only if something is drawn: a replica needs only its log

    parts = [each if is_printable(each) else _escaped(each) for each in plain]
    places = [0, *accumulate(len(part) for part in parts)]
    shown = text.blank_copy("".join(parts))
    last = len(plain)
    shown.spans = [Span(places[min(span.start, last)], places[min(span.end, last)], span.style) for span in text.spans]
    return shown


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
