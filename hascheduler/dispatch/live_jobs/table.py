"""The table of live jobs, and the place of each: waiting, holding a slot, set apart, or orphaned.

Owner of the table, of the queue and the slots that follow from it, and of the timers on jobs. `reconsider` derives a
job's place from three things only: what the stream shows, what the ledger has promised on top, and if the job is in
doubt. It may be called at any time, and calling it twice changes nothing.
"""

from collections import Counter
from collections.abc import Sequence

from hascheduler.dispatch.accounts import FairAccounts
from hascheduler.dispatch.capacity.admission_limits import AdmissionLimits
from hascheduler.dispatch.capacity.occupancy import Occupancy
from hascheduler.dispatch.capacity.rate_limits import KeyRates
from hascheduler.dispatch.capacity.slot_pool import SlotPool
from hascheduler.dispatch.config import DispatchConfig
from hascheduler.dispatch.decisions import NOT_STARTED, Cancel, CancelNotice, Dispatch, JobMove, Publish, Requeue, Send
from hascheduler.dispatch.ledger import Ledger
from hascheduler.dispatch.live_jobs.deadlines import Deadlines
from hascheduler.dispatch.live_jobs.dependencies import Dependencies
from hascheduler.dispatch.queue.pending_queue import PendingQueue
from hascheduler.dispatch.timers import Timers
from hascheduler.mirror.changes import BatchSeen
from hascheduler.model.job import OCCUPYING, JobRef, JobState, Move, ScheduleId

_Maker = tuple[str, int | str]
"""The name of a schedule and its creation; the tenant instead for jobs without a creation (those of 0.2.0)."""


class JobsBySchedule:
    """Owner of the job ids of each schedule, and of no other schedule of its name (see `ScheduleId`)."""

    def __init__(self) -> None:
        self._of: dict[_Maker, dict[str, None]] = {}

    def of(self, schedule: ScheduleId) -> dict[str, None]:
        """Return its jobs in the order in which they were added, those without a creation first.

        The result is read only, and valid until the next change.
        """
        own, undated = self._of.get(_maker(schedule), _NONE), self._of.get((schedule.name, schedule.tenant))
        return own if undated is None or undated is own else {**undated, **own}

    def add(self, job: JobRef) -> None:
        if job.made_by is not None:
            self._of.setdefault(_maker(job.made_by), {})[job.id] = None

    def move(self, before: JobRef | None, job: JobRef) -> None:
        """Record that ``job`` was known as ``before``; None if it was not known."""
        known, now = None if before is None else before.made_by, job.made_by
        if known is not None and now is not None and _maker(known) == _maker(now):
            return
        if before is not None:
            self.remove(before)
        self.add(job)

    def remove(self, job: JobRef) -> None:
        if job.made_by is None:
            return
        maker = _maker(job.made_by)
        jobs = self._of.get(maker)
        if jobs is not None:
            jobs.pop(job.id, None)
            if not jobs:
                del self._of[maker]


def _maker(schedule: ScheduleId) -> _Maker:
    return (schedule.name, schedule.tenant if schedule.created_at_ms is None else schedule.created_at_ms)


_NONE: dict[str, None] = {}


