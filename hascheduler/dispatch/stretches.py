"""Which nominal times of a schedule are in force and not decided yet: the stretches after its cursor, in order.

The times of one stretch have one trigger and are paused or not. An exclusion window makes stretches of its own. This
is where "an edit is not retroactive" is said once: for the core, which decides the times, and for the edits, which
must keep what is undecided.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hascheduler.model.instants import WallMs
from hascheduler.model.schedule import ScheduleRef, Stretch
from hascheduler.model.trigger import Trigger
from hascheduler.model.unguarded import unguarded
from hascheduler.model.verdict import Verdict
from hascheduler.triggers import count_nominal, latest_nominal, next_nominal


@unguarded
@dataclass(frozen=True, slots=True)
class OpenTimes:
    """The nominal times of ``trigger`` after ``after_ms`` through ``through_ms``; ``verdict`` if that is known."""

    trigger: Trigger
    after_ms: WallMs
    through_ms: WallMs
    verdict: Verdict | None = None

    def first(self) -> WallMs | None:
        nominal_ms = next_nominal(self.trigger, self.after_ms)
        return nominal_ms if nominal_ms is not None and nominal_ms <= self.through_ms else None

    def last(self) -> WallMs | None:
        nominal_ms = latest_nominal(self.trigger, self.through_ms)
        return nominal_ms if nominal_ms is not None and nominal_ms > self.after_ms else None

    def count(self) -> int:
        return count_nominal(self.trigger, self.after_ms, self.through_ms)


def undecided(schedule: ScheduleRef, cursor_ms: int, through_ms: int) -> Iterable[OpenTimes]:
    """The open times after ``cursor_ms`` through ``through_ms``, in order; some of them may turn out to be empty.

    While the schedule is paused, the times since then are not among them: what becomes of them is settled when it is
    resumed.
    """
    if schedule.past or schedule.trigger.exclude or schedule.paused_at_ms is not None:
        return _of_stretches(schedule, cursor_ms, through_ms)
    # Nearly always.
    after_ms = max(cursor_ms, schedule.since_ms)
    return (OpenTimes(schedule.trigger, WallMs(after_ms), WallMs(through_ms)),) if after_ms < through_ms else ()


def _of_stretches(schedule: ScheduleRef, cursor_ms: int, through_ms: int) -> Iterator[OpenTimes]:
    for stretch in _stretches(schedule, through_ms):
        after_ms = max(cursor_ms, stretch.since_ms)
        until_ms = min(through_ms, stretch.through_ms)
        if after_ms >= until_ms:
            continue
        if stretch.paused:
            yield OpenTimes(stretch.trigger, WallMs(after_ms), WallMs(until_ms), Verdict.PAUSED)
        elif not stretch.trigger.exclude:
            yield OpenTimes(stretch.trigger, WallMs(after_ms), WallMs(until_ms))
        else:
            yield from _without_windows(stretch.trigger, after_ms, until_ms)


def _stretches(schedule: ScheduleRef, through_ms: int) -> Iterator[Stretch]:
    yield from schedule.past
    until_ms = schedule.paused_at_ms if schedule.paused_at_ms is not None else through_ms
    yield Stretch(schedule.trigger, schedule.since_ms, WallMs(until_ms))


def _without_windows(trigger: Trigger, after_ms: int, until_ms: int) -> Iterator[OpenTimes]:
    for window in trigger.exclude:
        # A window is from its first millisecond until before its last; open times are after, through.
        before_ms, inside_ms = window.from_ms - 1, window.to_ms - 1
        if before_ms > after_ms:
            yield OpenTimes(trigger, WallMs(after_ms), WallMs(min(before_ms, until_ms)))
            after_ms = before_ms
        if inside_ms > after_ms and after_ms < until_ms:
            yield OpenTimes(trigger, WallMs(after_ms), WallMs(min(inside_ms, until_ms)), Verdict.EXCLUDED)
            after_ms = inside_ms
        if after_ms >= until_ms:
            return
    yield OpenTimes(trigger, WallMs(after_ms), WallMs(until_ms))
