"""What equal faults have in common: the first line of an error, with placeholders for what differs from job to job.

Pure, and linear in the length of the text, of which no more than `ERROR_BEGINNING_MAX` characters are read. What comes
from outside may hold anything: sequences that move a terminal's cursor and marks that turn the direction of a text are
left out, so that a pattern is what it looks like.
"""

import re
import unicodedata

from hascheduler.ports import ERROR_BEGINNING_MAX

PATTERN_LENGTH_MAX = 200
NO_ERROR = "no error was told"

_ESCAPE_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]{0,32}[ -/]{0,8}[@-~]|\][^\x07\x1b]{0,256}\x07?|[@-Z\\-_])?", re.ASCII)
_QUOTED = re.compile(r"(?<![A-Za-z0-9_])(?:\"[^\"]{0,256}\"|'[^']{0,256}'|`[^`]{0,256}`)(?![A-Za-z0-9_])", re.ASCII)
_HEX_ID = re.compile(
    r"(?<![A-Za-z0-9])(?:0[xX][0-9A-Fa-f]{1,64}"
    r"|(?=[A-Fa-f-]{0,64}[0-9])[0-9A-Fa-f]{8,64}(?:-[0-9A-Fa-f]{4,64}){0,8}"
    r"|(?=[A-Fa-f]{0,7}[0-9])[0-9A-Fa-f]{4,7})(?![A-Za-z0-9])",
    re.ASCII,
)
_NUMBER = re.compile(r"[0-9]{1,256}(?:[.,:][0-9]{1,256}){0,8}", re.ASCII)


def error_pattern(error: str) -> str:
    """At most `PATTERN_LENGTH_MAX` characters, with … where it is cut: quoted texts become ``"…"``, ids in hex
    ``<id>``, numbers ``<n>``. Equal errors have equal patterns."""
    line = first_line(error)
    if not line:
        return NO_ERROR
    if "'" in line or '"' in line or "`" in line:
        line = _QUOTED.sub('"…"', line)
    line = _HEX_ID.sub(_placeholder, line)
    line = _NUMBER.sub("<n>", line)
    return line if len(line) <= PATTERN_LENGTH_MAX else f"{line[: PATTERN_LENGTH_MAX - 1]}…"


def first_line(error: str) -> str:
    """The first line that shows anything, in its visible characters, with single blanks; empty where there is none."""
    text = error[:ERROR_BEGINNING_MAX]
    line = text.lstrip().partition("\n")[0]
    if line and line.isascii() and line.isprintable():  # nearly always
        return " ".join(line.split())
    text = _ESCAPE_SEQUENCE.sub("", text)
    for line in text.splitlines():
        shown = " ".join("".join(map(_visible, line)).split())
        if shown:
            return shown
    return ""


def _placeholder(found: re.Match[str]) -> str:
    # Of digits alone it is a number, or a part of one.
    return found[0] if found[0].isdecimal() else "<id>"


def _visible(character: str) -> str:
    if character.isascii():
        return character if character.isprintable() else " "
    # Controls, formats (among them the marks of direction), surrogates, and what nobody has assigned.
    return "" if unicodedata.category(character)[0] == "C" else character
