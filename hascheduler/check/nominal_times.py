"""One verdict for each nominal time that a schedule's cursor has passed: a fired job, or a place in one recorded run.

The times come from the triggers that were in force, as far as the schedule still knows them: the present one since the
last edit, and the times that earlier ones had left undecided then. The three lists (times, fires, runs) are in order of
time and are read once, side by side, so memory does not grow with them.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass

from hascheduler.check.finding import Finding, FindingKind, instant_or_ms
from hascheduler.dispatch.schedules.trigger_periods import UndecidedTimes, undecided
from hascheduler.model.schedule import ScheduleRef
from hascheduler.model.verdict import Verdict, VerdictRun
from hascheduler.triggers import next_nominal, without_calendars

Pause = Callable[[], Awaitable[None]]

_PAUSE_EVERY = 2_000


def decided_times(schedule: ScheduleRef, kept_since_ms: int, through_ms: int, times_max: int) -> list[UndecidedTimes]:
    """The times through the cursor (and ``through_ms``) that must still have a verdict: the newest ``times_max`` or so.

    Verdicts that were decided by ``kept_since_ms`` may have expired. `InvalidInput` if the times can't be computed.
    """
    # A time that a calendar left out has a verdict as well, whatever the calendar says today.
    every_time = without_calendars(schedule)
    through_ms = min(schedule.cursor_ms, through_ms)
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

    async def at(self, nominal_ms: int) -> int:
        """How many verdicts that time has; callers ask in the order of time."""
        await self._begin()
        while self._fire is not None and self._fire < nominal_ms:
            self._fire = await anext(self._fires, None)
        while self._next_run is not None and self._next_run.first_ms <= nominal_ms:
            self._active.append(self._next_run)
            self._next_run = await anext(self._runs, None)
        # A time with a job has fired, even if it was recorded as unstorable before.
        self._active = [
            run
            for run in self._active
            if run.last_ms >= nominal_ms and not (run.verdict is Verdict.UNSTORABLE and self._fire == run.first_ms)
        ]
        return (self._fire == nominal_ms) + len(self._active)

    def alone_through(self, nominal_ms: int) -> int:
        """The last time through which the run that covers ``nominal_ms`` is the only verdict; else ``nominal_ms``."""
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
    """Findings about the ``decided`` times, in order; at most one of each kind.

    ``pause`` is awaited every `_PAUSE_EVERY` times. `InvalidInput` if the times can't be computed.
    """
    missing, doubled = TimeSpanCount(), TimeSpanCount()
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
            else:
                unseen.move_to(missing)
            if found > 1:
                doubled.add(nominal_ms)
            nominal_ms = next_nominal(times.trigger, verdicts.alone_through(nominal_ms))
        if times.trigger.max_fires is None:
            # Else times after the last fire are no longer in force, and have no verdict.
            unseen.move_to(missing)
    return list(_findings(schedule, missing, doubled))


def _findings(schedule: ScheduleRef, missing: TimeSpanCount, doubled: TimeSpanCount) -> Iterator[Finding]:
    name = schedule.name
    if missing.count:
        yield Finding(
            FindingKind.VERDICT_MISSING,
            f"schedules/{name}",
            f"{missing} without a verdict, and its cursor has passed ({instant_or_ms(schedule.cursor_ms)})",
            f"make up for the jobs: hascheduler schedule backfill {name} --from … --to … --dry-run",
            since_ms=missing.first_ms,
            witness=f"{missing.first_ms}",
        )
    if doubled.count:
        yield Finding(
            FindingKind.VERDICT_DOUBLED,
            f"schedules/{name}",
            f"{doubled} with two verdicts",
            f"look whether a job ran that should not have: hascheduler schedule verdicts {name}",
            since_ms=doubled.first_ms,
            witness=f"{doubled.first_ms}",
        )
