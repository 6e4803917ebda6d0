"""Instants and spans as people read them: ``Sun 28 Mar 2027``, ``03:00 +02:00``, ``in 3h 12m``.

Months and days are English whatever the locale, so that what is shown can be searched for.
"""

from datetime import UTC, datetime, timedelta

from hascheduler.model.instants import parse_instant

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


def utc_datetime(at_ms: int) -> datetime:
    """In UTC, without rounding."""
    return _EPOCH + timedelta(milliseconds=at_ms)


def day_text(day: datetime) -> str:
    """``Sun 28 Mar 2027``."""
    return f"{WEEKDAYS[day.weekday()]} {day.day} {_MONTHS[day.month - 1]} {day.year}"


def clock_text(at: datetime, *, finest: str = "minutes") -> str:
    """``03:00``, with seconds or milliseconds where ``finest`` says so."""
    return at.replace(tzinfo=None).isoformat(timespec=finest)[11:]


def offset_text(at: datetime) -> str:
    """``+02:00``."""
    return at.isoformat()[len(at.replace(tzinfo=None).isoformat()) :]


def finest_of(instants_ms: list[int]) -> str:
    """The coarsest precision, as `datetime.isoformat` names it, that shows all of them as they are."""
    if any(at_ms % 1_000 for at_ms in instants_ms):
        return "milliseconds"
    return "seconds" if any(at_ms % 60_000 for at_ms in instants_ms) else "minutes"


def relative_span(at_ms: int, now_ms: int) -> str:
    """How far from now, by its two largest units: ``in 3h 12m``, ``45s ago``, ``now``."""
    span = span_text(abs(at_ms - now_ms))
    if span == "0s":
        return "now"
    return f"in {span}" if at_ms > now_ms else f"{span} ago"


def span_text(span_ms: int) -> str:
    """The two largest units, rounded down: ``126d 3h``, ``59s``."""
    rest = span_ms // 1_000
    parts: list[str] = []
    for unit, size in _UNITS:
        count, rest = divmod(rest, size)
        if count or (parts and len(parts) < 2):
            parts.append(f"{count}{unit}" if count else "")
        if len(parts) == 2:
            break
    return " ".join(part for part in parts if part) or "0s"


def relative_text(instant: str | None, now_ms: int) -> str:
    """`relative_span` of an RFC 3339 text; a dash for none."""
    return "–" if instant is None else relative_span(parse_instant(instant), now_ms)
