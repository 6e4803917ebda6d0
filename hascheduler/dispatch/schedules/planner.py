"""The decisions about schedules: their due times, the jobs that a later fire replaces, the failures in a row.

Owner of `DueTimes`, `ConsecutiveFailures` and `FireAdmission`. It decides only when it is called, and promises each
decision in the ledger.

`cursor_steps` tells from the stored schedule if outcomes of nominal times may still be carried out. Each outcome holds
what it was based on: the cursor before it, which times were in force, and, for a fire, if it makes one job or several,
as these are inserted and dispatched differently. So the outcomes form a chain of steps that begins at the stored
cursor, and the cursor moves only along it. Therefore all times up to the cursor are decided *and* carried out, whatever
got lost on the way, and an edit in between loses nothing: what was decided before the edit and not carried out by then
is decided again.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain, islice
from typing import Any

from hascheduler.dispatch.decisions import (
    CountFailures,
    Decision,
    Fire,
    RecordVerdict,
    ResetCursor,
    Settlement,
    TimeOutcome,
)
from hascheduler.dispatch.ledger import Ledger
from hascheduler.dispatch.live_jobs.table import LiveJobs
from hascheduler.dispatch.rules import Rules
from hascheduler.dispatch.schedules.due_times import DueTimes
from hascheduler.dispatch.schedules.fire_admission import FireAdmission, FireAllowance
from hascheduler.dispatch.schedules.time_outcomes import ConsecutiveFailures
from hascheduler.errors import InvalidInput
from hascheduler.model.documents.fired_job import fired_job, jobs_waited_for
from hascheduler.model.documents.schedule import decode_fire_counts
from hascheduler.model.job import JobState, fired_at, is_before_last, last_job_id, replaced_error
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import NOTHING_DECIDED, FireCounts, Verdict
from hascheduler.schema.schedule import Overlap, ScheduleRef

OVERDUE_MAX = 10_000
"""How many schedules one search for late ones returns at most."""


class SchedulePlanner:
    def __init__(self, jobs: LiveJobs, ledger: Ledger, rules: Rules) -> None:
        self._rules = rules
        self._admission = FireAdmission(rules)
        self._jobs = jobs
        self._ledger = ledger
        self.due_times = DueTimes(rules.calendars)
        self._failures = ConsecutiveFailures()

    # Facts

    def seen(self, schedule: ScheduleRef) -> None:
        before = self.due_times.schedule(schedule.name)
        if before is not None and before.created_at_ms != schedule.created_at_ms:
            self.gone(schedule.name)  # its deletion was missed: this is another schedule of that name
        self._failures.schedule_seen(schedule, self.due_times.schedule(schedule.name))
        self.due_times.seen(schedule)
        self._ledger.schedule_seen(schedule)

    def gone(self, name: str) -> None:
        self._failures.schedule_gone(name)
        self.due_times.gone(name)
        self._admission.waits_no_more(name)
        self._ledger.schedule_gone(name)

    def job_ended(self, job_id: str, state: JobState | None) -> None:
        """Count the end of a job; call it before the job is removed, as an unknown job counts for nothing.

        Only the last job of a graph counts: if another fails, the last fails too.
        """
        job = None if is_before_last(job_id) else self._jobs.get(job_id)
        made_by = None if job is None else job.made_by
        schedule = None if made_by is None else self.due_times.schedule(made_by.name)
        if schedule is not None and made_by is not None and schedule.identity.is_same(made_by):
            self._failures.job_ended(schedule, state)

    def settled(self, outcome: TimeOutcome, settlement: Settlement, doubt_until_ms: int) -> None:
        if settlement is Settlement.LOST:
            self.due_times.lose(outcome, doubt_until_ms)
        elif settlement is Settlement.UNKNOWN:
            self.due_times.hold(outcome.schedule)  # nothing about later times can be carried out before this is

    def overdue(self, before_ms: int) -> list[ScheduleRef]:
        """Return schedules that may be late: all that have an undecided time which was due before then, and others.

        The work is bounded: if there are over `OVERDUE_MAX`, some are left out.
        """
        names = islice(chain(self.due_times.overdue(before_ms), self._admission.short), OVERDUE_MAX)
        found = map(self.due_times.schedule, dict.fromkeys(names))
        return [schedule for schedule in found if schedule is not None]

    # Leading

    def begin(self, reapplied: Sequence[TimeOutcome]) -> None:
        """Begin to lead: ``reapplied`` is decided, and jobs that an earlier leader left to be replaced are replaced."""
        self._failures.begin()
        # The stream may have yet to show their jobs.
        fires: dict[str, list[Fire]] = defaultdict(list)
        for outcome in reapplied:
            is_unseen = isinstance(outcome, Fire) and self._jobs.get(outcome.job_id) is None
            self.due_times.promise(outcome, is_unseen=is_unseen)
            if isinstance(outcome, Fire):
                fires[outcome.schedule].append(outcome)
        for schedule in self.due_times.schedules():
            if schedule.policy.overlap is Overlap.CANCEL_RUNNING:
                its_own = [fire for fire in fires[schedule.name] if fire.basis.is_of(schedule.created_at_ms)]
                self._replace_all_but_newest(schedule, [fire.job_id for fire in its_own])

    def stop(self) -> None:
        self.due_times.forget_promises()
        self._admission.forget()

    def take_due(self, now: WallMs, limit: int) -> list[Decision]:
        """Decide the times that are due."""
        for name in self.due_times.held():
            if not self._ledger.has_outcomes(name):
                self.due_times.resume(name)
        self._admission.forget_seen(self._ledger.is_unseen_fire)
        decisions: list[Decision] = []

        def allowance(schedule: ScheduleRef) -> FireAllowance | None:
            tenant = schedule.template.tenant
            self._admission.waits_no_more(schedule.name)
            return self._admission.allowance(tenant, self._jobs.pending[tenant], now)

        def fell_short(schedule: ScheduleRef) -> int:
            return self._admission.fell_short(schedule, now)

        for outcomes in self.due_times.take_due(now, limit, self._jobs.of_schedule, allowance, fell_short):
            for outcome in outcomes:
                schedule = self.due_times.schedule(outcome.schedule)
                if schedule is not None and isinstance(outcome, Fire):
                    fire = self._completed(outcome, schedule)
                    self._ledger.promise(fire, now)
                    self._fire(fire, schedule, now)
                    decisions.append(fire)
                else:
                    self._ledger.promise(outcome, now)
                    decisions.append(outcome)
        return decisions

    def _completed(self, fire: Fire, schedule: ScheduleRef) -> Fire:
        """Return the fire with what depends on the jobs that it makes.

        This is the keys at which their definitions have limits, the jobs they wait for, and if they are a graph.
        """
        definitions = schedule.definitions
        keys = tuple(dict.fromkeys(key for name in definitions for key in self._rules.definition(name).keyed_by))
        live = self._jobs.of_schedule(schedule.identity)
        overlap, holds_slot = schedule.policy.overlap, self._jobs.holds_slot
        after = jobs_waited_for(schedule, overlap, live, fire.job_id, holds_slot=holds_slot)
        is_graph = schedule.graph is not None
        return replace(fire, keyed_by=keys, after=after, is_graph=is_graph) if keys or after or is_graph else fire

    def next_count_at(self) -> int | None:
        """Return when the next count of failures may be stored."""
        return self._failures.next_at()

    def take_counts(self, now: WallMs) -> list[CountFailures]:
        """Decide the counts of failures to store, and the schedules to pause because of them."""
        counts = self._failures.to_count(
            now, self.due_times.schedule, lambda name: self._ledger.count(name) is not None
        )
        for count in counts:
            self._ledger.promise(count, now)
        return counts

    def take_resets(self, now: WallMs) -> list[ResetCursor]:
        """Decide the requested resets, each once no outcome of the schedule's times is promised."""
        resets = [
            ResetCursor(schedule.name, schedule.reset_at_ms, schedule.created_at_ms)
            for schedule in self.due_times.to_reset()
            if schedule.reset_at_ms is not None
            and not (self._ledger.has_outcomes(schedule.name) or self._ledger.has_reset(schedule.name))
        ]
        for reset in resets:
            self._ledger.promise(reset, now)
        return resets

    def _fire(self, fire: Fire, schedule: ScheduleRef, now: WallMs) -> None:
        known = self._jobs.get(fire.job_id)
        if known is not None:
            # An earlier leader inserted it and the cursor did not follow; deciding it again repairs that. A job of an
            # earlier schedule of that name (clocks differ) is in the way: the store finds it, and settles the fire.
            if known.made_by is not None and schedule.identity.is_same(known.made_by):
                self._ledger.job_seen(known)
            return
        self._admission.fired(schedule.template.tenant, fire.job_id, schedule.jobs_per_fire, now)
        job = fired_job(schedule, fire.nominal_ms)
        if fire.keyed_by or fire.after or schedule.graph is not None:
            # Its values are in its payload, which the store renders, and jobs it waits for that do not exist yet
            # would count as succeeded: it can't be dispatched before the stream shows both.
            job = replace(job, limit_keys=None, waits_for=())
        self._jobs.put(job)
        if schedule.policy.overlap is Overlap.CANCEL_RUNNING:
            self._replace_all_but_newest(schedule)

    def _replace_all_but_newest(self, schedule: ScheduleRef, unseen: Sequence[str] = ()) -> None:
        """Replace the jobs of fires, ``unseen`` ones included, except the newest; backfilled and manual jobs stay."""
        live = self._jobs.of_schedule(schedule.identity)
        fired = [job_id for job_id in reversed(live) if job_id.startswith("fire:")]
        newest = max({*map(last_job_id, fired), *unseen}, key=lambda job_id: fired_at(job_id) or 0, default="")
        # Jobs that wait for others come first, so that they do not fail because one of those was cancelled.
        for job_id in sorted(fired, key=is_before_last):
            if last_job_id(job_id) != newest:
                self._jobs.replace(job_id, replaced_error(newest))


