"""Points in time and spans: integer milliseconds in the code, RFC 3339 and ``"1m30s"`` or ``1.5`` for people.

``WallMs`` counts from the Unix epoch and may jump; ``MonoMs`` only grows, and only within one process.
They are different types so that the two are never compared.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import NewType

from hascheduler.errors import InvalidInput

WallMs = NewType("WallMs", int)
MonoMs = NewType("MonoMs", int)

_EXPECTED = "an RFC 3339 instant with an offset, such as 2030-01-31T09:30:00Z"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
# A limit on everything: far enough for any schedule, near enough that sums of instants and spans stay in range.
LATEST_MS = WallMs(4_102_444_800_000)  # 2100-01-01T00:00:00Z


def parse_instant(text: str, path: tuple[str | int, ...] = ()) -> WallMs:
    """Return the instant in ``text``; raise `InvalidInput` for one without an offset, before 1970 or after 2099."""
    try:
        moment = datetime.fromisoformat(text.upper())  # RFC 3339 allows "t" and "z"
    except ValueError:
        raise InvalidInput(path, f"{text[:64]!r} is not an instant", _EXPECTED) from None
    if "T" not in text.upper() and " " not in text:
        raise InvalidInput(path, f"{text[:64]!r} is a date without a time", _EXPECTED)
    if moment.tzinfo is None:
        raise InvalidInput(path, f"{text[:64]!r} has no UTC offset", _EXPECTED)
    try:
        at_ms = (moment - _EPOCH) // _MILLISECOND
    except OverflowError:
        raise InvalidInput(path, f"{text[:64]!r} is out of range", _EXPECTED) from None
    if not 0 <= at_ms < LATEST_MS:
        raise InvalidInput(path, f"{text[:64]!r} is not between 1970 and 2099", _EXPECTED)
    return WallMs(at_ms)


def format_instant(at_ms: int) -> str:
    """Return RFC 3339 in UTC with milliseconds: ``2030-01-31T09:30:00.000Z``."""
    moment = datetime.fromtimestamp(at_ms // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{at_ms % 1000:03d}Z"


def to_datetime(at_ms: int) -> datetime:
    """Return ``at_ms`` as a BSON date, for the fields that the database itself reads (`expire_at`)."""
    return _EPOCH + timedelta(milliseconds=at_ms)


def from_datetime(at: datetime) -> int:
    """Return the instant of a date; the driver returns naive datetimes, which are UTC."""
    return (at.replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND


_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
# Longest unit first, so that "ms" is not read as minutes followed by a stray "s".
_PART = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)(ms|s|m|h|d|w)")
_EXPECTED_SPAN = 'a duration such as "90s", "1m30s" or "200ms", or a number of seconds'
LONGEST_MS = 100 * 366 * 86_400_000


def parse_duration(value: str | int | float, path: tuple[str | int, ...] = ()) -> int:
    """Return ``value`` in whole milliseconds, from zero to a century; raise `InvalidInput` for anything else."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InvalidInput(path, "not a duration", _EXPECTED_SPAN)
    total_ms = _from_text(value, path) if isinstance(value, str) else _from_seconds(value, path)
    if not 0 <= total_ms <= LONGEST_MS:
        raise InvalidInput(path, f"{str(value)[:64]!r} is not between 0 and 100 years", _EXPECTED_SPAN)
    return total_ms


def format_duration(span_ms: int) -> str:
    """Return the shortest text that `parse_duration` reads back: ``90000`` is ``"1m30s"``, ``0`` is ``"0s"``."""
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
            raise InvalidInput(path, f"{text[:64]!r} is not a duration", _EXPECTED_SPAN)
        total_ms += float(part[1]) * _UNITS_MS[part[2]]
        position = part.end()
    if not text:
        raise InvalidInput(path, "an empty text is not a duration", _EXPECTED_SPAN)
    return _whole(total_ms, text, path)


def _from_seconds(seconds: float, path: tuple[str | int, ...]) -> int:
    # Compared before the multiplication: an integer of a thousand digits would overflow a float.
    if not -LONGEST_MS <= seconds <= LONGEST_MS:  # NaN compares False, so it is refused too
        raise InvalidInput(path, "the number is not between 0 and 100 years in seconds", _EXPECTED_SPAN)
    return _whole(seconds * 1000, seconds, path)


def _whole(total_ms: float, value: object, path: tuple[str | int, ...]) -> int:
    rounded = round(total_ms)
    if total_ms != 0 and rounded == 0:
        raise InvalidInput(path, f"{str(value)[:64]!r} is shorter than a millisecond", _EXPECTED_SPAN)
    return rounded
