"""The effect of an edit on a schedule's times: it changes no decision about a time before it, and loses no time.

Each function returns the schedule after the edit at ``now``. Times that are undecided then go into ``past`` with the
trigger that was in force; a period without undecided times is left out.

A reset lets the times of a schedule after ``reset_at_ms`` fire again, although its cursor is ahead of that.

A cursor gets ahead if leaders decided by clocks that were ahead. After the clocks are corrected, the schedule would be
silent until its cursor. A reset moves the cursor back and decides no time twice::

    reset_at_ms          kept from here            the cursor before
    ──┼──────────────────────┼──────────────────────────┼────────────►
      │ each fires when due  │ decided: nothing changes │ as ever

In the first part nothing fired: its times were passed over in one go when the clock was ahead (coalesced, missed …), or
came before the schedule's creation by that clock. Their verdicts are withdrawn. From the first time without such a
verdict, which may have fired, all times keep what they have, and are no longer in force.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hascheduler.errors import Conflict
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import VerdictRun
from hascheduler.schema.schedule import PAST_MAX, ScheduleRef, TriggerPeriod
from hascheduler.schema.trigger import Trigger
from hascheduler.triggers import count_nominal, latest_nominal, next_nominal
from hascheduler.triggers.local_order import pieces


def with_trigger(schedule: ScheduleRef, trigger: Trigger, now: WallMs) -> ScheduleRef:
    """Return the schedule with ``trigger`` in force for the times after ``now``; a paused schedule stays paused.

    Raise `Conflict` if too many edits wait for a leader.
    """
    if trigger == schedule.trigger:
        return schedule
    closed = _closed(schedule, now)
    return replace(closed, trigger=trigger, paused_at_ms=None if schedule.paused_at_ms is None else closed.since_ms)


def paused(schedule: ScheduleRef, now: WallMs) -> ScheduleRef:
    """Return the schedule paused for the times after ``now``; a paused one stays as it is."""
    return schedule if schedule.paused_at_ms is not None else replace(schedule, paused_at_ms=now)


def resumed(schedule: ScheduleRef, now: WallMs, *, from_now: bool) -> ScheduleRef:
    """Return the schedule with the times after ``now`` firing again.

    If not ``from_now``, the times since the pause fire too, by the misfire policy.
    """
    if schedule.paused_at_ms is None:
        return schedule
    resumed_at = _closed(schedule, now) if from_now else schedule
    return replace(resumed_at, paused_at_ms=None, failures=0)


def _closed(schedule: ScheduleRef, now: WallMs) -> ScheduleRef:
    """Return the schedule with the times in force after ``now``; the earlier times are past."""
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
        problem = f"{PAST_MAX} edits are waiting for a leader to decide the times before them"
        raise Conflict(f"{problem}; try again once a replica leads")
    return replace(schedule, past=past, since_ms=end_ms)


def _is_open(period: TriggerPeriod, schedule: ScheduleRef) -> bool:
    """Return True if one of its times is undecided."""
    cursor_ms, offsets = schedule.cursor_ms, schedule.offsets
    for trigger, after_ms, until_ms in pieces(period.trigger, period.since_ms, cursor_ms, offsets, period.through_ms):
        nominal_ms = next_nominal(trigger, after_ms)
        if nominal_ms is not None and nominal_ms <= until_ms:
            return True
    return False


@dataclass(frozen=True, slots=True)
class CursorReset:
    """The ``schedule`` after the reset, without the request.

    ``withdrawn`` holds each run that lost times, and the rest of it (None if nothing is left).
    """

    schedule: ScheduleRef
    withdrawn: Sequence[tuple[VerdictRun, VerdictRun | None]] = ()


def reset_cursor(schedule: ScheduleRef, runs: Sequence[VerdictRun]) -> CursorReset:
    """Carry out the reset request of ``schedule``.

    ``runs`` are those that end after it, oldest first, without unstorable ones, which count as fired; if some of the
    newest are left out, more times keep their verdicts.

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
    """Return the command with which people reset it; a paused one is resumed first."""
    command = f"hascheduler schedule reset {schedule.name} --from now"
    return command if schedule.paused_at_ms is None else f"hascheduler schedule resume {schedule.name} && {command}"


def _nothing_fired_through(schedule: ScheduleRef, at_ms: WallMs, runs: Sequence[VerdictRun]) -> WallMs:
    """Return the instant through which no time after ``at_ms`` has fired, at most the cursor."""
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
    """Return ``run`` without the times after ``at_ms``, counted by the present trigger; None if nothing is left."""
    last_ms = latest_nominal(schedule.trigger, at_ms)
    if last_ms is None or last_ms < run.first_ms:
        return None
    count = min(count_nominal(schedule.trigger, run.first_ms - 1, at_ms), run.count)
    return replace(run, last_ms=last_ms, count=count)
