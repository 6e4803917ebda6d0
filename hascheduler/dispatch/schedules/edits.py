"""The effect of an edit on a schedule's times: no time before the edit is decided otherwise, none is lost.

Each function gives the schedule after the edit at ``now``. Times that are undecided by then go into ``past`` with the
trigger that was in force; a period without undecided times is left out.
"""

from dataclasses import replace

from hascheduler.errors import Conflict
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.schedule import PAST_MAX, ScheduleRef, TriggerPeriod
from hascheduler.schema.trigger import Trigger
from hascheduler.triggers import next_nominal
from hascheduler.triggers.local_order import pieces


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
    past = tuple(period for period in periods if _is_open(period, schedule))
    if len(past) > PAST_MAX:
        problem = f"{PAST_MAX} edits wait for a leader to decide the times before them"
        raise Conflict(f"{problem}; try again when there is one")
    return replace(schedule, past=past, since_ms=end_ms)


def _is_open(period: TriggerPeriod, schedule: ScheduleRef) -> bool:
    """Whether one of its times is undecided."""
    cursor_ms, offsets = schedule.cursor_ms, schedule.offsets
    for trigger, after_ms, until_ms in pieces(period.trigger, period.since_ms, cursor_ms, offsets, period.through_ms):
        nominal_ms = next_nominal(trigger, after_ms)
        if nominal_ms is not None and nominal_ms <= until_ms:
            return True
    return False
