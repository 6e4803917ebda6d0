"""Instants and spans as people read them: ``2030-01-31 10:30:00 CET``, ``Sun 28 Mar 2027``, ``in 3h 12m``.

Instants are shown in the reader's zone, and each names its zone: the zone of ``TZ``, else of the machine, or UTC with
``--utc``. In UTC they have the form that options take, ``2030-01-31T09:30:00Z``. Output for programs (``--json``,
manifests) is never changed. Months and days are English in every locale, so that output can be searched.

Owner of ``--utc``.
"""

import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from hascheduler.cli.options import option
from hascheduler.clock import SystemClock
from hascheduler.errors import InvalidInput
from hascheduler.model.values.instants import parse_instant

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo  # most commands show no instants

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))
_INSTANT = re.compile(r"\b[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{3})?Z")
_UTC_NAMES = frozenset({"Etc/UTC", "Etc/UCT", "Etc/Universal", "Etc/Zulu", "UCT", "Universal", "Zulu"})
_LOCALTIME = "/etc/localtime"
_OF_ZONES = "/zoneinfo/"

_given: dict[str, bool] = {"utc": False}

Utc = Annotated[bool, option("--utc", "Show times in UTC instead of the time zone of TZ or this machine")]


def set_utc(utc: bool) -> None:
    """Set the option that precedes the command."""
    _given["utc"] = utc


def reader_zone() -> "ZoneInfo":
    """Return the zone in which instants are shown; UTC if neither TZ nor the machine names one."""
    from zoneinfo import ZoneInfo

    from hascheduler.model.values.zone_data import read_zone

    name = "UTC" if _given["utc"] else os.environ.get("TZ")
    try:
        if name is None:
            path = Path(_LOCALTIME).resolve()
            name = str(path).rpartition(_OF_ZONES)[2]
            if not name:  # a copy, which does not name its zone
                with path.open("rb") as file:
                    return ZoneInfo.from_file(file, key="local")
        name = name.removeprefix(":")
        return read_zone("UTC" if name in _UTC_NAMES else name)
    except (KeyError, ValueError, OSError):
        return read_zone("UTC")


def instant_text(instant: str | None) -> str:
    """Return an RFC 3339 text as it is shown: ``2030-01-31 10:30:00 CET``; a dash for None, other texts as they are."""
    if instant is None:
        return "–"
    try:
        at_ms = parse_instant(instant)
    except InvalidInput:
        return instant
    local = utc_datetime(at_ms).astimezone(reader_zone())
    finest = "milliseconds" if at_ms % 1_000 else "seconds"
    if _is_utc(local):
        return local.replace(tzinfo=None).isoformat(timespec=finest) + "Z"
    return f"{local.date()} {clock_text(local, finest=finest)} {local.tzname()}"


def time_of_day_text(instant: str) -> str:
    """Return ``10:30:00.250 CET``; in UTC ``09:30:00.250Z``."""
    local = utc_datetime(parse_instant(instant)).astimezone(reader_zone())
    return clock_text(local, finest="milliseconds") + ("Z" if _is_utc(local) else f" {local.tzname()}")


def with_instants_shown(text: str) -> str:
    """Return a sentence, from a replica or from here, with the `instant_text` of each UTC instant in it."""
    return _INSTANT.sub(lambda found: instant_text(found[0]), text)


def _is_utc(at: datetime) -> bool:
    return at.tzname() == "UTC"


def utc_datetime(at_ms: int) -> datetime:
    """Return the instant in UTC, without rounding."""
    return _EPOCH + timedelta(milliseconds=at_ms)


def day_text(day: datetime) -> str:
    """Return ``Sun 28 Mar 2027``."""
    return f"{WEEKDAYS[day.weekday()]} {day.day} {_MONTHS[day.month - 1]} {day.year}"


def clock_text(at: datetime, *, finest: str = "minutes") -> str:
    """Return ``03:00``, with seconds or milliseconds if ``finest`` asks for them."""
    return at.replace(tzinfo=None).isoformat(timespec=finest)[11:]


def offset_text(at: datetime) -> str:
    """Return ``+02:00``."""
    return at.isoformat()[len(at.replace(tzinfo=None).isoformat()) :]


def finest_of(instants_ms: list[int]) -> str:
    """Return the coarsest precision, as `datetime.isoformat` names it, that shows all instants exactly."""
    if any(at_ms % 1_000 for at_ms in instants_ms):
        return "milliseconds"
    return "seconds" if any(at_ms % 60_000 for at_ms in instants_ms) else "minutes"


def span_text(span_ms: int) -> str:
    """Return the two largest units, rounded down: ``126d 3h``, ``59s``."""
    rest = span_ms // 1_000
    parts: list[str] = []
    for unit, size in _UNITS:
        count, rest = divmod(rest, size)
        if count or parts:
            parts.append(f"{count}{unit}" if count else "")
    return " ".join(filter(None, parts[:2])) or "0s"


def relative_text(instant: str | None) -> str:
    """Return the distance from now in its two largest units: ``in 3h 12m``, ``45s ago``, ``now``; a dash for None."""
    if instant is None:
        return "–"
    ahead_ms = parse_instant(instant) - SystemClock().wall_ms()
    span = span_text(abs(ahead_ms))
    if span == "0s":
        return "now"
    return f"in {span}" if ahead_ms > 0 else f"{span} ago"
