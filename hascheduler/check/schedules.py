"""Check that a schedule's cursor follows the time, that each passed time has one verdict, and that its jobs fit.

No time is long due and undecided, and none is decided early. A verdict is a fired job, or a place in one recorded run.
(Releases through 0.2.0 accepted payloads that are too large once their placeholders are filled.)

The times come from the triggers that were in force, as far as the schedule still knows them: the present one since the
last edit, and the times that earlier ones left undecided then. The three lists (times, fires, runs) are in order of
time and are read once, side by side, so memory does not grow with them.

A leader with other time-zone data may have decided a local time at another instant. So in a zone, a verdict on no
nominal time counts for a time without a verdict within a day of it, and a verdict on several times, or a run with
another number of times than there are, counts for all of those.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hascheduler.check.finding import CheckConfig, Finding, FindingKind, instant_or_ms, short_id
from hascheduler.dispatch.schedules.edits import reset_command
from hascheduler.dispatch.schedules.trigger_periods import UndecidedTimes, undecided
from hascheduler.model.documents.fired_job import rendered_payload_bytes_max
from hascheduler.model.payload import PAYLOAD_BYTES_MAX
from hascheduler.model.verdict import Verdict, VerdictRun
from hascheduler.schema.schedule import ScheduleRef
from hascheduler.triggers import count_nominal, due_ms, next_nominal, without_calendars
from hascheduler.triggers.local_order import offset_zones, over_through_ms

PAYLOAD_FIELDS = ("job", "payload", "payloads", "render", "labels")


def check_cursor(schedule: ScheduleRef, now: int, config: CheckConfig, *, led: bool) -> Iterator[Finding]:
    """Return a finding if the cursor is late.

    ``led`` is True if a replica leads, is not paused, and should have decided. Raise `InvalidInput` if the times can't
    be computed.
    """
    due_at_ms = _first_due(schedule, now - config.motion_ms) if led else None
    if due_at_ms is not None:
        behind_s = (now - due_at_ms) // 1_000
        yield Finding(
            FindingKind.OVERDUE,
            f"schedules/{schedule.name}",
            f"a nominal time has been due for {behind_s} s, and the cursor is at {instant_or_ms(schedule.cursor_ms)}",
            "check the log of the leader (hascheduler cluster); if it decides nothing at all, restart it",
            since_ms=due_at_ms,
            witness=f"{schedule.rev} {schedule.cursor_ms}",
        )
    if schedule.cursor_ms > now + config.motion_ms:
        ahead_s = (schedule.cursor_ms - now) // 1_000
        yield Finding(
            FindingKind.CURSOR_AHEAD,
            f"schedules/{schedule.name}",
            f"its cursor is {ahead_s} s in the future ({instant_or_ms(schedule.cursor_ms)}): it does not fire"
            " until then",
            "times were decided too early: correct the clocks of the replicas and of MongoDB, then run"
            f" {reset_command(schedule)}",
            witness=f"{schedule.rev}",
        )


def check_payload(document: Mapping[str, Any]) -> Iterator[Finding]:
    """Return findings about a schedule that renders its payload; ``document`` has the fields of `PAYLOAD_FIELDS`."""
    size = rendered_payload_bytes_max(document["_id"], document)
    if size > PAYLOAD_BYTES_MAX:
        yield Finding(
            FindingKind.PAYLOAD_TOO_LARGE,
            f"schedules/{short_id(document['_id'])}",
            f"its payload has up to {size} bytes once its placeholders are filled, and a job can have at most"
            f" {PAYLOAD_BYTES_MAX}: its nominal times become unstorable",
            "shorten its payload (hascheduler schedule edit), then backfill the missing jobs",
        )


def _first_due(schedule: ScheduleRef, now: int) -> int | None:
    """Return when the first undecided time was due, if past; times that don't fire are decided with their period."""
    for times in undecided(schedule, schedule.cursor_ms, now, schedule.offsets):
        fires_max = times.trigger.max_fires
        first_ms = times.first() if fires_max is None or schedule.tally.fired < fires_max else None
        if first_ms is None:
            continue
        if times.verdict is not None:
            # A period that goes on is cut off at now.
            return times.through_ms + 1 if times.through_ms < now else None
        at_ms = due_ms(schedule.name, times.trigger, first_ms)
        return at_ms if at_ms <= now else None
    return None


Pause = Callable[[], Awaitable[None]]

