"""The nominal times of a schedule that are in force and undecided: the trigger periods after its cursor, in order.

The times of one period have one trigger, and are paused or not. An exclusion window makes periods of its own, and so
does each day that calendars leave out: its times are decided when it is over, so an edit of a calendar changes nothing
about the days before. Here "an edit is not retroactive" is implemented once: for the core, which decides the times, for
the edits, which must keep undecided times, and for the API, which shows them.
"""

from bisect import bisect_right
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hascheduler.model.values.frozen import fast_frozen
from hascheduler.model.values.instants import LATEST_MS, WallMs
from hascheduler.model.verdict import FireCounts, Verdict
from hascheduler.schema.schedule import ScheduleRef, TriggerPeriod, ZoneOffsets
from hascheduler.schema.trigger import Trigger
from hascheduler.triggers import count_nominal, day_part, due_ms, latest_nominal, next_nominal, run_until
from hascheduler.triggers.local_order import keeps_order, pieces

_AT_ONCE_MS = 31 * 86_400_000
_COUNTED_AT_ONCE_MS = 366 * 86_400_000

UndecidedBecause = Literal["due", "paused", "excluded"]
"""What an undecided time waits for: a leader, which decides it at once; a resume; the end of its exclusion window."""


@fast_frozen
@dataclass(frozen=True, slots=True)
class UndecidedTimes:
    """The nominal times of ``trigger`` after ``after_ms`` through ``through_ms``; ``verdict`` if that is known.

    ``goes_on`` if the window or the day that leaves them out is not over at ``through_ms``.
    """

    trigger: Trigger
    after_ms: WallMs
    through_ms: WallMs
    verdict: Verdict | None = None
    goes_on: bool = False

    def first(self) -> WallMs | None:
        nominal_ms: Any = next_nominal(self.trigger, self.after_ms)  # kept as it is, see `Timers.set`
        return nominal_ms if nominal_ms is not None and nominal_ms <= self.through_ms else None

    def last(self) -> WallMs | None:
        nominal_ms = latest_nominal(self.trigger, self.through_ms)
        return nominal_ms if nominal_ms is not None and nominal_ms > self.after_ms else None

    def count(self) -> int:
        return count_nominal(self.trigger, self.after_ms, self.through_ms)

    def is_exhausted(self, tally: FireCounts) -> bool:
        """Return True if the schedule has fired as often as it may, so that these times are no longer in force."""
        return _is_exhausted(self.trigger, tally)


@dataclass(frozen=True, slots=True)
class UndecidedSummary:
    """How many nominal times have no verdict yet, the first of them, and what they wait for.

    ``because`` is ``due`` if any of them waits for a leader alone; otherwise it is what the newest of them waits for.
    """

    count: int
    since_ms: WallMs | None
    because: UndecidedBecause | None


def undecided(
    schedule: ScheduleRef, cursor_ms: int, through_ms: int, offsets: ZoneOffsets = ()
) -> Iterable[UndecidedTimes]:
    """Return the undecided times after ``cursor_ms`` through ``through_ms``, in order; some of the parts may be empty.

    ``offsets`` are those stored with the cursor; without them, this replica's own zone data count as those by which it
    was set. While the schedule is paused, the times since the pause are left out: they are decided when it is resumed.
    """
    if not _is_plain(schedule) or not keeps_order(schedule.trigger, cursor_ms, offsets):
        return _of_periods(schedule, cursor_ms, through_ms, offsets)
    after_ms = max(cursor_ms, schedule.since_ms)
    return (UndecidedTimes(schedule.trigger, WallMs(after_ms), WallMs(through_ms)),) if after_ms < through_ms else ()


def next_decision_ms(schedule: ScheduleRef, cursor_ms: int, tally: FireCounts, offsets: ZoneOffsets = ()) -> Any | None:
    """Return when the first undecided time after ``cursor_ms`` is due; None if there is no such time.

    If it will not fire anyway, return when its period is over. ``tally`` counts what was decided until then;
    ``offsets`` as for `undecided`. `Any`, so that the instant stays the object that schedules of one cron expression
    share (see `Timers.set`).
    """
    if _is_plain(schedule) and keeps_order(schedule.trigger, cursor_ms, offsets):
        # As below, without an object for its one period: a start needs this for all schedules, each fire for its own.
        trigger, after_ms = schedule.trigger, max(cursor_ms, schedule.since_ms)
        return None if _is_exhausted(trigger, tally) else _due(schedule, trigger, next_nominal(trigger, after_ms))
    for times in _of_periods(schedule, cursor_ms, LATEST_MS, offsets):
        first_ms: Any = None if times.is_exhausted(tally) else times.first()
        if first_ms is not None:
            return _due(schedule, times.trigger, first_ms) if times.verdict is None else times.through_ms + 1
    return None


def _due(schedule: ScheduleRef, trigger: Trigger, nominal_ms: Any | None) -> Any | None:
    """Return the due instant; without jitter it is the same object."""
    return nominal_ms if nominal_ms is None or not trigger.jitter_ms else due_ms(schedule.name, trigger, nominal_ms)


def _is_exhausted(trigger: Trigger, tally: FireCounts) -> bool:
    return trigger.max_fires is not None and tally.fired >= trigger.max_fires


def _is_plain(schedule: ScheduleRef) -> bool:
    """Return True if all its undecided times are in one period, in which they fire, as in nearly all schedules."""
    trigger = schedule.trigger
    is_divided = schedule.past or trigger.exclude or trigger.calendars is not None
    return not is_divided and schedule.paused_at_ms is None


