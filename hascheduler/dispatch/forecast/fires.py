"""In which minutes each schedule is going to fire, once for all schedules that fire in the same minutes.

Owner of what is known of the triggers of one forecast. Times that are nearer to each other than a minute are counted
by the hour and spread evenly in it. The work of one forecast is bounded: of cron expressions beyond `CRONS_MAX` nothing
is known.
"""

from collections.abc import Mapping

from hascheduler.dispatch.forecast.queueing import STEP_MS
from hascheduler.errors import InvalidInput
from hascheduler.model.calendar import Calendar
from hascheduler.model.schedule import ScheduleRef
from hascheduler.model.trigger import Cron, Interval, Trigger
from hascheduler.model.values.instants import LATEST_MS
from hascheduler.triggers import count_firing, next_firing, on_calendars

CRONS_MAX = 4_000
"""A cron expression is read once, and no more of them are kept: to read one takes as long as to forecast a hundred
schedules."""
_HOUR_MS = 3_600_000

Minutes = tuple[tuple[int, int], ...]
"""(step, fires) in order; steps count from the first minute of the forecast."""
Key = tuple[int, int, int]


def evenly(count: int, parts: int, part: int) -> int:
    """How many of ``count`` belong to the part of that number, from 0, when they are spread evenly; in all ``count``.

    One alone belongs to the middle.
    """
    return (count * (part + 1) + parts // 2) // parts - (count * part + parts // 2) // parts


class FiresAhead:
    """The fires after ``now`` through ``until_ms``, from the minute ``origin`` on (counted from 1970)."""

    def __init__(self, now: int, until_ms: int, calendars: Mapping[str, Calendar]) -> None:
        self.origin = now // STEP_MS
        self.steps = until_ms // STEP_MS - self.origin + 1
        self._now = now
        self._until_ms = min(until_ms, LATEST_MS - 1)
        self._calendars = calendars
        self._minutes: dict[Key, Minutes] = {}
        self._unknown: set[Key] = set()
        self._jitter: dict[Key, int] = {}
        self._jittered: dict[Trigger, Trigger] = {}
        self._crons: set[Cron] = set()

    def key(self, schedule: ScheduleRef) -> Key | None:
        """Schedules of one key fire in the same minutes; None: it is paused, has fired as often as it may, or its times
        are not known."""
        if schedule.paused_at_ms is not None:
            return None
        trigger, pattern, after_ms = schedule.trigger, schedule.trigger.pattern, self._now
        if schedule.cursor_ms > after_ms or schedule.since_ms > after_ms:  # of a leader whose clock is ahead
            after_ms = max(schedule.cursor_ms, schedule.since_ms)
        if trigger.jitter_ms >= STEP_MS:
            # Equal ones are one, as jitter spreads the jobs of all schedules that have it.
            trigger = self._jittered.setdefault(trigger, trigger)
        if trigger.max_fires is not None:
            left = trigger.max_fires - schedule.tally.fired
            if left <= 0:
                return None
            key = (id(trigger), after_ms, left)
        elif (
            isinstance(pattern, Interval)
            and pattern.every_ms % STEP_MS == 0
            and not trigger.jitter_ms
            and _is_plain(trigger)
        ):
            # The minutes follow from that of the anchor, and many schedules share them.
            key = (-pattern.every_ms, after_ms, pattern.anchor_ms % pattern.every_ms // STEP_MS)
        else:
            key = (id(trigger), after_ms, -1)
        if key not in self._minutes:
            found = self._minutes_of(trigger, after_ms, key[2] if key[0] >= 0 else -1)
            if found is None:
                self._unknown.add(key)
            self._minutes[key] = found or ()
            if trigger.jitter_ms >= STEP_MS:
                self._jitter[key] = trigger.jitter_ms // STEP_MS + 1
        return key

    def minutes(self, key: Key) -> Minutes:
        """The minutes of the nominal times."""
        return self._minutes[key]

    def spread(self, key: Key) -> int:
        """Over how many minutes jitter spreads the jobs of one nominal time."""
        return self._jitter.get(key, 1)

    def is_unknown(self, key: Key) -> bool:
        """Whether nothing is known of its times: a calendar is missing, or there are too many cron expressions."""
        return key in self._unknown

    def _minutes_of(self, trigger: Trigger, after_ms: int, left: int) -> Minutes | None:
        pattern = trigger.pattern
        if isinstance(pattern, Interval) and pattern.every_ms >= STEP_MS and _is_plain(trigger):
            return self._at_intervals(pattern, after_ms)
        for part in trigger.parts:
            if isinstance(part, Cron) and part not in self._crons:
                if len(self._crons) >= CRONS_MAX:
                    return None
                self._crons.add(part)
        try:
            found = self._found(on_calendars(trigger, self._calendars), after_ms)
        except InvalidInput:  # written by hand, or a calendar is missing: it does not fire
            return None
        return found if left < 0 else _first(found, left)

    def _at_intervals(self, interval: Interval, after_ms: int) -> Minutes:
        every_ms, origin = interval.every_ms, self.origin
        first_ms = interval.anchor_ms + ((after_ms - interval.anchor_ms) // every_ms + 1) * every_ms
        return tuple([(at_ms // STEP_MS - origin, 1) for at_ms in range(first_ms, self._until_ms + 1, every_ms)])

    def _found(self, trigger: Trigger, after_ms: int) -> Minutes:
        until_ms = self._until_ms
        count = count_firing(trigger, after_ms + 1, until_ms)
        if count * STEP_MS > until_ms - after_ms:
            return self._by_the_hour(trigger, after_ms)
        found: list[tuple[int, int]] = []
        at_ms = next_firing(trigger, after_ms)
        while at_ms is not None and at_ms <= until_ms:
            step = at_ms // STEP_MS - self.origin
            if found and found[-1][0] == step:
                found[-1] = (step, found[-1][1] + 1)
            else:
                found.append((step, 1))
            at_ms = next_firing(trigger, at_ms)
        return tuple(found)

    def _by_the_hour(self, trigger: Trigger, after_ms: int) -> Minutes:
        found: list[tuple[int, int]] = []
        while after_ms < self._until_ms:
            through_ms = min((after_ms + 1) // _HOUR_MS * _HOUR_MS + _HOUR_MS - 1, self._until_ms)
            count = count_firing(trigger, after_ms + 1, through_ms)
            first, last = (after_ms + 1) // STEP_MS, through_ms // STEP_MS
            for step in range(first, last + 1):
                here = evenly(count, last - first + 1, step - first)
                if here:
                    found.append((step - self.origin, here))
            after_ms = through_ms
        return tuple(found)


def _is_plain(trigger: Trigger) -> bool:
    return (
        trigger.start_at_ms is None
        and trigger.end_at_ms is None
        and trigger.max_fires is None
        and not trigger.exclude
        and trigger.calendars is None
    )


def _first(minutes: Minutes, left: int) -> Minutes:
    """The first ``left`` fires."""
    found: list[tuple[int, int]] = []
    for step, count in minutes:
        if left <= 0:
            break
        found.append((step, min(count, left)))
        left -= count
    return tuple(found)