_PAUSE_EVERY = 2_000
_MOVED_MS_MAX = 86_400_000


def decided_times(schedule: ScheduleRef, kept_since_ms: int, through_ms: int, times_max: int) -> list[UndecidedTimes]:
    """Return the times through the cursor (and ``through_ms``) that must still have a verdict.

    These are about the newest ``times_max``. Verdicts decided by ``kept_since_ms`` may have expired. Raise
    `InvalidInput` if the times can't be computed.
    """
    # A time that a calendar left out has a verdict as well, whatever the calendar says today.
    every_time = without_calendars(schedule)
    through_ms = min(over_through_ms(schedule), through_ms)
    after_ms = max(kept_since_ms, schedule.created_at_ms)
    while True:
        found = list(undecided(every_time, after_ms, through_ms))
        if sum(times.count() for times in found) <= times_max:
            return found
        after_ms = (after_ms + through_ms + 1) // 2


@dataclass
class TimeSpanCount:
    """How many nominal times have one defect, and the first and the last of them."""

    count: int = 0
    first_ms: int = 0
    last_ms: int = 0

    def add(self, nominal_ms: int, count: int = 1) -> None:
        self.first_ms = self.first_ms or nominal_ms
        self.last_ms = nominal_ms
        self.count += count

    def move_to(self, other: "TimeSpanCount") -> None:
        if self.count:
            other.add(self.first_ms, 0)
            other.add(self.last_ms, self.count)
            self.count = self.first_ms = self.last_ms = 0

    def __str__(self) -> str:
        if self.count == 1:
            return f"1 nominal time ({self.first_ms}, {instant_or_ms(self.first_ms)})"
        return f"{self.count} nominal times from {instant_or_ms(self.first_ms)} through {instant_or_ms(self.last_ms)}"


class VerdictCursor:
    """Owner of the positions in the two lists of verdicts. ``fires`` ascend; ``runs`` ascend by their first time."""

    def __init__(self, fires: AsyncIterator[int], runs: AsyncIterator[VerdictRun]) -> None:
        self._fires = fires
        self._runs = runs
        self._fire: int | None = None
        self._next_run: VerdictRun | None = None
        self._active: list[VerdictRun] = []
        self._begun = False
        self._asked_ms = -1
        self.passed: list[int] = []
        """Instants of verdicts that `at` passed without being asked for them."""
        self.odd: list[int] = []
        """The ends of runs passed for which `is_odd` is True."""
        self.is_odd: Callable[[VerdictRun], bool] | None = None

    async def at(self, nominal_ms: int) -> int:
        """Return how many verdicts that time has; callers ask in order of time."""
        await self._begin()
        while self._fire is not None and self._fire < nominal_ms:
            if self._fire != self._asked_ms:
                self.passed.append(self._fire)
            self._fire = await anext(self._fires, None)
        while self._next_run is not None and self._next_run.first_ms <= nominal_ms:
            if self._next_run.first_ms < nominal_ms:
                self.passed.append(self._next_run.first_ms)
            self._active.append(self._next_run)
            self._next_run = await anext(self._runs, None)
        for run in self._active:
            if run.last_ms < nominal_ms:
                self.passed += [run.last_ms] if run.last_ms > self._asked_ms else []
                self.odd += [] if self.is_odd is None or not self.is_odd(run) else [run.first_ms, run.last_ms]
        self._asked_ms = nominal_ms
        # A time with a job has fired, even if it was recorded as unstorable before.
        self._active = [
            run
            for run in self._active
            if run.last_ms >= nominal_ms and not (run.verdict is Verdict.UNSTORABLE and self._fire == run.first_ms)
        ]
        return (self._fire == nominal_ms) + len(self._active)

    def alone_through(self, nominal_ms: int) -> int:
        """Return the last time through which the run around ``nominal_ms`` is the only verdict; else ``nominal_ms``."""
        if len(self._active) != 1 or self._fire == nominal_ms:
            return nominal_ms
        end_ms: int = self._active[0].last_ms
        if self._fire is not None:
            end_ms = min(end_ms, self._fire - 1)
        if self._next_run is not None:
            end_ms = min(end_ms, self._next_run.first_ms - 1)
        return max(end_ms, nominal_ms)

    async def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            self._fire = await anext(self._fires, None)
            self._next_run = await anext(self._runs, None)


