"""Parts of error messages: the given value, quoted, and the known name that a wrong one resembles."""

from collections.abc import Collection
from difflib import get_close_matches

from hascheduler.model.values.redaction import redacted_beginning

QUOTED_LENGTH_MAX = 64
_NAME_LENGTH_MAX = 64
"""Longer names resemble no known one, and comparing them would take long."""


def quoted(value: object, length_max: int = QUOTED_LENGTH_MAX) -> str:
    """Return the repr of a scalar, shortened to ``length_max`` characters; of an object or a list only its type."""
    match value:
        case dict():
            return "an object"
        case list():
            return "a list"
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            text = repr(value[:length_max])
            if len(value) <= length_max and len(text) <= length_max:
                return text
            # Cut the text, but not in the middle of a secret.
            text = repr(redacted_beginning(value, length_max).removesuffix("…"))
        case _:
            text = repr(value)
            if len(text) <= length_max:
                return text
    return f"{text[: length_max - 4]}…"


def expected_name(given: str, known: Collection[str], otherwise: str = "") -> str:
    """Return the one of ``known`` nearest to ``given``; if none is near, ``otherwise``, or else all of them."""
    near = near_names(given, known, 1)
    if near:
        return near[0]
    if otherwise:
        return otherwise
    return f"one of {', '.join(known)}" if known else "none"


def near_names(given: str, known: Collection[str], count_max: int) -> list[str]:
    """Return those of ``known`` that resemble ``given``, the nearest first."""
    return get_close_matches(given, known, count_max) if len(given) <= _NAME_LENGTH_MAX else []
