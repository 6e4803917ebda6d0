"""Patterns of errors: equal faults have one, and a text in the form of a pattern finds the errors that contain it.

A pattern is the first line of the error, with placeholders for the parts that differ from job to job. It is found in
linear time, in the first `ERROR_BEGINNING_MAX` characters. Errors are untrusted input: sequences that move a terminal's
cursor and marks that turn the direction of a text are left out of the pattern.

A text becomes one regular expression for MongoDB and for Python. Its time is linear for each place at which it may
begin, for any text: a placeholder is an atomic group, so nothing that it matched is tried again in another way.
"""

import re
import unicodedata
from functools import lru_cache
from itertools import islice, takewhile

ERROR_BEGINNING_MAX = 512
"""How many characters of an error are kept: enough to recognise the fault."""
PATTERN_LENGTH_MAX = 200
PLACEHOLDERS_MAX = 24
"""In one text: MongoDB compiles expressions up to some 64 kB, which is about 28 placeholders and 170 blanks."""
NO_ERROR = "no error reported"

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
    """Return at most `PATTERN_LENGTH_MAX` characters, with … at the cut.

    Quoted texts become ``"…"``, ids in hex ``<id>``, numbers ``<n>``. Equal errors have equal patterns.
    """
    line = first_line(error)
    if not line:
        return NO_ERROR
    if "'" in line or '"' in line or "`" in line:
        line = _QUOTED.sub('"…"', line)
    line = _HEX_ID.sub(_placeholder, line)
    line = _NUMBER.sub("<n>", line)
    return line if len(line) <= PATTERN_LENGTH_MAX else f"{line[: PATTERN_LENGTH_MAX - 1]}…"


def first_line(error: str) -> str:
    """Return the first line with visible characters, only those and with single blanks; empty if there is none."""
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
    # Digits alone are a number, or a part of one.
    return found[0] if found[0].isdecimal() else "<id>"


def _visible(character: str) -> str:
    if character.isascii():
        return character if character.isprintable() else " "
    # Controls, formats (including the marks of direction), surrogates and unassigned characters.
    return "" if unicodedata.category(character)[0] == "C" else character


_BREAKS = "\n-\r\x1c-\x1e\x85\u2028\u2029"
_END = f"(?:[{_BREAKS}]|\\Z)"
_BLANK = "[\\x00-\\x09\\x0e-\\x1a\\x1f \\x7f\xa0\u1680\u2000-\u200a\u202f\u205f\u3000]"
_GAP = f"{_ESCAPE_SEQUENCE.pattern}|{_BLANK}"
# Digits alone, which the pattern of an id matches too, are no id.
_ID = r"(?![0-9]{1,7}(?![0-9A-Za-z])|[0-9]{8,64}(?![0-9A-Za-z]|-[0-9A-Fa-f]{4}))" + _HEX_ID.pattern
_PIECES = {
    "^": rf"\A(?>(?:{_GAP}|[{_BREAKS}])*)",
    "$": f"(?>(?:(?<!{_BLANK})(?:{_GAP})+)?){_END}",
    " ": f"(?>{_BLANK}{{1,64}})",
    "<n>": f"(?><n>|(?<![0-9])(?=[0-9])(?!{_ID}){_NUMBER.pattern})",
    "<id>": f"(?><id>|(?=[0-9A-Fa-f]){_ID})",
    '"…"': f"(?>{_QUOTED.pattern.replace('[^', f'[^{_BREAKS}')})",
}
_PIECE = re.compile(r'(\A\^|\$\Z| |<n>|<id>|"…")')
PLACEHOLDER = re.compile(r'<n>|<id>|"…"')
_CUT_PLACEHOLDER = re.compile(r'(?:<|<n|<id?|"…?)\Z')


_compiled = lru_cache(maxsize=256)(re.compile)


def error_regex(text: str) -> re.Pattern[str]:
    """Return the expression that finds ``text`` in an error; it reads the same in MongoDB.

    Placeholders stand for what `error_pattern` writes them for, a blank for any. ``^`` at the beginning is that of the
    first line, ``$`` at the end that of a line; ``^$`` finds errors without a visible character.
    """
    pieces = enumerate(_PIECE.split(text))
    return _compiled("".join(_PIECES[piece] if place % 2 else re.escape(piece) for place, piece in pieces))


def text_of_pattern(pattern: str, shown: str, error: str) -> str:
    """Return the text that finds the errors of ``pattern``, which people see as ``shown``, and no others.

    ``error`` is one of them. If it is cut, has a secret that is not shown or too many placeholders, the text finds all
    that begin alike.
    """
    if pattern == NO_ERROR:
        return "^$"
    beyond = next(islice(PLACEHOLDER.finditer(pattern), PLACEHOLDERS_MAX, None), None)
    pattern = pattern if beyond is None else f"{pattern[: beyond.start()]}…"
    is_cut = pattern.endswith("…") and (beyond is not None or len(pattern) == PATTERN_LENGTH_MAX)
    if shown == pattern and not is_cut and (len(error) < ERROR_BEGINNING_MAX or "\n" in error.strip()):
        return f"^{pattern}$"
    alike = takewhile(lambda both: both[0] == both[1], zip(pattern.removesuffix("…"), shown, strict=False))
    return f"^{_CUT_PLACEHOLDER.sub('', ''.join(character for character, _ in alike))}"