class LiveJobs:
    def __init__(
        self,
        config: DispatchConfig,
        *,
        ledger: Ledger,
        pool: SlotPool,
        limits: AdmissionLimits,
        key_rates: KeyRates,
        occupancy: Occupancy,
        accounts: FairAccounts,
        deadlines: Deadlines,
        queue: PendingQueue,
    ) -> None:
        self._config = config
        self._deadlines = deadlines
        self.dependencies = Dependencies()
        self.pending: Counter[str] = Counter()
        self._ledger = ledger
        self._pool = pool
        self._limits = limits
        self._key_rates = key_rates
        self._occupancy = occupancy
        self._accounts = accounts
        self.queue = queue
        self._now = 0
        self._table: dict[str, JobRef] = {}
        self._not_before = Timers()
        self._doubted = Timers()
        self._starts = Timers()
        self._orphans: dict[str, int] = {}
        self._cancelled_while_running: dict[str, None] = {}
        self._noticed: dict[str, int] = {}
        self._notices: list[CancelNotice] = []
        self._by_schedule = JobsBySchedule()
        self._unread: dict[str, JobRef] = {}
        self._replaced: dict[str, str] = {}
        self._charged: dict[str, int] = {}

    def get(self, job_id: str) -> JobRef | None:
        return self._table.get(job_id)

    def all(self) -> list[JobRef]:
        return list(self._table.values())

    def of_schedule(self, schedule: ScheduleId) -> dict[str, None]:
        """Return the ids of the schedule's live jobs, oldest first; read only, and valid until the next change."""
        return self._by_schedule.of(schedule)

    def holds_slot(self, job_id: str) -> bool:
        """Return True if it is at a processor, or is promised to one."""
        return self._pool.processor_of(job_id) is not None

    def put(self, job: JobRef) -> None:
        known = self._table.get(job.id)
        if known is None:
            self._by_schedule.move(self._unread.pop(job.id, None), job)
            self._accounts.arrive(job.tenant, job.fairness_key)
        elif (known.tenant, known.fairness_key) != (job.tenant, job.fairness_key):
            self._accounts.arrive(job.tenant, job.fairness_key)
            self._accounts.leave(known.tenant, known.fairness_key, self._now)
        if known is not None and _origin(known) != _origin(job):
            self._by_schedule.move(known, job)
        if known is None or known.batch != job.batch:
            self._move_between_batches(known, job)
        if known is None or known.state is not job.state:
            self._count(known, -1)
            self._count(job, 1)
        self._learn_of_processor(known, job)
        self._table[job.id] = job
        self._doubted.clear(job.id)
        self.dependencies.seen(job)
        self._deadlines.seen(job, self._now)
        self.reconsider(job.id)

    def remove(self, job_id: str) -> None:
        job = self._table.pop(job_id, None)
        if job is not None:
            self._accounts.leave(job.tenant, job.fairness_key, self._now)
            self._count(job, -1)
            self.dependencies.forget(job)
            self._move_between_batches(job, None)
        for gone in (job, self._unread.pop(job_id, None)):
            if gone is not None:
                self._by_schedule.remove(gone)
        self._deadlines.gone(job_id)
        self.queue.remove(job_id)
        self.queue.waits.forget(job_id)
        self._release(job_id)
        self._charged.pop(job_id, None)
        self._replaced.pop(job_id, None)
        self._orphans.pop(job_id, None)
        self._cancelled_while_running.pop(job_id, None)
        self._noticed.pop(job_id, None)
        for timers in (self._not_before, self._doubted, self._starts):
            timers.clear(job_id)

    def ended(self, job_id: str, state: JobState | None, job: JobRef | None) -> None:
        """Let the jobs go on whose last dependency ended in ``state`` (None: it does not exist).

        ``job`` is how it was known, None if it was not.
        """
        self._freed(self.dependencies.gone(job_id, state, job))

    def batch_seen(self, seen: BatchSeen) -> None:
        """Let the jobs go on whose last dependency was the batch, if all its jobs have ended."""
        self._freed(self.dependencies.batch_seen(seen))

    def _freed(self, job_ids: Sequence[str]) -> None:
        for waiting in job_ids:
            if waiting not in self.queue:
                self.queue.waits.freed(waiting, self._now)
            self.reconsider(waiting)

    def redefined(self, definition: str) -> None:
        """Apply the changed rules of the definition to its jobs."""
        for job in self._table.values():
            if job.definition == definition:
                self._deadlines.redefined(job)

    def doubt(self, job_id: str, until_ms: int) -> None:
        """Leave the job alone until then, or until the stream shows it: its document was not as expected."""
        if job_id in self._table:
            self._doubted.set(job_id, until_ms)
            self.reconsider(job_id)

    def reconsider(self, job_id: str) -> None:
        job = self._table.get(job_id)
        if job is None:
            self._release(job_id)
            return
        move = self._ledger.move(job_id)
        if isinstance(move, Dispatch):
            self._place(job, move.processor, move.attempt)
        elif job.state in OCCUPYING and (isinstance(move, Cancel) or _is_recall(move)):
            pass  # it keeps its slot until it has ended; a recalled job may still start
        elif move is not None:
            self._set_apart(job)
        elif job.state in OCCUPYING and job.processor is not None:
            self._place(job, job.processor, job.attempt)
            self._watch(job, job.processor)
        elif job_id in self._doubted or job.state is not JobState.PENDING:
            self._set_apart(job)
        elif job.cancel_requested_at_ms is not None:
            self._set_apart(job)
            self._cancelled_while_running[job_id] = None
        elif self.dependencies.holds(job_id) or job.limit_keys is None or self._ledger.is_out_of_reach(job_id):
            self._set_apart(job)
        else:
            self._enqueue(job)

    def is_in_doubt(self, job_id: str) -> bool:
        return job_id in self._doubted

    def is_out_of_reach(self, job_id: str) -> bool:
        """Return True if the job is not dispatched before the stream has shown it."""
        return self._ledger.is_out_of_reach(job_id)

    def is_replaced(self, job_id: str) -> bool:
        """Return True if a later fire replaces the job."""
        return job_id in self._replaced

    def orphan(self, processor_id: str) -> None:
        """Mark the jobs that hold slots of the processor as orphans: it is gone or lost."""
        for job_id in self._pool.occupants(processor_id):
            self._orphans.setdefault(job_id, self._now)

    def orphans(self) -> list[JobRef]:
        """Return the jobs whose attempt belongs to a processor that is lost or not registered, in order of id.

        A registration that is gone, or does not exist yet, proves nothing: a live processor registers again with its
        next heartbeat, and its jobs are spared until then.
        """
        found = []
        for job_id in sorted(self._orphans):
            job = self._table.get(job_id)
            if job is None or job.state not in OCCUPYING or self._pool.is_live(job.processor or ""):
                del self._orphans[job_id]
            elif self._ledger.move(job_id) is None and job_id not in self._doubted and not self._is_spared(job):
                found.append(job)
        return found

    def processor_may_live(self, job: JobRef) -> bool:
        """Return True if the processor of an orphan is not registered, rather than lost."""
        return not self._pool.is_known(job.processor or "")

    def _is_spared(self, job: JobRef) -> bool:
        may_run = job.state is JobState.RUNNING and self.processor_may_live(job)
        return may_run and self._now < self._orphans[job.id] + self._config.unknown_spared_ms

    def cancelled_while_running(self) -> list[JobRef]:
        """Return the jobs that became pending again after a request to stop while running: they must not run again."""
        found = []
        for job_id in sorted(self._cancelled_while_running):
            job = self._table.get(job_id)
            if job is None or job.state is not JobState.PENDING or job.cancel_requested_at_ms is None:
                del self._cancelled_while_running[job_id]
            elif self._ledger.move(job_id) is None and job_id not in self._doubted:
                found.append(job)
        return found

    def dependency_failed(self) -> list[tuple[JobRef, str]]:
        """Return the pending jobs whose dependencies failed, and why."""
        found = []
        for job_id, reason in self.dependencies.dependency_failed():
            job = self._unpromised(job_id)
            if job is not None and job.state is JobState.PENDING:
                found.append((job, reason))
        return found

    def take_overdue(self, limit: int) -> list[tuple[JobRef, str]]:
        """Return the jobs whose time is over, and why; a job that stays as it is comes again after ``doubt_ms``."""
        found = []
        for job_id in self._deadlines.take_due(self._now, limit):
            self._deadlines.postpone(job_id, self._now + self._config.doubt_ms)
            job = self._unpromised(job_id)
            if job is not None:
                why = self._deadlines.over(job, self._now)
                if why:
                    found.append((job, why))
        return found

    def unread_dependencies(self, *, leading: bool) -> Sequence[str]:
        """Return the dependencies that have yet to be read, each once."""
        over = self.dependencies.take_over()
        if not leading:
            return over
        return [*over, *self.dependencies.take_unread(lambda job_id: job_id in self._table)]

    def replace(self, job_id: str, reason: str) -> None:
        """Mark the job to be cancelled: a later fire replaces it."""
        job = self._table.get(job_id)
        if job is not None and job.cancel_requested_at_ms is None:
            self._replaced[job_id] = reason

    def replaced(self) -> list[tuple[JobRef, str]]:
        """Return the replaced jobs that are not cancelled yet, and why."""
        found = []
        for job_id, reason in list(self._replaced.items()):
            job = self._table.get(job_id)
            if job is None or job.cancel_requested_at_ms is not None:
                del self._replaced[job_id]
            elif self._ledger.move(job_id) is None and job_id not in self._doubted:
                found.append((job, reason))
        return found

    def forget_replaced(self) -> None:
        self._replaced.clear()

    def occupy_unseen(self, job: JobRef, processor_id: str) -> None:
        """Give a slot to a job that has yet to be read."""
        self._by_schedule.add(job)
        self._unread[job.id] = job
        self._occupancy.take(job, processor_id)

    # Time

    def advance(self, now: int) -> None:
        """Let time pass: jobs whose ``not_before`` or backoff is over go on."""
        self._now = now
        for timers in (self._not_before, self._doubted):
            for job_id, _ in timers.take_due(now, len(timers)):
                self.reconsider(job_id)

    def next_at(self) -> int | None:
        instants = [timers.next_at() for timers in (self._not_before, self._doubted, self._starts, self._deadlines)]
        spared = (since_ms + self._config.unknown_spared_ms for since_ms in self._orphans.values())
        instants.append(min((at_ms for at_ms in spared if at_ms > self._now), default=None))
        return min((at for at in instants if at is not None), default=None)

    def take_unstarted(self, now: int, accepting_since_ms: int | None, limit: int) -> tuple[list[Send], list[Requeue]]:
        """Return what to do for dispatched jobs that should have started by now: messages to resend, and moves.

        Only the time since ``accepting_since_ms`` counts against a processor: since then the broker accepts this
        leader's messages (None: it does not). Before that the message may never have left, and the job is checked again
        later.
        """
        sends: list[Send] = []
        moved: list[Requeue] = []
        for job_id, _ in list(self._starts.take_due(now, limit)):
            job = self._table.get(job_id)
            if job is None or job.state is not JobState.DISPATCHED or self._ledger.move(job_id) is not None:
                continue
            if accepting_since_ms is not None:
                sent_since_ms = max(job.dispatched_at_ms or 0, accepting_since_ms)
                if now - sent_since_ms >= self._config.move_after_ms:
                    moved.append(Requeue(job.id, job.attempt, NOT_STARTED))
                    continue
                if job.processor is not None:
                    sends.append(Publish(job.id, job.attempt, job.processor))
            self._starts.set(job_id, now + self._config.start_timeout_ms)
        return sends, moved

    def resend_all(self, now: int) -> list[Send]:
        """Return the messages of a new leader: for every dispatched attempt, and every running one asked to stop."""
        sends: list[Send] = []
        for job in self._table.values():
            if job.processor is None or self._ledger.move(job.id) is not None:
                continue
            if job.state is JobState.DISPATCHED:
                sends.append(Publish(job.id, job.attempt, job.processor))
                self._starts.set(job.id, now + self._config.start_timeout_ms)
            elif job.state is JobState.RUNNING and job.cancel_requested_at_ms is not None:
                sends.append(CancelNotice(job.id, job.attempt, job.processor))
        self._notices.clear()
        return sends

    def take_cancel_notices(self) -> list[CancelNotice]:
        """Remove and return the cancel requests that this dispatcher has not sent yet."""
        notices, self._notices = self._notices, []
        return notices

    def _learn_of_processor(self, known: JobRef | None, job: JobRef) -> None:
        """Record if a processor started the jobs that it was given."""
        is_new = known is None or (known.state, known.attempt) != (job.state, job.attempt)
        if is_new and job.state is JobState.RUNNING and job.processor is not None:
            self._pool.took_up(job.processor)
        if known is not None and job.unstarted > known.unstarted:
            given_to = self._pool.processor_of(job.id)
            if given_to is not None:
                self._pool.missed(given_to)

    def _unpromised(self, job_id: str) -> JobRef | None:
        """Return the job if no move of it is promised and it is not in doubt."""
        if self._ledger.move(job_id) is not None or job_id in self._doubted:
            return None
        return self._table.get(job_id)

    def _count(self, job: JobRef | None, more: int) -> None:
        if job is not None and job.state is JobState.PENDING:
            self.pending[job.tenant] += more
            if not self.pending[job.tenant]:
                del self.pending[job.tenant]

    def _move_between_batches(self, before: JobRef | None, after: JobRef | None) -> None:
        if before is not None and before.batch is not None:
            self.dependencies.left(before.batch)
        if after is not None and after.batch is not None:
            self.dependencies.joined(after.batch)

    # Places

    def _enqueue(self, job: JobRef) -> None:
        self._release(job.id)
        self._starts.clear(job.id)
        at_ms = max(job.not_before_ms or 0, job.retry_at_ms or 0)
        if at_ms <= self._now:
            self.queue.add(job)
        else:
            self.queue.remove(job.id)
            self._not_before.set(job.id, at_ms)

    def _set_apart(self, job: JobRef) -> None:
        self._release(job.id)
        self.queue.remove(job.id)
        self._starts.clear(job.id)

    def _place(self, job: JobRef, processor_id: str, attempt: int) -> None:
        self._not_before.clear(job.id)
        self._charge(job, attempt)
        # Its locks first: jobs that wait for them need not be checked when it leaves the queue.
        self.queue.freed(self._occupancy.take(job, processor_id))
        self.queue.remove(job.id)

    def _charge(self, job: JobRef, attempt: int) -> None:
        """Charge each attempt once: when this leader promises it, or when the stream shows it."""
        if self._charged.get(job.id) == attempt:
            return
        self._charged[job.id] = attempt
        is_shown = job.attempt == attempt
        if not (is_shown and self._accounts.is_counted(job.dispatched_at_ms)):
            self._accounts.charge(job.tenant, job.fairness_key, job.definition, job.target)
            self._limits.spend(job.definition, self._now)
            self._key_rates.spend(job, self._now)

    def _release(self, job_id: str) -> None:
        """Give back what the job holds; jobs that waited for its locks go on."""
        self.queue.freed(self._occupancy.release(job_id))

    def _watch(self, job: JobRef, processor_id: str) -> None:
        if not self._pool.is_live(processor_id):
            self._orphans.setdefault(job.id, self._now)
        if job.state is JobState.DISPATCHED:
            if job.id not in self._starts:
                self._starts.set(job.id, (job.dispatched_at_ms or 0) + self._config.start_timeout_ms)
            return
        self._starts.clear(job.id)
        if job.cancel_requested_at_ms is not None and self._noticed.get(job.id) != job.attempt:
            self._noticed[job.id] = job.attempt
            self._notices.append(CancelNotice(job.id, job.attempt, processor_id))


def _origin(job: JobRef) -> tuple[str, int | None]:
    return (job.tenant, job.schedule_created_at_ms)


def _is_recall(move: JobMove | None) -> bool:
    return isinstance(move, Requeue) and move.move is Move.RECALL