def summarize_undecided(schedule: ScheduleRef, now: WallMs) -> Generator[None, None, UndecidedSummary]:
    """Return a summary of the nominal times through ``now`` without a verdict, those since a pause included.

    Yield after each period and each year, as a pause may be long.
    """
    count, since_ms = 0, None
    because: UndecidedBecause | None = None
    for times, reason in _undecided_with_reason(schedule, now):
        yield
        first_ms = times.first()
        if first_ms is None:
            continue
        for after_ms in range(times.after_ms, times.through_ms, _COUNTED_AT_ONCE_MS):
            through_ms = min(after_ms + _COUNTED_AT_ONCE_MS, times.through_ms)
            count += count_nominal(times.trigger, after_ms, through_ms)
            yield
        since_ms = first_ms if since_ms is None else since_ms
        because = because if because == "due" else reason
    return UndecidedSummary(count, since_ms, because)


def decided_through_ms(schedule: ScheduleRef) -> int:
    """Return the instant after which its present trigger has undecided times.

    It is the cursor, unless an edit, or the zone data by which the cursor was set, put it later.
    """
    for _, after_ms, _ in pieces(schedule.trigger, schedule.since_ms, schedule.cursor_ms, schedule.offsets, LATEST_MS):
        return after_ms
    return LATEST_MS


def may_still_fire(schedule: ScheduleRef, nominal_times: Sequence[WallMs], now: WallMs) -> set[WallMs]:
    """Return the ``nominal_times`` (ascending) through ``now`` that a leader has yet to decide, and may let fire."""
    found: set[WallMs] = set()
    for times, _ in _undecided_with_reason(schedule, now):
        if times.verdict is None:
            first, end = (bisect_right(nominal_times, at_ms) for at_ms in (times.after_ms, times.through_ms))
            found.update(at for at in nominal_times[first:end] if next_nominal(times.trigger, at - 1) == at)
    return found


def _undecided_with_reason(schedule: ScheduleRef, now: WallMs) -> Iterator[tuple[UndecidedTimes, UndecidedBecause]]:
    """Yield the open times through ``now`` with what they wait for; after a pause, they wait only for a leader."""
    for times in undecided(schedule, schedule.cursor_ms, now, schedule.offsets):
        if not times.is_exhausted(schedule.tally):
            yield times, "excluded" if times.verdict is Verdict.EXCLUDED else "due"
    if schedule.paused_at_ms is not None:
        # The resume decides what happens to the times since the pause.
        after_ms = WallMs(max(schedule.cursor_ms, schedule.since_ms, schedule.paused_at_ms))
        times = UndecidedTimes(schedule.trigger, after_ms, now, Verdict.PAUSED)
        if not times.is_exhausted(schedule.tally):
            yield times, "paused"


def _of_periods(
    schedule: ScheduleRef, cursor_ms: int, through_ms: int, offsets: ZoneOffsets
) -> Iterator[UndecidedTimes]:
    for period in _periods(schedule, through_ms):
        last_ms = min(through_ms, period.through_ms)
        for trigger, after_ms, until_ms in pieces(period.trigger, period.since_ms, cursor_ms, offsets, last_ms):
            if after_ms >= until_ms:
                continue
            if period.paused:
                yield UndecidedTimes(trigger, WallMs(after_ms), WallMs(until_ms), Verdict.PAUSED)
            elif not trigger.exclude:
                yield from _by_days(UndecidedTimes(trigger, WallMs(after_ms), WallMs(until_ms)))
            else:
                for times in _without_windows(trigger, after_ms, until_ms):
                    yield from _by_days(times)


def _periods(schedule: ScheduleRef, through_ms: int) -> Iterator[TriggerPeriod]:
    yield from schedule.past
    until_ms = schedule.paused_at_ms if schedule.paused_at_ms is not None else through_ms
    yield TriggerPeriod(schedule.trigger, schedule.since_ms, WallMs(until_ms))


def _without_windows(trigger: Trigger, after_ms: int, until_ms: int) -> Iterator[UndecidedTimes]:
    for window in trigger.exclude:
        # A window includes its start and not its end; undecided times include their end and not their start.
        before_ms, inside_ms = window.from_ms - 1, window.to_ms - 1
        if before_ms > after_ms:
            yield UndecidedTimes(trigger, WallMs(after_ms), WallMs(min(before_ms, until_ms)))
            after_ms = before_ms
        if inside_ms > after_ms and after_ms < until_ms:
            last_ms, goes_on = WallMs(min(inside_ms, until_ms)), inside_ms > until_ms
            yield UndecidedTimes(trigger, WallMs(after_ms), last_ms, Verdict.EXCLUDED, goes_on)
            after_ms = inside_ms
        if after_ms >= until_ms:
            return
    yield UndecidedTimes(trigger, WallMs(after_ms), WallMs(until_ms))


def _by_days(times: UndecidedTimes) -> Iterator[UndecidedTimes]:
    """Yield the times of left-out days, a day at a time, and those of the days between, about a month at a time.

    Days without a time of the trigger are passed over, so the first of them is the first time of all.
    """
    trigger, after_ms, through_ms = times.trigger, times.after_ms, times.through_ms
    if trigger.calendars is None or times.verdict is not None:
        yield times
        return
    while after_ms < through_ms:
        nominal_ms = next_nominal(trigger, after_ms)
        if nominal_ms is None or nominal_ms > through_ms:
            return
        part = day_part(trigger, nominal_ms)
        is_out = part.left_out_by is not None
        until_ms = part.until_ms if is_out else run_until(trigger, part, min(through_ms, nominal_ms + _AT_ONCE_MS))
        last_ms = WallMs(min(until_ms - 1, through_ms))
        yield UndecidedTimes(
            trigger, after_ms, last_ms, Verdict.EXCLUDED if is_out else None, is_out and until_ms - 1 > last_ms
        )
        after_ms = last_ms