class CursorStep(StrEnum):
    """The state of one outcome in the chain."""

    NEXT = "next"
    """It follows the one before it: write its job or record, and let the cursor move to it."""
    WRITTEN = "written"
    """It follows, and its job or record was written before an edit: only the cursor has yet to move."""
    DECIDED = "decided"
    """It was carried out: the cursor has passed it, or it was written before its schedule was deleted."""
    EARLY = "early"
    """An outcome before it is missing, which it has to wait for."""
    OTHER = "other"
    """The schedule is gone, is another one of that name, or was edited in between."""


SETTLEMENT_OF = {
    CursorStep.WRITTEN: Settlement.DONE,
    CursorStep.DECIDED: Settlement.DONE,
    CursorStep.EARLY: Settlement.UNKNOWN,
    CursorStep.OTHER: Settlement.LOST,
}
"""The settlement of an outcome that needs no write; a `NEXT` one has to be written."""


@dataclass(frozen=True, slots=True)
class CursorSteps:
    """The steps of one schedule in the order of their times, from the stored cursor on."""

    cursor_ms: int
    tally: FireCounts
    links: Sequence[tuple[TimeOutcome, CursorStep]]


def counted(tally: FireCounts, outcome: TimeOutcome) -> FireCounts:
    """Return the stored counts after the cursor has moved through ``outcome``.

    They may differ from its own ``tally``: earlier times may have been decided differently since it was decided.
    """
    if isinstance(outcome, RecordVerdict):
        return tally.plus(outcome.run.verdict, outcome.run.count)
    return tally.plus(Verdict.FIRED)


