"""Cron: wall times of a zone, and what happens to them when its clock changes.

The rules (the dialect is in `expressions`)::

    the hour field      a wall time that does not exist      a wall time that comes twice
    a number, a list    fires once, right after the gap      fires once, the first time
    begins with *       (real time) does not fire            (real time) fires both times

Several wall times in one gap are one fire. If the hour begins with a star, the expression fires every hour whatever the
clock does, as in Vixie cron.

Differences from CronSim 2.8, which follows Debian's cron, over ten years in five zones (the tests hold the list to be
exact):

1. CronSim also treats an expression whose *minute* begins with a star as real time. In a gap such an expression does
   not fire there at all; here it fires once after the gap (``*/30 2 * * *``). In a fold it fires in both passes there,
   here in the first.
2. In real time it misses the first time after a fold of half an hour (Lord Howe, ``0 */2 * * *``).
3. It misses the first hour of a day that begins with a gap (Apia on 26 September 2010, ``*/45 1-2 * * 0``).
"""

from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from zoneinfo import ZoneInfo

from hascheduler.errors import InvalidInput
from hascheduler.model.values.instants import LATEST_MS, WallMs
from hascheduler.schema.trigger import Cron, Interval
from hascheduler.triggers.expressions import interval_of, is_hourly, walls_of
from hascheduler.triggers.walls import Walls
from hascheduler.triggers.zones import DAY_S, canonical_zone, first_instant, span_at, transitions, wall_reached, zone_of

_LATEST_S = LATEST_MS // 1_000 - 1
_CACHED_MAX = 4_096
_MARGIN_S = 2 * DAY_S
"""More than any clock change."""


def read_pattern(expression: str, timezone: str, anchor_ms: WallMs) -> Cron | Interval:
    """Return the pattern written as cron: wall times with the zone's canonical name, or an interval for ``@every 90s``.

    An interval is the same in every zone. An expression that can't be read is kept as it is, for `check`.
    """
    with suppress(InvalidInput):
        every_ms = interval_of(expression)
        if every_ms is not None:
            return Interval(every_ms, anchor_ms)
    return Cron(expression, canonical_zone(timezone) or timezone)


