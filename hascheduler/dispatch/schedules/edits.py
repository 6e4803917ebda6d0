"""The effect of an edit on a schedule's times: no time before the edit is decided otherwise, none is lost.

Each function gives the schedule after the edit at ``now``. Times that are undecided by then go into ``past`` with the
trigger that was in force; a period without undecided times is left out.
"""

from dataclasses import replace

from hascheduler.errors import Conflict
from hascheduler.model.schedule import PAST_MAX, ScheduleRef, TriggerPeriod
from hascheduler.model.trigger import Trigger
from hascheduler.model.values.instants import WallMs
from hascheduler.triggers import next_nominal


def with_trigger(schedule: ScheduleRef, trigger: Trigger, now: WallMs) -> ScheduleRef:
    """``trigger`` is in force for the times after ``now``; a paused schedule stays paused.

    `Conflict` where too many edits wait for a leader.
    """
    if trigger == schedule.trigger:
        return schedule
    closed = _closed(schedule, now)
    return replace(closed, trigger=trigger, paused_at_ms=None if schedule.paused_at_ms is None else closed.since_ms)


def paused(schedule: ScheduleRef, now: WallMs) -> ScheduleRef:
    """The times after ``now`` do not fire; one that is paused already stays as it is."""
    return schedule if schedule.paused_at_ms is not None else replace(schedule, paused_at_ms=now)


def resumed(schedule: ScheduleRef, now: WallMs, *, from_now: bool) -> ScheduleRef:
    """The times after ``now`` fire again; if not ``from_now``, those since the pause too, by the misfire policy."""
    if schedule.paused_at_ms is None:
        return schedule
    resumed_at = _closed(schedule, now) if from_now else schedule
    return replace(resumed_at, paused_at_ms=None, failures=0)


def _closed(schedule: ScheduleRef, now: WallMs) -> ScheduleRef:
    """The times in force begin after ``now``; those before are past."""
    # A leader whose clock is ahead may have decided a time after now: the new period begins after that too. And never
    # at the beginning of the one before: the basis of a decision tells two triggers apart by since_ms alone.
    end_ms = WallMs(max(now, schedule.cursor_ms, schedule.since_ms + 1))
    paused_at_ms = schedule.paused_at_ms if schedule.paused_at_ms is not None else end_ms
    periods = [
        *schedule.past,
        TriggerPeriod(schedule.trigger, schedule.since_ms, paused_at_ms),
        TriggerPeriod(schedule.trigger, WallMs(max(schedule.since_ms, paused_at_ms)), end_ms, paused=True),
    ]
    past = tuple(period for period in periods if _is_open(period, schedule.cursor_ms))
    if len(past) > PAST_MAX:
        problem = f"{PAST_MAX} edits wait for a leader to decide the times before them"
        raise Conflict(f"{problem}; try again when there is one")
    return replace(schedule, past=past, since_ms=end_ms)


def _is_open(period: TriggerPeriod, cursor_ms: int) -> bool:
    """Whether one of its times is undecided."""
    nominal_ms = next_nominal(period.trigger, max(cursor_ms, period.since_ms))
    return nominal_ms is not None and nominal_ms <= period.through_ms
