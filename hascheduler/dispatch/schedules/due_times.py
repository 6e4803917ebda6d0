"""The next decision of each schedule, and the decisions about its due times.

Each schedule has one timer: for the instant when its first undecided nominal time is due or, if times will not fire
anyway, for the end of their period. A decision that has not come back yet is remembered as a promised cursor and
counts, so that the older ones that the stream still shows lead to no second decision.

A schedule has no timer while its fires wait for all jobs of earlier ones, as the stream shows the jobs of a fire before
its cursor; while its overlap policy depends on jobs that an earlier leader decided on and the stream has yet to show;
or until its cursor is moved back by a reset (`edits`).

A schedule that uses a calendar that does not exist is held with that reason, until the calendar is created.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from hascheduler.dispatch.decisions import TimeOutcome
from hascheduler.dispatch.schedules.fire_admission import FireAllowance
from hascheduler.dispatch.schedules.time_outcomes import decide_due_times
from hascheduler.dispatch.schedules.trigger_periods import next_decision_ms
from hascheduler.dispatch.timers import Timers
from hascheduler.errors import InvalidInput
from hascheduler.model.job import ScheduleId
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import FireCounts
from hascheduler.schema.calendar import Calendar
from hascheduler.schema.schedule import Overlap, ScheduleRef, ZoneOffsets
from hascheduler.triggers import calendars_of, with_calendars

_AT_ONCE_MAX = 100
"""The most times of one schedule decided at once, or jobs these make, before the due times of another."""


class DueTimes:
    def __init__(self, calendars: Mapping[str, Calendar] | None = None) -> None:
        """Keep ``calendars``, the existing ones by name, which is read but not changed."""
        self._calendars = {} if calendars is None else calendars
        self._users: dict[str, dict[str, None]] = {}
        self._schedules: dict[str, ScheduleRef] = {}
        self._promised: dict[str, tuple[WallMs, FireCounts, ZoneOffsets, bool]] = {}
        """The promised cursor, counts and offsets; True if the next fire must not overlap jobs not yet known here."""
        self._to_reset: dict[str, None] = {}
        self._held: dict[str, int] = {}
        self._lost: set[str] = set()
        self._timers = Timers()
        self.unreadable: dict[str, str] = {}
        """Why times are unknown, by schedule, which was written by hand or lacks a calendar, and does not fire."""

    def schedule(self, name: str) -> ScheduleRef | None:
        return self._schedules.get(name)

    def schedules(self) -> Iterable[ScheduleRef]:
        return self._schedules.values()

    def to_reset(self) -> list[ScheduleRef]:
        """Return the schedules whose cursors have yet to be moved back."""
        return [self._schedules[name] for name in self._to_reset]

    def seen(self, schedule: ScheduleRef) -> None:
        before = self._schedules.get(schedule.name)
        self._schedules[schedule.name] = schedule
        if before is None or before.trigger is not schedule.trigger or before.past is not schedule.past:
            self._note_use(before, schedule)
        if schedule.reset_at_ms is not None:
            self._to_reset[schedule.name] = None
        elif self._to_reset:
            self._to_reset.pop(schedule.name, None)
        promised = self._promised.get(schedule.name)
        was_reset = before is not None and schedule.cursor_ms < before.cursor_ms
        if promised is not None and (promised[0] <= schedule.cursor_ms or was_reset):
            del self._promised[schedule.name]
            promised = None
        # Nearly always nothing is promised: the two bases are computed only otherwise.
        is_in_doubt = promised is not None and before is not None and before.basis_at(0) != schedule.basis_at(0)
        if schedule.name in self._held or is_in_doubt:
            # A decision from before the edit may be lost, and no later one may move the cursor past it.
            self._held[schedule.name] = 0
            self._timers.clear(schedule.name)
        else:
            self._arm(schedule)

    def gone(self, name: str) -> None:
        self._note_use(self._schedules.pop(name, None), None)
        self._promised.pop(name, None)
        self._to_reset.pop(name, None)
        self._held.pop(name, None)
        self._lost.discard(name)
        self._timers.clear(name)
        self.unreadable.pop(name, None)

    def users_of(self, calendar: str) -> list[str]:
        """Return the schedules that use the calendar of that name, even if it does not exist."""
        return list(self._users.get(calendar, ()))

    def calendar_changed(self, calendar: str) -> None:
        """Check the schedules that use it again, one after the other, along with the times that are due."""
        for name in self._users.get(calendar, ()):
            if name not in self._held and not self._has_to_wait(self._schedules[name]):
                self._timers.set(name, 0)

    def promise(self, outcome: TimeOutcome, *, is_unseen: bool) -> None:
        """Take the outcome as decided by an earlier leader, whatever the stream still shows.

        ``is_unseen`` if it has a job that is not known here.
        """
        schedule = self._schedules.get(outcome.schedule)
        if schedule is None or not outcome.basis.is_of(schedule.created_at_ms):
            return
        if outcome.nominal_ms > self._decided(schedule)[0]:
            earlier = self._promised.get(schedule.name)
            has_to_wait = (earlier is not None and earlier[3]) or (
                is_unseen and schedule.policy.overlap is not Overlap.ALLOW
            )
            self._promised[schedule.name] = (outcome.nominal_ms, outcome.tally, outcome.offsets, has_to_wait)
            self._arm(schedule)

    def forget_promises(self) -> None:
        """Return to what the stream has shown."""
        changed = [*self._promised, *self._held]
        self._promised.clear()
        self._held.clear()
        self._lost.clear()
        for name in changed:
            self._arm(self._schedules[name])

    def hold(self, name: str) -> None:
        """Decide nothing about that schedule until `resume`, as a promise may not have been carried out."""
        if name in self._schedules:
            self._held.setdefault(name, 0)
            self._timers.clear(name)

    def lose(self, outcome: TimeOutcome, until_ms: int) -> None:
        """Hold the schedule, as the stored one is not the one known here, and then return to what the stream showed."""
        schedule = self._schedules.get(outcome.schedule)
        if schedule is not None and outcome.basis.is_of(schedule.created_at_ms):
            self.hold(schedule.name)
            self._lost.add(schedule.name)
            # Until the stream shows it again, or, if it already has, until ``until_ms``.
            basis = outcome.basis
            is_known = (schedule.since_ms, schedule.paused_at_ms) != (basis.since_ms, basis.paused_at_ms)
            self._held[schedule.name] = 0 if is_known else until_ms

    def held(self) -> list[str]:
        return list(self._held)

    def resume(self, name: str) -> None:
        """Decide again, as no promise about that schedule is open any more."""
        until_ms = self._held.pop(name)
        if name in self._lost:
            self._lost.discard(name)
            self._promised.pop(name, None)
        self._arm(self._schedules[name], not_before_ms=until_ms)

    def take_due(
        self,
        now: WallMs,
        limit: int,
        live: Callable[[ScheduleId], dict[str, None]],
        allowance: Callable[[ScheduleRef], FireAllowance | None] = lambda _: None,
        fell_short: Callable[[ScheduleRef], int] = lambda _: 0,
    ) -> Iterator[list[TimeOutcome]]:
        """Decide the times that are due, and promise each; the times of one schedule in order.

        ``live`` returns the jobs of a schedule that have not ended, ``allowance`` what its tenant's limits leave (None:
        no limits), ``fell_short`` when to check a schedule again that found no room. A schedule may come more than
        once, so the jobs of each yielded list must be counted in ``live`` and ``allowance`` before the next is
        requested. Once about ``limit`` jobs are made, the rest stays due.
        """
        while limit > 0:
            due = next(self._timers.take_due(now, 1), None)
            if due is None:
                return
            stored = schedule = self._schedules[due[0]]
            cursor_ms, tally, offsets = self._decided(schedule)
            at_once = max(1, min(limit, _AT_ONCE_MAX) // schedule.jobs_per_fire)
            left = allowance(schedule)
            try:
                schedule = with_calendars(stored, self._calendars)
                live_ids = live(schedule.identity)
                new = decide_due_times(
                    schedule, cursor_ms, tally, now, live=live_ids, limit=at_once, allowance=left, offsets=offsets
                )
            except InvalidInput as error:  # a trigger in its past that was written by hand, or a calendar that is gone
                self.unreadable[schedule.name] = str(error)
                limit -= 1
                continue
            if new:
                self._promised[schedule.name] = (new[-1].nominal_ms, new[-1].tally, new[-1].offsets, False)
            if left is not None and left.was_short:
                self._arm(schedule, not_before_ms=fell_short(schedule))
                limit -= 1  # the check has a cost too
            else:
                self._arm(schedule, not_before_ms=0 if new else now + 1)
            limit -= len(new) * schedule.jobs_per_fire or schedule.trigger.calendars is not None
            yield new

    def next_at(self) -> int | None:
        return self._timers.next_at()

    def overdue(self, before_ms: int) -> Iterator[str]:
        """Yield the schedules that may have a time which was due before then and is not decided, as stored.

        They come in no order and perhaps more than once, with some that have no such time.
        """
        yield from self._held
        yield from self.unreadable
        yield from self._promised
        yield from self._to_reset
        yield from self._timers.before(before_ms)

    def _note_use(self, before: ScheduleRef | None, schedule: ScheduleRef | None) -> None:
        if before is not None:
            for name in calendars_of(before):
                self._users[name].pop(before.name, None)
                if not self._users[name]:
                    del self._users[name]
        if schedule is not None:
            for name in calendars_of(schedule):
                self._users.setdefault(name, {})[schedule.name] = None

    def _decided(self, schedule: ScheduleRef) -> tuple[WallMs, FireCounts, ZoneOffsets]:
        promised = self._promised.get(schedule.name)
        return (schedule.cursor_ms, schedule.tally, schedule.offsets) if promised is None else promised[:3]

    def _arm(self, schedule: ScheduleRef, not_before_ms: int = 0) -> None:
        at_ms: Any  # see `Timers.set`
        try:
            at_ms = self._next_at(schedule)
            self.unreadable.pop(schedule.name, None)
        except InvalidInput as error:
            self.unreadable[schedule.name] = str(error)
            at_ms = None
        if at_ms is None:
            self._timers.clear(schedule.name)
        else:
            self._timers.set(schedule.name, max(at_ms, not_before_ms))

    def _has_to_wait(self, schedule: ScheduleRef) -> bool:
        """Return True if the last decision has to be seen before another one, or a reset is pending."""
        if schedule.reset_at_ms is not None:
            return True
        promised = self._promised.get(schedule.name)
        return promised is not None and (schedule.waits_for_its_fires or promised[3])

    def _next_at(self, schedule: ScheduleRef) -> Any | None:
        """Return the instant, as an object that schedules of one cron expression share."""
        if self._has_to_wait(schedule):
            return None
        cursor_ms, tally, offsets = self._decided(schedule)
        return next_decision_ms(with_calendars(schedule, self._calendars), cursor_ms, tally, offsets)
