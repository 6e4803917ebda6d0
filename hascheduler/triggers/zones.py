"""Convert wall times of a zone to instants and back, in whole seconds, with its gaps and folds.

A wall time counts the seconds that a wall clock would show since 1970, so that calendar arithmetic is integer
arithmetic. In a *gap* the clock jumps ahead (wall times that do not exist), in a *fold* it is put back (wall times that
come twice). Zones come from the package ``tzdata`` alone (`hascheduler.model.values.zone_data`).
"""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

from tzlocal.windows_tz import win_tz

from hascheduler.errors import InvalidInput
from hascheduler.model.values.error_texts import near_names
from hascheduler.model.values.zone_data import read_zone, zone_names

DAY_S = 86_400
# Changes closer together than this would be missed; since 1970 the closest are a week apart (Boa Vista, 2000).
_PROBE_EVERY_S = 3 * DAY_S

_EXPECTED = "an IANA time zone such as Europe/Paris"
_REGIONS: Mapping[str, str] = {
    "acdt": "Australia/Adelaide", "acst": "Australia/Adelaide or Australia/Darwin", "adt": "America/Halifax",
    "aedt": "Australia/Sydney", "aest": "Australia/Sydney or Australia/Brisbane", "akdt": "America/Anchorage",
    "akst": "America/Anchorage", "art": "America/Argentina/Buenos_Aires", "ast": "America/Halifax or Asia/Riyadh",
    "awst": "Australia/Perth", "brt": "America/Sao_Paulo", "bst": "Europe/London or Asia/Dhaka",
    "cat": "Africa/Maputo", "cdt": "America/Chicago or America/Havana", "cest": "Europe/Paris",
    "clt": "America/Santiago", "cot": "America/Bogota", "cst": "America/Chicago, Asia/Shanghai or America/Havana",
    "ct": "America/Chicago", "eat": "Africa/Nairobi", "edt": "America/New_York", "eest": "Europe/Athens",
    "et": "America/New_York", "gst": "Asia/Dubai", "hdt": "America/Adak", "hkt": "Asia/Hong_Kong",
    "ict": "Asia/Bangkok", "idt": "Asia/Jerusalem", "ist": "Asia/Kolkata, Europe/Dublin or Asia/Jerusalem",
    "jst": "Asia/Tokyo", "kst": "Asia/Seoul", "mdt": "America/Denver", "mest": "Europe/Paris",
    "mesz": "Europe/Berlin", "mez": "Europe/Berlin", "msk": "Europe/Moscow", "mt": "America/Denver",
    "myt": "Asia/Kuala_Lumpur", "ndt": "America/St_Johns", "npt": "Asia/Kathmandu", "nst": "America/St_Johns",
    "nzdt": "Pacific/Auckland", "nzst": "Pacific/Auckland", "pdt": "America/Los_Angeles", "pet": "America/Lima",
    "pht": "Asia/Manila", "pkt": "Asia/Karachi", "pst": "America/Los_Angeles or Asia/Manila",
    "pt": "America/Los_Angeles", "sast": "Africa/Johannesburg", "sgt": "Asia/Singapore", "sst": "Pacific/Pago_Pago",
    "trt": "Europe/Istanbul", "wast": "Africa/Lagos", "wat": "Africa/Lagos", "west": "Europe/Lisbon",
    "wib": "Asia/Jakarta", "wit": "Asia/Jayapura", "wita": "Asia/Makassar",
}  # fmt: skip
"""Abbreviations in use that are not IANA names. One may stand for several regions."""
_OF_WINDOWS = {name.lower(): zone for name, zone in win_tz.items()}
"""The names of Windows, by the CLDR table."""


@dataclass(frozen=True, slots=True)
class OffsetChange:
    """A change of the zone's offset at ``at_s``."""

    at_s: int
    offset_before_s: int
    offset_after_s: int

    @property
    def is_gap(self) -> bool:
        return self.offset_after_s > self.offset_before_s

    @property
    def wall_before_s(self) -> int:
        """Return what the clock would have shown without the change."""
        return self.at_s + self.offset_before_s

    @property
    def wall_after_s(self) -> int:
        return self.at_s + self.offset_after_s


@lru_cache(1_024)
def zone_of(name: str) -> ZoneInfo:
    """Return the zone, in upper or lower case; raise `InvalidInput` (without a path) if there is none."""
    known = canonical_zone(name)
    if known is None:
        raise InvalidInput((), f"{name[:64]!r} is not a time zone", _expected_zone(name))
    try:
        return read_zone(known)
    except (ValueError, OSError):
        raise InvalidInput((), f"the data of {name[:64]!r} can't be read", "a zone of the IANA database") from None


def canonical_zone(name: str) -> str | None:
    """Return the zone's name as IANA spells it; None if there is no such zone."""
    return _known_zones().get(name.lower())