def next_nominal(cron: Cron, after_ms: int) -> WallMs | None:
    """Return the first nominal time after ``after_ms``; raise `InvalidInput` if the expression or zone is invalid."""
    if after_ms >= LATEST_MS:
        return None
    return _read(cron.expression, cron.timezone).after(max(after_ms // 1_000, -1))


def latest_nominal(cron: Cron, through_ms: int) -> WallMs | None:
    """Return the newest nominal time at or before ``through_ms``."""
    if through_ms < 0:
        return None
    found = _read(cron.expression, cron.timezone).times.through(min(through_ms // 1_000, _LATEST_S))
    return None if found is None or found < 0 else WallMs(found * 1_000)


def count_nominal(cron: Cron, after_ms: int, through_ms: int) -> int:
    """Return the count after ``after_ms`` through ``through_ms``, in time that does not grow with it."""
    after_s, through_s = max(after_ms // 1_000, -1), min(through_ms // 1_000, _LATEST_S)
    return _read(cron.expression, cron.timezone).times.count(after_s, through_s) if after_s < through_s else 0


def follows_walls(cron: Cron) -> bool:
    """Return True if a repeated wall time fires once: not in UTC, nor if it fires every hour."""
    return cron.timezone != "UTC" and _read(cron.expression, cron.timezone).follows_walls


def is_any_between(cron: Cron, after_s: int, through_s: int) -> bool:
    """Return True if the expression names a wall time after ``after_s`` through ``through_s``."""
    found = walls_of(cron.expression).after(after_s)
    return found is not None and found <= through_s


def check(cron: Cron) -> None:
    """Raise `InvalidInput` at ``expression`` or ``timezone`` if it can't be read."""
    for path, read, text in (("timezone", zone_of, cron.timezone), ("expression", walls_of, cron.expression)):
        try:
            read(text)
        except InvalidInput as error:
            raise InvalidInput((path,), error.problem, error.expected) from None


@lru_cache(_CACHED_MAX)
def _read(expression: str, timezone: str) -> "_Searched":
    check(Cron(expression, timezone))
    walls, hourly = walls_of(expression), is_hourly(expression)
    kind = _RealTime if hourly else _FixedHours
    return _Searched(kind(walls, zone_of(timezone)), follows_walls=not (hourly and walls.in_every_hour))


class _Searched:
    """The times of one expression. Many schedules share it and wait for the same time, which is searched once."""

    def __init__(self, times: "_FixedHours | _RealTime", *, follows_walls: bool) -> None:
        self.times = times
        self.follows_walls = follows_walls
        # After every instant from the first until before the second comes `_known_ms`, which is the second in ms: one
        # object for all schedules that wait for it. Compiled code makes a new one of what can be no more than a number.
        self._known = (0, 0)
        self._known_ms: WallMs | None = None

    def after(self, after_s: int) -> WallMs | None:
        known_after_s, known_s = self._known
        if known_after_s <= after_s < known_s:
            return self._known_ms
        found = self.times.after(after_s)
        if found is None or found > _LATEST_S:
            return None
        self._known, self._known_ms = (after_s, found), WallMs(found * 1_000)
        return self._known_ms


class _FixedHours:
    """Each wall time once: the first time, or right after its gap.

    Instants grow with wall times, so the search is on the wall.
    """

    def __init__(self, walls: Walls, zone: ZoneInfo) -> None:
        self._walls = walls
        self._zone = zone

    def after(self, after_s: int) -> int | None:
        wall_s = self._walls.after(wall_reached(self._zone, after_s))
        return None if wall_s is None else first_instant(self._zone, wall_s)

    def through(self, through_s: int) -> int | None:
        wall_s = self._walls.through(wall_reached(self._zone, through_s))
        return None if wall_s is None else first_instant(self._zone, wall_s)

    def count(self, after_s: int, through_s: int) -> int:
        count = self._walls.count(wall_reached(self._zone, after_s), wall_reached(self._zone, through_s))
        for gap in transitions(self._zone, after_s, through_s):
            if gap.is_gap:
                # All wall times of the gap, and the one at its end, are one instant.
                count -= max(0, self._walls.count(gap.wall_before_s - 1, gap.wall_after_s) - 1)
        return count


class _RealTime:
    """Every instant at which the wall shows a time: searched by spans of one offset, in which walls are instants."""

    def __init__(self, walls: Walls, zone: ZoneInfo) -> None:
        self._walls = walls
        self._zone = zone

    def after(self, after_s: int) -> int | None:
        skipped_s = after_s
        while after_s < _LATEST_S:
            span = span_at(self._zone, after_s + 1)
            wall_s = self._walls.after(after_s + span.offset_s)
            if wall_s is None:
                return None
            if wall_s - span.offset_s < span.to_s:
                return wall_s - span.offset_s
            # From the second span on, nothing before that wall time can come again in a later fold.
            after_s, skipped_s = max(span.to_s - 1, skipped_s), wall_s - span.offset_s - _MARGIN_S
        return None

    def through(self, through_s: int) -> int | None:
        skipped_s = through_s
        while through_s >= 0:
            span = span_at(self._zone, through_s)
            wall_s = self._walls.through(through_s + span.offset_s)
            if wall_s is None:
                return None
            if wall_s - span.offset_s >= span.from_s:
                return wall_s - span.offset_s
            through_s, skipped_s = min(span.from_s - 1, skipped_s), wall_s - span.offset_s + _MARGIN_S
        return None

    def count(self, after_s: int, through_s: int) -> int:
        parts = self._parts(after_s, through_s)
        return sum(self._walls.count(from_s + offset, to_s + offset) for from_s, to_s, offset in parts)

    def _parts(self, after_s: int, through_s: int) -> Iterator[tuple[int, int, int]]:
        while after_s < through_s:
            span = span_at(self._zone, after_s + 1)
            end_s = min(span.to_s - 1, through_s)
            yield after_s, end_s, span.offset_s
            after_s = end_s
