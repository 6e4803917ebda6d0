"""When a nominal time is due, and whether it is to fire at all: its jitter, the exclusion windows, the calendars."""

from bisect import bisect_right
from functools import lru_cache
from hashlib import blake2b

from hascheduler.model.trigger import AnyOf, Trigger
from hascheduler.model.values.instants import LATEST_MS, WallMs
from hascheduler.triggers.days import day_part, run_until, runs
from hascheduler.triggers.nominal import count_nominal, latest_nominal, next_nominal

_RUN_MS_MAX = 400 * 86_400_000
_AHEAD_MS_MAX = 2 * 366 * 86_400_000
_SEARCHED_MAX = 512


def due_ms(schedule: str, trigger: Trigger, nominal_ms: int) -> WallMs:
    """The nominal time and its jitter, evenly from 0 through ``jitter_ms``.

    The jitter is a hash of the schedule's name and the nominal time: every replica finds the same, and two schedules
    of one trigger do not fire together. Where times of several patterns are nearer to each other than that, none is
    due before an earlier one: they are decided in their order.
    """
    if not trigger.jitter_ms:
        return WallMs(nominal_ms)
    due = _jittered(schedule, trigger, nominal_ms)
    if isinstance(trigger.pattern, AnyOf):
        earlier_ms = latest_nominal(trigger, nominal_ms - 1)
        for _ in trigger.parts:  # of each there is one at most, as its gaps are longer than the jitter
            if earlier_ms is None or earlier_ms + trigger.jitter_ms <= due:
                break
            due = max(due, _jittered(schedule, trigger, earlier_ms))
            earlier_ms = latest_nominal(trigger, earlier_ms - 1)
    return due


def _jittered(schedule: str, trigger: Trigger, nominal_ms: int) -> WallMs:
    digest = blake2b(f"{schedule}:{nominal_ms}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return WallMs(nominal_ms + int.from_bytes(digest, "big") % (trigger.jitter_ms + 1))


def is_excluded(trigger: Trigger, nominal_ms: int) -> bool:
    """True if the nominal time lies in an exclusion window, or on a day that calendars leave out."""
    if _window_end(trigger, nominal_ms) is not None:
        return True
    return trigger.calendars is not None and day_part(trigger, nominal_ms).left_out_by is not None


def excluded_until(trigger: Trigger, nominal_ms: int) -> WallMs | None:
    """The end of the exclusion window, or of the days that calendars leave out, that the nominal time lies in, or None.

    What comes after that end may be excluded too: of many days in a row, those of about a year are passed at once.
    """
    end_ms = _window_end(trigger, nominal_ms)
    if end_ms is not None or trigger.calendars is None:
        return end_ms
    part = day_part(trigger, nominal_ms)
    return None if part.left_out_by is None else run_until(trigger, part, nominal_ms + _RUN_MS_MAX)


def _window_end(trigger: Trigger, nominal_ms: int) -> WallMs | None:
    place = bisect_right(trigger.exclude, nominal_ms, key=lambda window: window.from_ms)
    return trigger.exclude[place - 1].to_ms if place and nominal_ms < trigger.exclude[place - 1].to_ms else None


def next_firing(trigger: Trigger, after_ms: int) -> WallMs | None:
    """The first nominal time after ``after_ms`` that nothing excludes.

    None if there is none; with calendars, also if the times of two years are all excluded. What was searched last is
    remembered, so who asks again pays for what has come into these two years since then.
    """
    nominal_ms = next_nominal(trigger, after_ms)
    days = None if trigger.calendars is None else trigger.calendars.days
    if days is None or nominal_ms is None:
        return _first_firing(trigger, nominal_ms, LATEST_MS)[0]
    searched = _searched(trigger, days.bits)
    last_ms, from_ms = nominal_ms + _AHEAD_MS_MAX, after_ms
    if searched.after_ms <= after_ms <= searched.through_ms:
        from_ms, nominal_ms = searched.after_ms, next_nominal(trigger, searched.through_ms)
    found, through_ms = _first_firing(trigger, nominal_ms, last_ms)
    searched.after_ms, searched.through_ms = from_ms, through_ms
    return found


class _SearchedSpan:
    """Nothing fires after ``after_ms`` through ``through_ms``."""

    def __init__(self) -> None:
        self.after_ms = self.through_ms = -1


@lru_cache(_SEARCHED_MAX)
def _searched(trigger: Trigger, days: int) -> _SearchedSpan:
    """What is known of the trigger with the days that count now."""
    return _SearchedSpan()


def _first_firing(trigger: Trigger, nominal_ms: WallMs | None, last_ms: int) -> tuple[WallMs | None, int]:
    """The first time from ``nominal_ms`` through ``last_ms`` that fires, and the instant through which none does."""
    while nominal_ms is not None and nominal_ms <= last_ms:
        until_ms = excluded_until(trigger, nominal_ms)
        if until_ms is None:
            return nominal_ms, nominal_ms - 1
        nominal_ms = next_nominal(trigger, until_ms - 1)
    return None, LATEST_MS if nominal_ms is None else nominal_ms - 1


def count_firing(trigger: Trigger, from_ms: int, through_ms: int) -> int:
    """How many nominal times from ``from_ms`` through ``through_ms`` lie in no exclusion window and on no day that is
    left out.

    They are counted, not gone through one by one.
    """
    if trigger.calendars is not None:
        first_ms = next_nominal(trigger, from_ms - 1)
        if first_ms is None:
            return 0
        count = 0
        for run_from_ms, run_through_ms, fires in runs(trigger, first_ms, min(through_ms, LATEST_MS - 1)):
            if fires:
                count += _count_outside_windows(trigger, run_from_ms, run_through_ms)
        return count
    return _count_outside_windows(trigger, from_ms, through_ms)


def _count_outside_windows(trigger: Trigger, from_ms: int, through_ms: int) -> int:
    if through_ms < from_ms:
        return 0
    excluded = (
        count_nominal(trigger, max(from_ms, window.from_ms) - 1, min(through_ms, window.to_ms - 1))
        for window in trigger.exclude
        if window.to_ms > from_ms and window.from_ms <= through_ms
    )
    return count_nominal(trigger, from_ms - 1, through_ms) - sum(excluded)