@lru_cache(1)
def _known_zones() -> Mapping[str, str]:
    """Return the zones by their names in lower case."""
    return {name.lower(): name for name in sorted(zone_names())}


def _expected_zone(name: str) -> str:
    """Return what would be right.

    Only misspelt regions are guessed by their letters: an abbreviation or an offset resembles others that mean
    something else.
    """
    low, known = name.strip().lower(), _known_zones()
    if low in _REGIONS:
        return f"a region, such as {_REGIONS[low]}"
    if low in _OF_WINDOWS:
        return _OF_WINDOWS[low]
    is_region = "/" in low and not any(sign.isdigit() for sign in low)
    near = near_names(low, known, 1) if is_region else []
    return known[near[0]] if near else _EXPECTED


def offset_s(zone: ZoneInfo, at_s: int) -> int:
    """Return what to add to the instant to get the wall time."""
    return offset_of(datetime.fromtimestamp(at_s, zone))


def offset_of(moment: datetime) -> int:
    """Return the offset, in seconds, of a moment that has a zone."""
    offset = moment.utcoffset()
    assert offset is not None
    return int(offset.total_seconds())


def wall_reached(zone: ZoneInfo, at_s: int) -> int:
    """Return the last wall time that the clock has shown by ``at_s``: in a second pass, the end of the first."""
    moment = datetime.fromtimestamp(at_s, zone)
    wall_s = at_s + offset_of(moment)
    if moment.fold:
        for fold in transitions(zone, at_s - DAY_S, at_s):
            wall_s = max(wall_s, fold.wall_before_s - 1)
    return wall_s


def first_instant(zone: ZoneInfo, wall_s: int) -> int:
    """Return when the clock first shows ``wall_s``; if it never does, the end of the gap around it."""
    moment = datetime.fromtimestamp(wall_s, UTC).replace(tzinfo=zone)
    before, after = moment.utcoffset(), moment.replace(fold=1).utcoffset()
    assert before is not None
    assert after is not None
    instant_s = wall_s - int(before.total_seconds())
    if after <= before or instant_s + offset_s(zone, instant_s) == wall_s:
        return instant_s
    return _bisect(zone, wall_s - int(after.total_seconds()), instant_s).at_s


def transitions(zone: ZoneInfo, after_s: int, until_s: int) -> list[OffsetChange]:
    """Return the changes after ``after_s`` through ``until_s``."""
    found: list[OffsetChange] = []
    for year in range(_year(after_s), _year(until_s) + 1):
        found += (one for one in _of_year(zone, year) if after_s < one.at_s <= until_s)
    return found


@dataclass(frozen=True, slots=True)
class OffsetSpan:
    """A span with one offset, from ``from_s`` until before ``to_s``; the next span may have the same offset."""

    from_s: int
    to_s: int
    offset_s: int


def span_at(zone: ZoneInfo, at_s: int) -> OffsetSpan:
    """Return the span around ``at_s``; it ends with the year at the latest."""
    starts, spans = _spans(zone, _year(at_s))
    return spans[bisect_right(starts, at_s) - 1]


@lru_cache(4_096)
def _spans(zone: ZoneInfo, year: int) -> tuple[list[int], list[OffsetSpan]]:
    begins_s, ends_s = _year_begins_s(year), _year_begins_s(year + 1)
    changes = _of_year(zone, year)
    starts = [begins_s, *(change.at_s for change in changes if change.at_s > begins_s)]
    spans = [
        OffsetSpan(from_s, to_s, offset_s(zone, from_s))
        for from_s, to_s in zip(starts, [*starts[1:], ends_s], strict=True)
    ]
    return starts, spans


@lru_cache(4_096)
def _of_year(zone: ZoneInfo, year: int) -> tuple[OffsetChange, ...]:
    begins_s, ends_s = _year_begins_s(year), _year_begins_s(year + 1)
    found = []
    low_s, low = begins_s - 1, offset_s(zone, begins_s - 1)
    for high_s in [*range(begins_s + _PROBE_EVERY_S, ends_s - 1, _PROBE_EVERY_S), ends_s - 1]:
        high = offset_s(zone, high_s)
        if high != low:
            found.append(_bisect(zone, low_s, high_s))
        low_s, low = high_s, high
    return tuple(found)


def _bisect(zone: ZoneInfo, low_s: int, high_s: int) -> OffsetChange:
    """Return the change in (low, high], whose offsets differ."""
    before, after = offset_s(zone, low_s), offset_s(zone, high_s)
    while high_s - low_s > 1:
        middle_s = (low_s + high_s) // 2
        if offset_s(zone, middle_s) == before:
            low_s = middle_s
        else:
            high_s = middle_s
    return OffsetChange(high_s, before, after)


def _year(at_s: int) -> int:
    return datetime.fromtimestamp(at_s, UTC).year


def _year_begins_s(year: int) -> int:
    return int(datetime(year, 1, 1, tzinfo=UTC).timestamp())
