"""The outcome of the due nominal times of one schedule: each fires, or gets a verdict that shows why it does not.

The *backlog* is all that is due and undecided. While its first time is not later than the grace, every time of it
fires, however many there are. Otherwise the catch-up policy draws one line through the backlog; times before the line
do not fire, times behind it do::

    none      before the line: later than the grace       missed
    latest    before the line: all but the newest         coalesced (into the next fire)
    all       before the line: all but the newest n       missed

If jobs expire, a time whose job would have expired by now is missed, whatever the policy, unless the next fire stands
for it.

A time that would fire may still be skipped for a job that is in its way. Times are decided in order, as only the cursor
records what is decided: a time whose jitter is not over holds up those after it, and so does a fire whose jobs must all
be known for the next decision.

The tenant may also be at a limit (`fire_admission`). Then, of the due times, all but the newest are *throttled*, in one
record. The newest waits for room, undecided, until the next one is due, its grace is over or half a minute has passed,
and is then throttled too if there was no room. So a daily schedule is late rather than left out, and one that asks for
too much gets what there is room for, with times that are fresh.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from hascheduler.dispatch.decisions import CountFailures, Fire, RecordVerdict, TimeOutcome
from hascheduler.dispatch.schedules.fire_admission import FireAllowance
from hascheduler.dispatch.schedules.trigger_periods import UndecidedTimes, undecided
from hascheduler.dispatch.timers import Timers
from hascheduler.model.job import JobState, fire_job_id, fired_at, last_job_id
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import EXPIRED, FireCounts, Verdict, VerdictRun
from hascheduler.schema.schedule import Basis, CatchUp, Overlap, ScheduleRef, ZoneOffsets
from hascheduler.triggers import due_ms, latest_nominal, next_nominal
from hascheduler.triggers.local_order import offset_zones, offsets_at

ROOM_WAIT_MS_MAX = 30_000
"""How long the newest time waits for room: at most what the check of invariants allows for immediate decisions."""
STORED_EVERY_MS = 10_000
"""How long the count of failures of a schedule that they do not pause stays as it is stored, at least."""
_STORED_AT_ONCE_MAX = 20


def decide_due_times(
    schedule: ScheduleRef,
    cursor_ms: int,
    tally: FireCounts,
    now: int,
    *,
    live: dict[str, None],
    limit: int,
    allowance: FireAllowance | None = None,
    offsets: ZoneOffsets = (),
) -> list[TimeOutcome]:
    """Return the outcomes of the times after ``cursor_ms`` that are due by ``now``; at most ``limit`` fires.

    ``offsets`` are those stored with the cursor. ``live`` are the ids of the schedule's jobs that have not ended,
    oldest first; it is read, not changed. Each fire uses up ``allowance``; None if the tenant has no limit.
    """
    backlog = [times for times in undecided(schedule, cursor_ms, now, offsets) if not times.is_exhausted(tally)]
    late_through = _line(schedule, [times for times in backlog if times.verdict is None], now)
    expired_ms = 0 if schedule.expires_in_ms is None else now - schedule.expires_in_ms
    late_verdict = _late_verdict(schedule, backlog, now, expired_ms)
    deciding = _Deciding(schedule, cursor_ms, tally, live, allowance, offsets=offsets)
    considered = 0
    for times in backlog:
        trigger = times.trigger
        if times.verdict is not None:
            if times.goes_on and times.through_ms == now:
                break  # until it is over, an edit of a calendar may still let them fire
            deciding.pass_over(times, times.verdict)
            continue
        line_ms = late_through(times)
        if line_ms > times.after_ms:
            because_of = EXPIRED if late_verdict is Verdict.MISSED and line_ms <= expired_ms else None
            deciding.pass_over(UndecidedTimes(trigger, times.after_ms, WallMs(line_ms)), late_verdict, because_of)
        begin_ms = max(times.after_ms, line_ms)
        end_ms = deciding.before_made(begin_ms, min(times.through_ms, expired_ms))
        if end_ms > begin_ms:
            deciding.pass_over(UndecidedTimes(trigger, WallMs(begin_ms), WallMs(end_ms)), Verdict.MISSED, EXPIRED)
            begin_ms = end_ms
        nominal_ms = next_nominal(trigger, begin_ms)
        while nominal_ms is not None and nominal_ms <= times.through_ms:
            is_due = due_ms(schedule.name, trigger, nominal_ms) <= now
            if not is_due or considered >= limit or deciding.has_to_wait:
                return deciding.outcomes
            if times.is_exhausted(deciding.tally):
                break
            considered += 1
            if not deciding.fire(nominal_ms):
                through_ms = _throttled_through(schedule, backlog, times, now)
                if through_ms < nominal_ms:
                    return deciding.outcomes  # it is the newest, and waits
                nominal_ms = deciding.throttle(times, nominal_ms, through_ms)
            nominal_ms = next_nominal(trigger, nominal_ms)
    return deciding.outcomes


def _throttled_through(
    schedule: ScheduleRef, backlog: Sequence[UndecidedTimes], times: UndecidedTimes, now: int
) -> int:
    """Return the instant through which the times of that part of the backlog do not wait for room."""
    newest_ms = next(iter(_newest_due(schedule, [each for each in backlog if each.verdict is None], now)), None)
    last_ms = _last_due(schedule, times, now) or 0
    if newest_ms != last_ms:
        return last_ms  # a later part has a newer one
    waited_ms = now - due_ms(schedule.name, times.trigger, last_ms)
    return last_ms if waited_ms > min(schedule.policy.grace_ms, ROOM_WAIT_MS_MAX) else last_ms - 1


def _late_verdict(schedule: ScheduleRef, backlog: Sequence[UndecidedTimes], now: int, expired_ms: int) -> Verdict:
    """Return the verdict on times that are too late to fire."""
    if schedule.policy.catch_up is not CatchUp.LATEST:
        return Verdict.MISSED
    if not expired_ms:
        return Verdict.COALESCED
    newest_ms = next(iter(_newest_due(schedule, [each for each in backlog if each.verdict is None], now)), 0)
    return Verdict.COALESCED if newest_ms > expired_ms else Verdict.MISSED  # nothing fires that could stand for them


def _line(schedule: ScheduleRef, backlog: Sequence[UndecidedTimes], now: int) -> Callable[[UndecidedTimes], int]:
    """Return the instant through which the times of each part of the backlog are too late to fire."""
    policy = schedule.policy
    if not _is_overdue(schedule, backlog, now):
        return lambda times: times.after_ms
    if policy.catch_up is CatchUp.NONE:
        beyond_grace_ms = now - policy.grace_ms - 1
        return lambda times: _last_due(schedule, times, beyond_grace_ms) or times.after_ms
    kept = 1 if policy.catch_up is CatchUp.LATEST else policy.catch_up_max
    newest = list(islice(_newest_due(schedule, backlog, now), kept))
    first_kept_ms = newest[-1] if newest else 0
    return lambda times: min(times.through_ms, first_kept_ms - 1)


def _is_overdue(schedule: ScheduleRef, backlog: Sequence[UndecidedTimes], now: int) -> bool:
    for times in backlog:
        first_ms = times.first()
        if first_ms is not None:
            return due_ms(schedule.name, times.trigger, first_ms) < now - schedule.policy.grace_ms
    return False


def _last_due(schedule: ScheduleRef, times: UndecidedTimes, by_ms: int) -> WallMs | None:
    """Return the newest of ``times`` that was due by ``by_ms``, or None."""
    nominal_ms = latest_nominal(times.trigger, min(times.through_ms, by_ms))
    # Jitter is shorter than the gap between two times of one pattern, and no time is due before an earlier one: this
    # steps back once at most for each pattern.
    while nominal_ms is not None and due_ms(schedule.name, times.trigger, nominal_ms) > by_ms:
        nominal_ms = latest_nominal(times.trigger, nominal_ms - 1)
    return nominal_ms if nominal_ms is not None and nominal_ms > times.after_ms else None


def _newest_due(schedule: ScheduleRef, backlog: Sequence[UndecidedTimes], now: int) -> Iterable[WallMs]:
    for times in reversed(backlog):
        nominal_ms = _last_due(schedule, times, now)
        while nominal_ms is not None and nominal_ms > times.after_ms:
            yield nominal_ms
            nominal_ms = latest_nominal(times.trigger, nominal_ms - 1)


class _Deciding:
    """The outcomes so far, the counts after them, and the live jobs as if they were carried out."""

    def __init__(
        self,
        schedule: ScheduleRef,
        cursor_ms: int,
        tally: FireCounts,
        live: dict[str, None],
        allowance: FireAllowance | None,
        *,
        offsets: ZoneOffsets,
    ) -> None:
        self.outcomes: list[TimeOutcome] = []
        self.tally = tally
        self._cursor_ms = cursor_ms
        self._offsets = offsets
        self._zones = offset_zones(schedule)
        self._schedule = schedule
        self._live = live
        self._allowance = allowance
        self._fired: list[str] = []

    @property
    def has_to_wait(self) -> bool:
        """Return True if its fire has to be seen before more is decided."""
        return bool(self._fired) and self._schedule.waits_for_its_fires

    def fire(self, nominal_ms: WallMs) -> bool:
        """Decide the time; return False if there is no room for it and nothing was decided."""
        job_id = fire_job_id(self._schedule.name, nominal_ms)
        is_made = job_id in self._live
        in_the_way = None if is_made else self._in_the_way()
        if in_the_way is not None:
            self._record(Verdict.SKIPPED, nominal_ms, nominal_ms, 1, in_the_way)
            return True
        if self._allowance is not None and not is_made and not self._allowance.take(self._schedule.jobs_per_fire):
            return False
        self.tally = self.tally.plus(Verdict.FIRED)
        fire = Fire(self._schedule.name, nominal_ms, self._basis(), self.tally, offsets=self._offsets_at(nominal_ms))
        self.outcomes.append(fire)
        self._fired.append(job_id)
        return True

    def throttle(self, times: UndecidedTimes, first_ms: WallMs, through_ms: int) -> WallMs:
        """Throttle the times from ``first_ms`` on, until one that already has its job; return the last of them."""
        assert self._allowance is not None
        end_ms = self.before_made(first_ms, through_ms)
        part = UndecidedTimes(times.trigger, WallMs(first_ms - 1), WallMs(end_ms))
        self._record(Verdict.THROTTLED, first_ms, part.last() or first_ms, part.count(), self._allowance.limit)
        return WallMs(end_ms)

    def before_made(self, after_ms: int, through_ms: int) -> int:
        """Return ``through_ms``, or the instant before the first time after ``after_ms`` that already has its job."""
        made = [nominal_ms for nominal_ms in map(fired_at, self._live) if nominal_ms is not None]
        return min([through_ms, *(each - 1 for each in made if each > after_ms)])

    def pass_over(self, times: UndecidedTimes, verdict: Verdict, because_of: str | None = None) -> None:
        first_ms, last_ms = times.first(), times.last()
        if first_ms is not None and last_ms is not None:
            self._record(verdict, first_ms, last_ms, times.count(), because_of)

    def _in_the_way(self) -> str | None:
        match self._schedule.policy.overlap:
            case Overlap.SKIP if self._live or self._fired:
                return next(iter(self._live), None) or self._fired[0]
            case Overlap.BUFFER_ONE if len(self._fired) + _graphs(self._live) > 1:
                return self._fired[-1] if self._fired else last_job_id(next(reversed(self._live)))
            case _:
                return None

    def _record(self, verdict: Verdict, first_ms: WallMs, last_ms: WallMs, count: int, because_of: str | None) -> None:
        self.tally = self.tally.plus(verdict, count)
        before = self.outcomes[-1] if self.outcomes else None
        if isinstance(before, RecordVerdict) and (before.run.verdict, before.run.because_of) == (verdict, because_of):
            # The same verdict goes on: one record for both.
            first_ms, count = before.run.first_ms, before.run.count + count
            self.outcomes.pop()
        run = VerdictRun(self._schedule.name, verdict, first_ms, last_ms, count, because_of)
        self.outcomes.append(RecordVerdict(run, self._basis(), self.tally, self._offsets_at(last_ms)))

    def _offsets_at(self, nominal_ms: WallMs) -> ZoneOffsets:
        before = self.outcomes[-1] if self.outcomes else None
        cursor_ms, offsets = (self._cursor_ms, self._offsets) if before is None else (before.nominal_ms, before.offsets)
        return offsets_at(self._zones, nominal_ms, cursor_ms, offsets)

    def _basis(self) -> Basis:
        return self._schedule.basis_at(self.outcomes[-1].nominal_ms if self.outcomes else self._cursor_ms)


def _graphs(live: Iterable[str]) -> int:
    """Return how many graphs those jobs belong to, a single job counting as one: none, one, or more (2)."""
    first = None
    for last in map(last_job_id, live):
        if first not in (None, last):
            return 2
        first = last
    return 0 if first is None else 1


class ConsecutiveFailures:
    """Owner of the counts of consecutive failures of schedules' jobs that are not stored yet.

    Every replica counts the ends that it sees; the leader stores the count, so that it outlives all replicas. A job
    that ended while no replica ran is not counted. A count that may pause its schedule is stored at once; that of any
    other schedule after at least `STORED_EVERY_MS`, so that thousands that fail often do not fill the journal.
    """

    def __init__(self) -> None:
        self._counted: dict[str, int] = {}
        self._may_pause: dict[str, None] = {}
        """Those of `_counted` whose schedule pauses after too many failures."""
        self._resting = Timers()
        """When the counts of the others may be stored."""

    def schedule_seen(self, schedule: ScheduleRef, before: ScheduleRef | None) -> None:
        name = schedule.name
        is_edited = before is not None and before.rev != schedule.rev
        is_reset = before is not None and before.failures != schedule.failures
        if (is_edited and (is_reset or name in self._may_pause)) or self._counted.get(name) == schedule.failures:
            self._forget(name)
        elif name in self._counted:
            self._to_store(name)

    def schedule_gone(self, name: str) -> None:
        self._forget(name)
        self._resting.clear(name)

    def begin(self) -> None:
        """Begin to lead, with what earlier leaders have not stored."""
        self._resting = Timers()
        for name in self._counted:
            self._to_store(name)

    def job_ended(self, schedule: ScheduleRef, state: JobState | None) -> None:
        """Count the end of a job; ``state`` None or cancelled does not count."""
        name = schedule.name
        known = self._counted.get(name, schedule.failures)
        if state is not JobState.FAILED and not (state is JobState.SUCCEEDED and known):
            return
        self._counted[name] = known + 1 if state is JobState.FAILED else 0
        if schedule.policy.pause_after_failures is not None:
            self._may_pause[name] = None
        self._to_store(name)

    def next_at(self) -> int | None:
        """Return when the next count may be stored that does not pause its schedule."""
        return self._resting.next_at()

    def to_count(
        self, now: WallMs, schedule_of: Callable[[str], ScheduleRef | None], is_promised: Callable[[str], bool]
    ) -> list[CountFailures]:
        """Return the counts to store, with the schedules to pause."""
        decisions = []
        rested = (name for name, _ in self._resting.take_due(now, _STORED_AT_ONCE_MAX))
        for name in dict.fromkeys((*self._may_pause, *rested)):
            schedule, failures = schedule_of(name), self._counted.get(name)
            if schedule is None or failures is None or failures == schedule.failures:
                continue
            if name not in self._may_pause:
                self._resting.set(name, now + STORED_EVERY_MS)
            if is_promised(name):
                continue
            limit = schedule.policy.pause_after_failures
            is_too_many = limit is not None and failures >= limit and schedule.paused_at_ms is None
            pause_at_ms = now if is_too_many else None
            decisions.append(CountFailures(name, schedule.rev, failures, pause_at_ms, schedule.created_at_ms))
        return decisions

    def _to_store(self, name: str) -> None:
        if name not in self._may_pause and name not in self._resting:
            self._resting.set(name, 0)

    def _forget(self, name: str) -> None:
        self._counted.pop(name, None)
        self._may_pause.pop(name, None)