async def check_times(
    schedule: ScheduleRef, decided: Sequence[UndecidedTimes], verdicts: VerdictCursor, pause: Pause
) -> list[Finding]:
    """Return findings about the ``decided`` times, in order; at most one of each kind.

    ``pause`` is awaited every `_PAUSE_EVERY` times. Raise `InvalidInput` if the times can't be computed.
    """
    missing, doubled = TimeSpanCount(), TimeSpanCount()
    moves = bool(offset_zones(schedule))
    if moves:
        verdicts.is_odd = lambda run: run.first_ms > decided[0].after_ms and run.count != _count(decided, run)
    without: list[int] = []
    turns = 0
    for times in decided:
        unseen = TimeSpanCount()
        nominal_ms: int | None = times.first()
        while nominal_ms is not None and nominal_ms <= times.through_ms:
            turns += 1
            if turns % _PAUSE_EVERY == 0:
                await pause()
            found = await verdicts.at(nominal_ms)
            if found == 0:
                unseen.add(nominal_ms)
                if moves:
                    without.append(nominal_ms)
            else:
                unseen.move_to(missing)
            if found > 1:
                doubled.add(nominal_ms)
            nominal_ms = next_nominal(times.trigger, verdicts.alone_through(nominal_ms))
        if times.trigger.max_fires is None:
            # Else times after the last fire are no longer in force, and have no verdict.
            unseen.move_to(missing)
    if moves and missing.count:
        await verdicts.at(schedule.cursor_ms + 1)
        moved = sorted(at_ms for at_ms in {*verdicts.passed} if not _is_nominal(schedule, decided, at_ms))
        missing = _without_moved([at_ms for at_ms in without if at_ms <= missing.last_ms], moved, verdicts.odd)
    return list(_findings(schedule, missing, doubled))


def _is_nominal(schedule: ScheduleRef, decided: Sequence[UndecidedTimes], at_ms: int) -> bool:
    """Return True for a nominal time of a trigger that was in force, or may have been before ``decided`` begins."""
    if at_ms <= decided[0].after_ms:
        return at_ms <= schedule.since_ms or next_nominal(decided[0].trigger, at_ms - 1) == at_ms
    return any(
        times.after_ms < at_ms <= times.through_ms and next_nominal(times.trigger, at_ms - 1) == at_ms
        for times in decided
    )


def _count(decided: Sequence[UndecidedTimes], run: VerdictRun) -> int:
    return sum(
        count_nominal(times.trigger, max(times.after_ms, run.first_ms - 1), min(times.through_ms, run.last_ms))
        for times in decided
        if times.after_ms < run.last_ms and run.first_ms <= times.through_ms
    )


def _without_moved(missing: Sequence[int], moved: Sequence[int], odd: Sequence[int]) -> TimeSpanCount:
    """Return ``missing`` without those for which one of the ``moved`` or ``odd`` verdicts counts.

    Each verdict counts for one time; an odd one, and one right after a cursor, and so not at a whole second, for all
    within a day.
    """
    jumps = [*odd, *(at_ms for at_ms in moved if at_ms % 1_000)]
    whole = [at_ms for at_ms in moved if at_ms % 1_000 == 0]
    left, place = TimeSpanCount(), 0
    for nominal_ms in missing:
        if any(abs(at_ms - nominal_ms) <= _MOVED_MS_MAX for at_ms in jumps):
            continue
        while place < len(whole) and whole[place] < nominal_ms - _MOVED_MS_MAX:
            place += 1
        if place < len(whole) and whole[place] <= nominal_ms + _MOVED_MS_MAX:
            place += 1
        else:
            left.add(nominal_ms)
    return left


def _findings(schedule: ScheduleRef, missing: TimeSpanCount, doubled: TimeSpanCount) -> Iterator[Finding]:
    name, cursor = schedule.name, instant_or_ms(schedule.cursor_ms)
    backfill = f"backfill the jobs: hascheduler schedule backfill {name} --from … --to … --dry-run"
    verdicts = f"check if a job ran that should not have: hascheduler schedule verdicts {name}"
    for kind, times, what, hint in (
        (FindingKind.VERDICT_MISSING, missing, f"without a verdict before the cursor ({cursor})", backfill),
        (FindingKind.VERDICT_DOUBLED, doubled, "with two verdicts", verdicts),
    ):
        if times.count:
            yield Finding(kind, f"schedules/{name}", f"{times} {what}", hint, times.first_ms, f"{times.first_ms}")