def cursor_steps(
    schedule: Mapping[str, Any] | None, outcomes: Sequence[TimeOutcome], written: Collection[TimeOutcome]
) -> CursorSteps:
    """Return the steps of ``outcomes`` of one stored schedule, which is None if it is gone.

    ``written`` are those whose job or record is stored already; only outcomes that are not `is_current` need it.
    """
    if schedule is None or not isinstance(schedule.get("cursor_ms"), int):
        gone = [(each, CursorStep.DECIDED if each in written else CursorStep.OTHER) for each in outcomes]
        return CursorSteps(0, NOTHING_DECIDED, gone)
    cursor_ms = schedule["cursor_ms"]
    links: list[tuple[TimeOutcome, CursorStep]] = []
    for outcome in sorted(outcomes, key=lambda outcome: outcome.nominal_ms):
        link = _step(schedule, outcome, cursor_ms, outcome in written)
        links.append((outcome, link))
        if link in (CursorStep.NEXT, CursorStep.WRITTEN):
            cursor_ms = outcome.nominal_ms
    return CursorSteps(schedule["cursor_ms"], _tally(schedule), links)


def _tally(schedule: Mapping[str, Any]) -> FireCounts:
    try:
        return decode_fire_counts(schedule.get("tally"))
    except InvalidInput:  # broken by hand, which must not stop its times
        return NOTHING_DECIDED


def is_current(schedule: Mapping[str, Any], outcome: TimeOutcome) -> bool:
    """Return True if the schedule is still the one that the outcome was decided for.

    It has the same creation, the same times are in force, and it still makes one job, or several.
    """
    basis = outcome.basis
    since_ms = schedule.get("since_ms", schedule.get("created_at_ms"))
    in_force = (since_ms, schedule.get("paused_at_ms")) == (basis.since_ms, basis.paused_at_ms)
    return in_force and _is_same(schedule, outcome) and _makes_as_decided(schedule, outcome)


def _step(schedule: Mapping[str, Any], outcome: TimeOutcome, cursor_ms: int, is_written: bool) -> CursorStep:
    if not _is_same(schedule, outcome):
        return CursorStep.DECIDED if is_written else CursorStep.OTHER
    if outcome.nominal_ms <= cursor_ms:
        return CursorStep.DECIDED
    follows = outcome.basis.cursor_ms == cursor_ms
    if is_current(schedule, outcome):
        return CursorStep.NEXT if follows else CursorStep.EARLY
    return CursorStep.WRITTEN if follows and is_written else CursorStep.OTHER


def _makes_as_decided(schedule: Mapping[str, Any], outcome: TimeOutcome) -> bool:
    job = schedule.get("job")
    return not isinstance(outcome, Fire) or outcome.is_graph == (isinstance(job, Mapping) and "jobs" in job)


def _is_same(schedule: Mapping[str, Any], outcome: TimeOutcome) -> bool:
    """Return True if the schedule has the creation for which the outcome was decided.

    The journal of 0.2.0 does not store the creation: there a schedule created at or after the nominal time is another
    one.
    """
    created_at_ms = schedule.get("created_at_ms")
    if not isinstance(created_at_ms, int):
        return False
    if outcome.basis.created_at_ms is None:
        return created_at_ms < outcome.nominal_ms
    return outcome.basis.is_of(created_at_ms)
