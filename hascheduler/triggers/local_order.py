"""Give each local time one verdict, even if leaders differ in their time-zone data.

Another release of the data may put a local time at another instant. So a schedule keeps beside its cursor the zone
offsets there, by the data of the leader that set it (`hascheduler.schema.schedule.ZoneOffsets`). If the present
leader's data differ, it treats the difference as a clock change at the cursor, and does what `cron` does then::

    cursor    by the data that set it    by one's own    as if the clock    the wall times
    16:00Z    09:00                      08:00           was put back       through 09:00 do not come again
    17:00Z    09:00                      10:00           jumped ahead       in between, and 10:00, are one time: at once

Expressions that run every hour follow instants, not the wall; so do intervals, lists of times, and UTC.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from hascheduler.model.values.instants import WallMs
from hascheduler.schema.schedule import ScheduleRef, ZoneOffsets
from hascheduler.schema.trigger import AnyOf, Cron, Once, Single, Trigger
from hascheduler.triggers.cron import follows_walls, is_any_between
from hascheduler.triggers.zones import first_instant, wall_reached, zone_of

Piece = tuple[Trigger, int, int]
"""A trigger whose times after the first instant through the second are in force."""


def offset_zones(schedule: ScheduleRef) -> Sequence[str]:
    """Return the zones whose offsets a schedule keeps beside its cursor: nearly always one or none."""
    triggers: Iterable[Trigger] = (schedule.trigger, *[period.trigger for period in schedule.past])
    parts = [part for trigger in triggers for part in trigger.parts]
    return list(dict.fromkeys(part.timezone for part in parts if isinstance(part, Cron) and follows_walls(part)))


def offsets_at(zones: Sequence[str], at_ms: int, cursor_ms: int, before: ZoneOffsets) -> ZoneOffsets:
    """Return the offsets for a cursor that moves from ``cursor_ms`` to ``at_ms``; they were ``before``.

    They follow this process's data, but no past wall time may come again.
    """
    if not zones:
        return ()
    known = dict(before)
    found = []
    for zone in zones:
        offset_s = _offset_s(zone, at_ms // 1_000)
        if zone in known:
            offset_s = max(offset_s, cursor_ms // 1_000 + known[zone] - at_ms // 1_000)
        found.append((zone, offset_s))
    return _shared(tuple(found))


def keeps_order(trigger: Trigger, cursor_ms: int, offsets: ZoneOffsets) -> bool:
    """Return True if this process's data agree with ``offsets``: then its times after the cursor are in force."""
    if not offsets:
        return True
    # A start asks this of all schedules: most are of one zone, whose offset is right.
    if len(offsets) == 1 and offsets[0][1] == _offset_s(offsets[0][0], cursor_ms // 1_000):
        return True
    return all(offset_s == _offset_s(part.timezone, cursor_ms // 1_000) for part, offset_s in _walled(trigger, offsets))


def pieces(trigger: Trigger, since_ms: int, cursor_ms: int, offsets: ZoneOffsets, through_ms: int) -> Iterator[Piece]:
    """Return the undecided times after ``since_ms`` through ``through_ms`` that are in force, in order."""
    after_ms = max(since_ms, cursor_ms)
    if keeps_order(trigger, cursor_ms, offsets):
        yield trigger, after_ms, through_ms
        return
    begins: dict[Single, int] = {}
    jumped = False
    for part, offset_s in _walled(trigger, offsets):
        zone, cursor_s = zone_of(part.timezone), cursor_ms // 1_000
        over_s, own_s = cursor_s + offset_s, wall_reached(zone, cursor_s)
        if over_s > own_s:
            begins[part] = first_instant(zone, over_s) * 1_000
        elif cursor_ms > since_ms:
            jumped = jumped or is_any_between(part, over_s, own_s)
    if jumped:
        yield replace(trigger, pattern=Once(WallMs(after_ms + 1))), after_ms, min(after_ms + 1, through_ms)
        after_ms += 1
    for end_ms in sorted({through_ms, *(at_ms for at_ms in begins.values() if at_ms < through_ms)}):
        begun = tuple(part for part in trigger.parts if begins.get(part, 0) <= after_ms)
        if begun and after_ms < end_ms:
            yield _of_parts(trigger, begun), after_ms, end_ms
        after_ms = max(after_ms, end_ms)


def over_through_ms(schedule: ScheduleRef) -> int:
    """Return the instant, by this process's data, up to which the cursor has passed all wall times."""
    cursor_s = schedule.cursor_ms // 1_000
    over = [
        first_instant(zone_of(part.timezone), cursor_s + offset_s) * 1_000
        for part, offset_s in _walled(schedule.trigger, schedule.offsets)
        if offset_s < _offset_s(part.timezone, cursor_s)
    ]
    return min([schedule.cursor_ms, *over])


def _of_parts(trigger: Trigger, parts: tuple[Single, ...]) -> Trigger:
    if len(parts) == len(trigger.parts):
        return trigger
    return replace(trigger, pattern=parts[0] if len(parts) == 1 else AnyOf(parts))


def _walled(trigger: Trigger, offsets: ZoneOffsets) -> Iterator[tuple[Cron, int]]:
    known = dict(offsets)
    for part in trigger.parts:
        if isinstance(part, Cron) and part.timezone in known and follows_walls(part):
            yield part, known[part.timezone]


@lru_cache(4_096)
def _offset_s(zone: str, at_s: int) -> int:
    return wall_reached(zone_of(zone), at_s) - at_s


@lru_cache(4_096)
def _shared(offsets: ZoneOffsets) -> ZoneOffsets:
    return offsets
