"""Removes secrets from texts: the last safety net; code elsewhere must not put them there in the first place.

Each pass is linear in the length of the text, for any text (see ``tests/unit/security/test_patterns.py``). To show only
the beginning of a text, use `redacted_beginning`, for the end of a handler's traceback `kept_traceback`: they show no
part of a secret that is cut in two.
"""

import re
from typing import Any

TRACEBACK_BYTES_MAX = 16 * 1024
TRACEBACKS_KEPT_MAX = 3
"""How many of a job's newest attempts keep their tracebacks: those of many tries would be megabytes."""
_SCANNED_MAX = 4 * TRACEBACK_BYTES_MAX
_HIDDEN = "***"
_AUTHORITY = "://"
_BLANK = re.compile(r"\s")
_SPECIAL = re.compile(r"[\s/?#:@]")
_PATH = re.compile(r"[\s/?#]")
_TOKEN = re.compile(r"hsk_[A-Za-z0-9_-]+")
_BEARER = re.compile(r"\b(authorization\W{1,4}bearer\s+)[^\s\"']+", re.IGNORECASE)
_BEARER_LENGTH_MIN = len("authorization:bearer x")
_DEEPEST = 8


def redacted(text: str) -> str:
    """Return ``text`` without the credentials of URIs and without tokens."""
    if _AUTHORITY in text and "@" in text:
        text = _without_credentials(text)
    if "hsk_" in text:
        text = _TOKEN.sub(f"hsk_{_HIDDEN}", text)
    # Most texts are names and ids, too short for a secret.
    return _BEARER.sub(rf"\1{_HIDDEN}", text) if len(text) >= _BEARER_LENGTH_MIN else text


def redacted_beginning(text: str, length_max: int) -> str:
    """Return the first ``length_max`` characters of the text without secrets, with … if there are more.

    Like `redacted`, but a long text is cut first.
    """
    if len(text) <= length_max:
        clean = redacted(text)
        return clean if len(clean) <= length_max else f"{clean[:length_max]}…"
    beginning = text[:length_max]
    if not text[length_max].isspace():
        words = beginning.rsplit(maxsplit=1)
        last = words[-1] if words and not beginning[-1].isspace() else ""
        if _AUTHORITY in last:
            # The @ that ends the credentials may be in the part that was cut off.
            kept = len(beginning) - len(last) + last.index(_AUTHORITY) + len(_AUTHORITY)
            beginning = f"{beginning[:kept]}{_HIDDEN}"
    return f"{redacted(beginning)}…"


def _without_credentials(text: str) -> str:
    """Hide everything from ``://`` up to the last @ in each word.

    An unencoded password may hold @ and slashes, so this hides too much rather than too little. One pass: each search
    begins where the previous one ended.
    """
    pieces: list[str] = []
    done = word_end = last_at = 0
    at = text.find(_AUTHORITY)
    while at >= 0:
        begin = at + len(_AUTHORITY)
        if begin >= word_end:
            blank = _BLANK.search(text, begin)
            word_end = len(text) if blank is None else blank.start()
            last_at = text.rfind("@", begin, word_end)
        if last_at < begin:
            at = text.find(_AUTHORITY, word_end)
            continue
        special = _SPECIAL.search(text, begin)
        end = -1
        if special is not None and special[0] == ":":
            end = last_at
        elif special is not None and special[0] == "@":
            path = _PATH.search(text, begin)
            end = text.rfind("@", begin, word_end if path is None else path.start())
        if end >= 0:
            pieces += text[done:begin], _HIDDEN
            done = begin = end
        at = text.find(_AUTHORITY, begin)
    return "".join([*pieces, text[done:]])


def redacted_value(value: Any, deepest: int = _DEEPEST) -> Any:
    """Return ``value`` with all texts in it redacted.

    A value of another type is replaced by its redacted text if that text holds a secret.
    """
    if type(value) is str:  # the most frequent by far
        return redacted(value)
    match value:
        case None | bool() | int() | float():
            return value
        case str():
            return redacted(value)
        case bytes():
            shown = value.decode("utf-8", "replace")
            clean = redacted(shown)
            return value if clean == shown else clean
        case dict() if deepest:
            return {
                redacted(key) if isinstance(key, str) else key: redacted_value(item, deepest - 1)
                for key, item in value.items()
            }
        case list() | tuple() | set() | frozenset() if deepest:
            items = [redacted_value(item, deepest - 1) for item in value]
            return items if isinstance(value, list) else tuple(items)
        case _:
            shown = str(value)
            clean = redacted(shown)
            return value if clean == shown else clean


def kept_traceback(text: str | None) -> str | None:
    """Return the last `TRACEBACK_BYTES_MAX` bytes of ``text``, redacted, from the beginning of a line if one is near.

    None if there is no text. … marks the cut, and a secret that the cut would divide is left out as a whole.
    """
    tail = (text or "").replace("\0", "").encode("utf-8", "replace").decode().strip()
    if len(tail) > _SCANNED_MAX:
        # Drop up to the next blank: the rest of the word may be half a secret, which no pattern would match.
        _, _, tail = tail[-_SCANNED_MAX:].replace("\n", " \n").partition(" ")
        tail = f"…{tail}".replace(" \n", "\n")
    encoded = redacted(tail).encode()
    if len(encoded) <= TRACEBACK_BYTES_MAX:
        return encoded.decode() or None
    end = encoded[-(TRACEBACK_BYTES_MAX - 4) :].decode("utf-8", "ignore")
    _, newline, lines = end.partition("\n")
    return f"…\n{lines if newline and lines else end}"
