"""Points in time: integer milliseconds, and RFC 3339 where people read them.

``WallMs`` counts from the Unix epoch and may jump; ``MonoMs`` only grows, and only within one process.
They are different types so that the one is never compared with the other.
"""

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
    """The instant that ``text`` names; a time without an offset, or before 1970 or after 2099, is an `InvalidInput`."""
    try:
        moment = datetime.fromisoformat(text.upper())  # RFC 3339 allows "t" and "z"
    except ValueError:
        raise InvalidInput(path, f"{text[:64]!r} is not an instant", _EXPECTED) from None
    if "T" not in text.upper() and " " not in text:
        raise InvalidInput(path, f"{text[:64]!r} is a date without a time", _EXPECTED)
    if moment.tzinfo is None:
        raise InvalidInput(path, f"{text[:64]!r} has no offset, so it names no instant", _EXPECTED)
    try:
        at_ms = (moment - _EPOCH) // _MILLISECOND
    except OverflowError:
        raise InvalidInput(path, f"{text[:64]!r} is out of range", _EXPECTED) from None
    if not 0 <= at_ms < LATEST_MS:
        raise InvalidInput(path, f"{text[:64]!r} is not between 1970 and 2099", _EXPECTED)
    return WallMs(at_ms)


def format_instant(at_ms: int) -> str:
    """RFC 3339 in UTC with milliseconds: ``2030-01-31T09:30:00.000Z``."""
    moment = datetime.fromtimestamp(at_ms // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{at_ms % 1000:03d}Z"


def to_datetime(at_ms: int) -> datetime:
    """``at_ms`` as a BSON date, for the fields that the database itself reads (`expire_at`)."""
    return _EPOCH + timedelta(milliseconds=at_ms)


def from_datetime(at: datetime) -> int:
    """The reverse; the driver returns naive datetimes, which are UTC."""
    return (at.replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND
