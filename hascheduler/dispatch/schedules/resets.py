"""A reset: the times of a schedule after ``reset_at_ms`` fire again, although its cursor is ahead of that.

A cursor gets ahead if leaders decided by clocks that were ahead. After the clocks are put right, the schedule would be
silent until its cursor. A reset takes the cursor back and decides no time twice::

    reset_at_ms          kept from here            the cursor before
    ──┼──────────────────────┼──────────────────────────┼────────────►
      │ each fires when due  │ decided: nothing changes │ as ever

In the first part nothing fired: its times were passed over in one go when the clock was ahead (coalesced, missed …), or
came before the schedule's creation by that clock. Their verdicts are withdrawn. From the first time on that has no such
verdict, so that it may have fired, all keep what they have, and none of them is in force any more.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import VerdictRun
from hascheduler.schema.schedule import ScheduleRef, TriggerPeriod
from hascheduler.triggers import count_nominal, latest_nominal, next_nominal


@dataclass(frozen=True, slots=True)
class CursorReset:
    """The ``schedule`` after the reset, its request gone; ``withdrawn`` has each run that lost times, and what is left
    of it (None: nothing)."""

    schedule: ScheduleRef
    withdrawn: Sequence[tuple[VerdictRun, VerdictRun | None]] = ()


def reset_cursor(schedule: ScheduleRef, runs: Sequence[VerdictRun]) -> CursorReset:
    """Carry out the request of ``schedule``. ``runs`` are those that end after it, oldest first, without unstorable
    ones, which count as fired; if some of the newest are left out, more times keep their verdicts.

    Nothing changes if the cursor is not ahead (any more), or the schedule has been paused meanwhile.
    """
    at_ms, cursor_ms, trigger = schedule.reset_at_ms, schedule.cursor_ms, schedule.trigger
    answered = replace(schedule, reset_at_ms=None)
    if at_ms is None or at_ms >= cursor_ms or schedule.paused_at_ms is not None:
        return CursorReset(answered)
    free_ms = _nothing_fired_through(schedule, at_ms, runs)
    withdrawn = [(run, _until(run, schedule, at_ms)) for run in runs if at_ms < run.last_ms <= free_ms]
    tally = schedule.tally
    for run, left in withdrawn:
        tally = tally.plus(run.verdict, (0 if left is None else left.count) - run.count)
    since_ms = at_ms if free_ms >= cursor_ms else cursor_ms
    past = (TriggerPeriod(trigger, at_ms, free_ms),) if at_ms < free_ms < cursor_ms else ()
    if since_ms == schedule.since_ms:
        since_ms = WallMs(since_ms + 1)  # the basis of a decision tells two periods apart by it
    reset = replace(answered, cursor_ms=at_ms, since_ms=since_ms, past=past, tally=tally, offsets=())
    return CursorReset(reset, withdrawn)


def reset_command(schedule: ScheduleRef) -> str:
    """What people run to reset it; a paused one is resumed first."""
    command = f"hascheduler schedule reset {schedule.name} --from now"
    return command if schedule.paused_at_ms is None else f"hascheduler schedule resume {schedule.name} && {command}"


def _nothing_fired_through(schedule: ScheduleRef, at_ms: WallMs, runs: Sequence[VerdictRun]) -> WallMs:
    """The instant through which no time after ``at_ms`` has fired, or through the cursor."""
    free_ms = max(at_ms, min(schedule.created_at_ms, schedule.cursor_ms))
    for run in [*runs, None]:
        nominal_ms = next_nominal(schedule.trigger, free_ms)
        if nominal_ms is None or nominal_ms > schedule.cursor_ms:
            return schedule.cursor_ms
        if run is None or run.first_ms > nominal_ms:
            return free_ms
        free_ms = max(free_ms, min(run.last_ms, schedule.cursor_ms))
    return free_ms


def _until(run: VerdictRun, schedule: ScheduleRef, at_ms: WallMs) -> VerdictRun | None:
    """``run`` without the times after ``at_ms``; they are counted by the present trigger."""
    last_ms = latest_nominal(schedule.trigger, at_ms)
    if last_ms is None or last_ms < run.first_ms:
        return None
    count = min(count_nominal(schedule.trigger, run.first_ms - 1, at_ms), run.count)
    return replace(run, last_ms=last_ms, count=count)
