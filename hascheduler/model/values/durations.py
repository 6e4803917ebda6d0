"""Spans of time as people write them (``"1m30s"``, ``"200ms"``, ``1.5``) and as the code keeps them (integer ms)."""

import re

from hascheduler.errors import InvalidInput

_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
# Longest unit first, so that "ms" is not read as minutes followed by a stray "s".
_PART = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)(ms|s|m|h|d|w)")
_EXPECTED = 'a duration such as "90s", "1m30s" or "200ms", or a number of seconds'
LONGEST_MS = 100 * 366 * 86_400_000


def parse_duration(value: str | int | float, path: tuple[str | int, ...] = ()) -> int:
    """``value`` in whole milliseconds, never negative, at most a century; anything else is an `InvalidInput`."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InvalidInput(path, "not a duration", _EXPECTED)
    total_ms = _from_text(value, path) if isinstance(value, str) else _from_seconds(value, path)
    if not 0 <= total_ms <= LONGEST_MS:
        raise InvalidInput(path, f"{str(value)[:64]!r} is not between 0 and 100 years", _EXPECTED)
    return total_ms


def format_duration(span_ms: int) -> str:
    """The shortest text that `parse_duration` reads back: ``90000`` is ``"1m30s"``, ``0`` is ``"0s"``."""
    parts = []
    rest = span_ms
    for unit in ("d", "h", "m", "s", "ms"):
        count, rest = divmod(rest, _UNITS_MS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def _from_text(text: str, path: tuple[str | int, ...]) -> int:
    position = 0
    total_ms = 0.0
    while position < len(text):
        part = _PART.match(text, position)
        if part is None:
            raise InvalidInput(path, f"{text[:64]!r} is not a duration", _EXPECTED)
        total_ms += float(part[1]) * _UNITS_MS[part[2]]
        position = part.end()
    if not text:
        raise InvalidInput(path, "an empty text is not a duration", _EXPECTED)
    return _whole(total_ms, text, path)


def _from_seconds(seconds: float, path: tuple[str | int, ...]) -> int:
    # Compared before the multiplication: an integer of a thousand digits would overflow a float.
    if not -LONGEST_MS <= seconds <= LONGEST_MS:  # not a number compares False, so it is refused too
        raise InvalidInput(path, "the number is not between 0 and 100 years in seconds", _EXPECTED)
    return _whole(seconds * 1000, seconds, path)


def _whole(total_ms: float, value: object, path: tuple[str | int, ...]) -> int:
    rounded = round(total_ms)
    if total_ms != 0 and rounded == 0:
        raise InvalidInput(path, f"{str(value)[:64]!r} is shorter than a millisecond", _EXPECTED)
    return rounded
