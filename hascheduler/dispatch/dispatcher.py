"""The dispatcher: one synchronous state machine that every replica runs, and that decides only while it leads.

Theory of operation. `step` first folds its inputs, as every replica does. Then, while leading, it decides in this
order: promises that did not come back, jobs whose processor is gone, jobs that did not start, jobs past their deadline
or with failed dependencies, due nominal times, jobs that a later fire replaces, counts of failures, holds that cover
nothing any more, and last dispatches, which see the effects of all the others. Each decision becomes a promise at once.

What must hold: at most one move is promised per job; a nominal time is decided once; a slot is held by one job; nothing
is decided before `TermBegan` or after `TrustLost`.

While everything is paused, due times stay undecided, as without a leader, and nothing is dispatched, unless
only the schedules are paused. The rest goes on: running jobs end, are lost, are retried, expire.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import TypeVar

from hascheduler.dispatch.config import DispatchConfig
from hascheduler.dispatch.decisions import (
    LOST_UNSTARTED,
    NOT_STARTED,
    TIMED_OUT,
    UNREGISTERED,
    Cancel,
    CountFailures,
    Decision,
    Dispatch,
    Fail,
    Fire,
    JobMove,
    RecordVerdict,
    ReleaseHold,
    Requeue,
    ResetCursor,
    Send,
    Settlement,
)
from hascheduler.dispatch.explanation import Explanation
from hascheduler.dispatch.inputs import (
    AccountsRestored,
    Input,
    ProcessorLost,
    ProcessorRests,
    Resynced,
    Settled,
    Step,
    TermBegan,
    TransportSeen,
    TrustLost,
)
from hascheduler.dispatch.live_jobs.deadlines import TIMED_OUT_IN_ALL
from hascheduler.dispatch.state import CoreState, state_snapshot
from hascheduler.mirror import changes
from hascheduler.model.collection import Collection
from hascheduler.model.documents.fired_job import fired_job
from hascheduler.model.job import OCCUPYING, JobRef, JobState
from hascheduler.model.partition import partition_key, partition_of, partition_of_key
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.retry import lost_text, tries_text

_Found = TypeVar("_Found")


class Dispatcher:
    def __init__(self, config: DispatchConfig | None = None) -> None:
        self._config = config or DispatchConfig()
        self._leading = False
        self._accepting = True
        self._accepting_since_ms = 0
        self._more = False
        self.forget()

    def forget(self) -> None:
        """Forget the whole state."""
        self.state = CoreState(self._config)
        """Only `step` changes it."""
        self._ledger = self.state.ledger
        self._pool = self.state.pool
        self._jobs = self.state.jobs
        self._times = self.state.times
        self._held = self.state.held
        self._refetch: dict[str, None] = {}
        self._sends: list[Send] = []

    @property
    def awaits_ends(self) -> bool:
        """Return True if the end of another job could let a job go on: by a slot, a limit, a lock or a dependency."""
        return len(self.state.queue) > 0 or self._jobs.dependencies.are_unmet

    def occupied(self, processor_id: str) -> int:
        """Return the number of the processor's slots that are held, promises included."""
        return len(self._pool.occupants(processor_id))

    def pending(self, tenant: str | None = None) -> int:
        """Return the number of pending jobs, of that tenant or in all."""
        return self._jobs.pending.total() if tenant is None else self._jobs.pending[tenant]

    @property
    def runnable(self) -> int:
        """Return how many pending jobs wait for nothing but a slot.

        Their time has come, nothing else holds them back, and some processor runs their definition, with a free slot or
        not.
        """
        takes = self._pool.supporting
        return sum(count for definition, count in self.state.queue.counts().items() if takes(definition))

    def explain(self, job_id: str, now: WallMs, only: str | None = None) -> Explanation | None:
        """Return why the job waits, as far as this replica knows; None if it knows no live job of that id.

        With ``only``, jobs of other tenants are not named.
        """
        return self.state.explainer.explain(job_id, now, is_silent=self._leading and not self._accepting, only=only)

    def short_of(self, now: WallMs) -> frozenset[str]:
        """Return the keys of the caps with turns that alone hold back some job here."""
        if self.state.rules.dispatch_pause is not None:
            return frozenset()
        classes = self.state.queue.waiting_classes()
        return frozenset(chain.from_iterable(self.state.limits.short_of(each, now) for each in classes))

    def state_snapshot(self, now: WallMs) -> Iterator[Input]:
        """Return the inputs that would reproduce this state in another dispatcher, and make it lead."""
        return state_snapshot(self.state, now, accepting=self._accepting)

    def step(self, now: WallMs, inputs: Sequence[Input]) -> Step:
        """Fold ``inputs`` in order, then decide if this replica leads."""
        self.state.advance(now)
        for seen in inputs:
            self._fold(seen, now)
        decisions: list[Decision] = []
        retried = False
        self._more = False
        if self._held:
            self._clear_held()
        if self._leading:
            decisions += self._overdue(now)
            retried = bool(decisions)
            decisions += self._recalled(now)
            decisions += self._orphaned(now)
            decisions += self._unstarted(now)
            decisions += self._past_deadline(now)
            decisions += self._dependency_failed(now)
            if self.state.rules.pause is None:
                decisions += self._times.take_due(now, self._config.fires_max)
            decisions += self._replaced(now)
            decisions += self._times.take_counts(now)
            decisions += self._times.take_resets(now)
            decisions += self._released(now)
            if self._dispatching:
                decisions += self._dispatches(now)
            for job_id in self._ledger.take_new_fires():
                self._jobs.reconsider(job_id)
            self._ledger.handed_out(decisions)
            self._sends += self._jobs.take_cancel_notices()
        else:
            self._jobs.take_cancel_notices()
        self._refetch |= dict.fromkeys(self._jobs.unread_dependencies(leading=self._leading))
        sends, self._sends = tuple(self._sends), []
        refetch, self._refetch = tuple(self._refetch), {}
        return Step(
            decisions=tuple(decisions),
            retried=retried,
            sends=sends,
            settled=self._ledger.take_settled(),
            refetch=refetch,
            wake_at_ms=self._wake_at(now),
        )

    # Folding

    def _fold(self, seen: Input, now: WallMs) -> None:
        match seen:
            case changes.JobSeen(job):
                self._ledger.job_seen(job)
                partition = self._held.of(job.tenant)
                if partition is None:
                    self._jobs.put(job)
                else:
                    self._seen_in_held(seen, partition)
            case changes.JobGone(job_id, None) if self._ledger.has_yet_to_insert(job_id):
                pass  # the read is older than the insert of the job; its slot and locks stay held
            case changes.JobGone(job_id):
                self._held.jobs.forget(job_id)
                self.state.job_gone(seen, now)
            case changes.BatchSeen():
                self._jobs.batch_seen(seen)
            case changes.ScheduleSeen(schedule):
                partition = self._held.of(schedule.template.tenant)
                if partition is None:
                    self._times.seen(schedule)
                elif self._ledger.has_outcomes(schedule.name):
                    self._held.schedules.leave(schedule.name, partition)
                    self._times.seen(schedule)
                else:
                    self._keep_schedule(seen, partition)
            case changes.ScheduleGone(name):
                self._held.schedules.forget(name)
                self._times.gone(name)
            case changes.NounSeen(Collection.HOLDS, key, hold):
                self._ledger.hold_seen(key, hold)
                self.state.set_rule(Collection.HOLDS, key, hold, now)
                self._hold_or_lift(partition_of_key(key), now, is_held=hold is not None and hold.is_held)
            case changes.NounSeen(collection, id, noun):
                self.state.set_rule(collection, id, noun, now)
            case AccountsRestored(accounts):
                self.state.accounts.restore(accounts)
            case changes.ProcessorSeen(processor):
                self._pool.seen(processor)
            case changes.ProcessorGone(processor_id):
                self._pool.gone(processor_id)
                self._jobs.orphan(processor_id)
            case ProcessorLost(processor_id, beat):
                self._pool.lost(processor_id, beat)
                self._jobs.orphan(processor_id)
            case ProcessorRests(processor_id, rest):
                self._pool.rest(processor_id, rest)
            case TransportSeen(accepting):
                if accepting and not self._accepting:
                    self._accepting_since_ms = now
                self._accepting = accepting
            case Settled(decision, settlement):
                self._settle(decision, settlement, now)
            case TermBegan(_, reapplied):
                self._begin(reapplied, now)
            case TrustLost():
                self._stop()
            case Resynced():
                self._leading = False
                self.forget()

    # Held partitions

    def _hold_or_lift(self, partition: int | None, now: WallMs, *, is_held: bool) -> None:
        if partition is None:
            return
        if is_held:
            self._held.hold(partition, self._jobs.all(), self._times.due_times.schedules())
        for seen in () if is_held else self._held.lift(partition):
            self._fold(seen, now)

    def _seen_in_held(self, seen: changes.JobSeen, partition: int) -> None:
        """Let a job go on if a processor has it; keep any other aside once no move of it is promised any more."""
        job = seen.job
        if self._has_slot_here(job, partition) or self._ledger.move(job.id) is not None:
            self._held.jobs.leave(job.id, partition)
            self._jobs.put(job)
        else:
            self._jobs.remove(job.id)
            self._held.jobs.keep(job.id, seen, partition)

    def _has_slot_here(self, job: JobRef, partition: int) -> bool:
        """Return True if a processor of this shard has the job: if its partition is silent, other shards have it."""
        hold = self.state.rules.holds.get(partition_key(partition))
        return job.state in OCCUPYING and not (hold is not None and hold.is_silent)

    def _keep_schedule(self, seen: changes.ScheduleSeen, partition: int) -> None:
        if self._times.due_times.schedule(seen.schedule.name) is not None:
            self._times.gone(seen.schedule.name)
        self._held.schedules.keep(seen.schedule.name, seen, partition)

    def _clear_held(self) -> None:
        """Keep aside the jobs and schedules without promises, and decide nothing more about the others."""
        for job_id in self._held.jobs.leaving():
            job = self._jobs.get(job_id)
            partition = None if job is None else self._held.of(job.tenant)
            if job is None or partition is None:
                self._held.jobs.forget(job_id)
            elif not (
                self._has_slot_here(job, partition) or self._ledger.move(job_id) or self._ledger.is_unseen_fire(job_id)
            ):
                self._seen_in_held(changes.JobSeen(job), partition)
        for name in self._held.schedules.leaving():
            schedule = self._times.due_times.schedule(name)
            partition = None if schedule is None else self._held.of(schedule.template.tenant)
            if schedule is None or partition is None:
                self._held.schedules.forget(name)
            elif self._ledger.has_outcomes(name):
                self._times.due_times.hold(name)  # until its promised outcomes are over
            else:
                self._keep_schedule(changes.ScheduleSeen(schedule), partition)

    def _recalled(self, now: WallMs) -> list[Decision]:
        """Requeue jobs that came late: they are not sent, and kept aside."""
        return [
            self._move(Requeue(job.id, job.attempt, NOT_STARTED), now)
            for job in self._came_late()
            if not self._jobs.is_in_doubt(job.id)
        ]

    def _came_late(self) -> list[JobRef]:
        """Return the jobs that are dispatched in a released partition, by writes from before its release."""
        found = [self._jobs.get(job_id) for job_id in self._held.jobs.leaving()] if self._held else []
        return [
            job
            for job in found
            if job is not None
            and job.state is JobState.DISPATCHED
            and self._ledger.move(job.id) is None
            and self._is_released(partition_of(job.tenant))
        ]

    def _is_released(self, partition: int) -> bool:
        hold = self.state.rules.holds.get(partition_key(partition))
        return hold is not None and hold.is_released

    def _has_left(self, partition: int) -> bool:
        """Return True if nothing of that partition runs or is promised here, whatever the promise is about."""
        return not self._held.is_left(partition) and all(
            self._is_elsewhere(each, partition) for each in self._ledger.promises()
        )

    def _is_elsewhere(self, promised: Decision, partition: int) -> bool:
        match promised:
            case ReleaseHold():
                return True
            case Fire() | RecordVerdict() | CountFailures() | ResetCursor():
                schedule = self._times.due_times.schedule(promised.schedule)
                return schedule is not None and partition_of(schedule.template.tenant) != partition
            case _:
                job = self._jobs.get(promised.job_id)
                return job is not None and partition_of(job.tenant) != partition

    def _settle(self, decision: Decision, settlement: Settlement, now: WallMs) -> None:
        if self._ledger.came_back(decision):
            self._end_promise(decision, settlement, now)

    def _end_promise(self, decision: Decision, settlement: Settlement, now: WallMs) -> None:
        is_over = self._ledger.settle(decision, settlement)
        if isinstance(decision, Fire | RecordVerdict):
            self._times.settled(decision, settlement, now + self._config.doubt_ms)
            if is_over and settlement is Settlement.LOST:
                # Later outcomes can't be carried out either, even if the edit is undone.
                for later in self._ledger.outcomes_after(decision):
                    self._end_promise(later, Settlement.LOST, now)
        if isinstance(decision, RecordVerdict | CountFailures | ResetCursor | ReleaseHold):
            return
        if not is_over:
            if settlement is Settlement.DONE and self._ledger.is_retried(decision):
                self._refetch[decision.job_id] = None
            return
        if isinstance(decision, Fire):
            # Lost: the schedule was deleted or edited. Refused: no job can exist. Done again: the job may have
            # ended, which reading it shows.
            if settlement in (Settlement.LOST, Settlement.REFUSED) and self._is_only_promised(decision.job_id):
                self._jobs.remove(decision.job_id)
            else:
                self._refetch[decision.job_id] = None
            return
        self._refetch[decision.job_id] = None
        self._jobs.doubt(decision.job_id, now + self._config.doubt_ms)

    def _is_only_promised(self, job_id: str) -> bool:
        job = self._jobs.get(job_id)
        return job is not None and job.rev == 1 and job.attempt == 0 and self._ledger.move(job_id) is None

    def _begin(self, reapplied: tuple[Decision, ...], now: WallMs) -> None:
        """Begin to lead. What was applied again is durable, so only what the stream has yet to show is promised."""
        self._leading = True
        self._accepting_since_ms = now
        fired: dict[str, Fire] = {}
        latest: dict[str, JobMove] = {}
        self._times.begin([decision for decision in reapplied if isinstance(decision, Fire | RecordVerdict)])
        for decision in reapplied:
            match decision:
                case Fire():
                    fired[decision.job_id] = decision
                case RecordVerdict() | CountFailures() | ResetCursor():
                    pass
                case ReleaseHold():
                    self._ledger.promise(decision, now)
                case _:
                    latest[decision.job_id] = decision
        for job_id, move in latest.items():
            kept = self._held.jobs.kept(job_id)
            if kept is not None:
                self._ledger.promise(move, now)
                self._ledger.job_seen(kept.job)
                self._seen_in_held(kept, partition_of(kept.job.tenant))
                continue
            job = self._jobs.get(job_id)
            if job is None and job_id not in fired:
                continue
            self._ledger.promise(move, now)
            if job is not None:
                self._ledger.job_seen(job)
                self._jobs.reconsider(job.id)
                continue
            # Inserted a moment ago, or ended before: reading it shows which, and until then its slot is kept.
            self._refetch[job_id] = None
            if isinstance(move, Dispatch):
                fire = fired[job_id]
                schedule = self._times.due_times.schedule(fire.schedule)
                if schedule is not None and fire.basis.is_of(
                    schedule.created_at_ms
                ):  # otherwise only the read shows what it holds
                    unseen = replace(fired_job(schedule, fire.nominal_ms), limit_keys=None)
                    self._jobs.occupy_unseen(unseen, move.processor)
        late = {job.id for job in self._came_late()}
        self._sends += [send for send in self._jobs.resend_all(now) if send.job_id not in late]

    def _stop(self) -> None:
        """Stop leading. The next leader carries out the promises that are in the journal, and the stream shows them."""
        self._leading = False
        unseen = self._ledger.unseen_fires()
        moved = self._ledger.moves()
        self._ledger.clear()
        self._times.stop()
        self._jobs.forget_replaced()
        self._sends.clear()
        for job_id in unseen:
            self._jobs.remove(job_id)
        for job_id in moved:
            self._jobs.reconsider(job_id)

    # Deciding

    def _first(self, found: list[_Found]) -> list[_Found]:
        """Return as many as one step repairs; the next step finds the others again."""
        self._more |= len(found) > self._config.repairs_max
        return found[: self._config.repairs_max]

    def _overdue(self, now: WallMs) -> list[Decision]:
        return self._ledger.take_overdue(now - self._config.echo_timeout_ms, now, self._config.repairs_max)

    def _orphaned(self, now: WallMs) -> list[Decision]:
        decisions = [
            self._move(Cancel(job.id, job.attempt, "cancel requested; the attempt was lost"), now)
            for job in self._first(self._jobs.cancelled_while_running())
        ]
        for job in self._first(self._jobs.orphans()):
            reason = "processor lost"
            if job.state is JobState.DISPATCHED:
                # If the processor starts the job after all before this is carried out, it keeps it.
                reason = UNREGISTERED if self._jobs.processor_may_live(job) else LOST_UNSTARTED
            decisions.append(self._lost(job, reason, now))
        return decisions

    def _lost(self, job: JobRef, reason: str, now: WallMs) -> Decision:
        """Requeue the job, or fail it if it was lost too often."""
        retry, losses = self.state.rules.definition(job.definition).retry, job.losses + 1
        is_wanted = job.cancel_requested_at_ms is None
        # A dispatched attempt never ran: moving it is not a loss.
        if job.state is JobState.RUNNING and is_wanted and retry.used_up(job.failures, losses):
            return self._move(Fail(job.id, job.attempt, lost_text(reason, losses, retry)), now)
        return self._move(Requeue(job.id, job.attempt, reason), now)

    def _timed_out(self, job: JobRef, now: WallMs) -> Decision:
        """Requeue the job, or fail it if it failed too often: its processor should have ended the attempt."""
        retry = self.state.rules.definition(job.definition).retry
        if job.cancel_requested_at_ms is None and retry.used_up(job.failures + 1, job.losses):
            return self._move(Fail(job.id, job.attempt, f"{TIMED_OUT}; attempts used up"), now)
        return self._move(Requeue(job.id, job.attempt, TIMED_OUT), now)

    def _past_deadline(self, now: WallMs) -> list[Decision]:
        overdue = self._jobs.take_overdue(self._config.repairs_max)
        self._more |= len(overdue) >= self._config.repairs_max
        return [
            self._timed_out(job, now)
            if job.state is JobState.RUNNING and reason == TIMED_OUT
            else self._move(Fail(job.id, job.attempt, _with_tries(reason, job)), now)
            for job, reason in overdue
        ]

    def _dependency_failed(self, now: WallMs) -> list[Decision]:
        failed = self._first(self._jobs.dependency_failed())
        return [self._move(Fail(job.id, job.attempt, reason), now) for job, reason in failed]

    def _unstarted(self, now: WallMs) -> list[Decision]:
        accepting_since_ms = self._accepting_since_ms if self._accepting else None
        sends, moved = self._jobs.take_unstarted(now, accepting_since_ms, self._config.repairs_max)
        self._sends += sends
        return [self._move(requeue, now) for requeue in moved]

    def _replaced(self, now: WallMs) -> list[Decision]:
        replaced = self._first(self._jobs.replaced())
        return [self._move(Cancel(job.id, job.attempt, reason), now) for job, reason in replaced]

    def _released(self, now: WallMs) -> list[Decision]:
        """Release the holds that cover no running job and no promise any more."""
        released: list[Decision] = []
        for hold in self.state.rules.awaited_holds():
            if self._ledger.has_release(hold.key):
                continue
            partition = partition_of_key(hold.key)
            is_over = not self.state.limits.in_use(hold.key) if partition is None else self._has_left(partition)
            if is_over:
                decision = ReleaseHold(hold.key, hold.rev)
                self._ledger.promise(decision, now)
                released.append(decision)
        return released

    @property
    def _dispatching(self) -> bool:
        return self._accepting and self.state.rules.dispatch_pause is None

    def _dispatches(self, now: WallMs) -> list[Decision]:
        decisions: list[Decision] = []
        while len(decisions) < self._config.dispatches_max:
            found = self.state.queue.first(now)
            if found is None:
                return decisions
            job, processor_id = found
            decisions.append(self._move(Dispatch(job.id, job.attempt + 1, processor_id), now))
        self._more = True
        return decisions

    def _move(self, decision: JobMove, now: WallMs) -> Decision:
        self._ledger.promise(decision, now)
        self._jobs.reconsider(decision.job_id)
        return decision

    def _wake_at(self, now: WallMs) -> WallMs | None:
        if not self._leading:
            return None
        if self._more:
            return now
        oldest = self._ledger.oldest_at()
        instants = [
            self._times.due_times.next_at() if self.state.rules.pause is None else None,
            self._times.next_count_at(),
            self._jobs.next_at(),
            self.state.limits.next_at() if self._dispatching and len(self.state.queue) else None,
            self.state.key_rates.next_at() if self._dispatching and len(self.state.queue) else None,
            self._pool.next_at() if self._dispatching and len(self.state.queue) else None,
            None if oldest is None else oldest + self._config.echo_timeout_ms,
        ]
        soonest = min((at for at in instants if at is not None), default=None)
        return None if soonest is None else WallMs(max(soonest, now))


def _with_tries(reason: str, job: JobRef) -> str:
    if reason != TIMED_OUT_IN_ALL:
        return reason
    tries = job.failures + job.losses + (job.state is JobState.RUNNING)
    return f"{reason} ({tries_text(tries, job.losses)})"
