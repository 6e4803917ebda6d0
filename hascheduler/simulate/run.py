"""Runs a scenario: the real `Dispatcher` on virtual time, which sees at once what a leader would read in the stream.

An instant is one or more steps. The first brings what happened; each later one the echo of the decisions of the step
before, until there are none. A dispatched job runs at once, so nothing is ever only promised between two instants. An
instant at which the core asks to be woken (a token of a rate limit, a job that expires) is one too.
"""

import heapq
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from hascheduler.dispatch.accounts import AccountsSnapshot
from hascheduler.dispatch.config import DispatchConfig
from hascheduler.dispatch.decisions import Decision, Dispatch, Fail, Requeue, Settlement
from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.dispatch.inputs import AccountsRestored, Input, Settled, TermBegan
from hascheduler.errors import InvariantBroken
from hascheduler.mirror.changes import (
    DefinitionSeen,
    JobGone,
    JobSeen,
    LaneSeen,
    ProcessorGone,
    ProcessorSeen,
    TenantSeen,
)
from hascheduler.model.job import JobRef, JobState
from hascheduler.model.processor import ProcessorRef
from hascheduler.model.retry import lost_pause_ms
from hascheduler.model.values.instants import WallMs
from hascheduler.simulate.outcome import JobRecord, RunOutcome, SimulatedAttempt
from hascheduler.simulate.scenario import Scenario, ScenarioJob, ScenarioProcessor, account_names

Progress = Callable[[int, int], None]
_Account = tuple[str, str]


def run(scenario: Scenario, progress: Progress | None = None) -> RunOutcome:
    """The outcome of ``scenario``; ``progress`` gets, at each instant, how many of how many jobs have ended."""
    return _Run(scenario, progress).outcome()


@dataclass(slots=True)
class _Life:
    """The history of one job so far; ``ref`` is its newest version in the stream."""

    job: ScenarioJob
    sequence: int
    ref: JobRef
    attempts: list[SimulatedAttempt] = field(default_factory=list)
    finished_at_ms: int | None = None
    gave_up: bool = False
    expired: bool = False


class _Run:
    """Owner of the virtual world: what arrives when, what runs until when, and the outcome so far."""

    def __init__(self, scenario: Scenario, progress: Progress | None) -> None:
        self._scenario = scenario
        self._progress = progress
        self._until_ms = scenario.until_ms
        self._recorded_ms = scenario.recorded_ms
        self._expiries = {each.expires_at_ms for each in scenario.jobs}
        self._dispatcher = Dispatcher(DispatchConfig(policy=scenario.policy.config()))
        self._costs_by_default = {each.name: each.default_cost_ms for each in scenario.definitions}
        ordered = sorted(enumerate(scenario.jobs), key=lambda item: (item[1].submit_at_ms, item[0]))
        self._arrivals = deque((job, sequence) for sequence, job in ordered)
        self._changes = deque(processor_changes(scenario.processors))
        self._endings: list[tuple[int, int, str]] = []
        self._lives: dict[str, _Life] = {}
        self._attempts: list[SimulatedAttempt] = []
        self._running: dict[int, int] = {}
        self._completed: list[tuple[int, str]] = []
        self._ended = 0
        self._costs: dict[_Account, list[tuple[int, int]]] = {}

    def outcome(self) -> RunOutcome:
        at_ms = 0
        wake_ms = self._live_through(at_ms, self._beginning())
        while (next_ms := self._next(at_ms, wake_ms)) is not None:
            at_ms = next_ms
            wake_ms = self._live_through(at_ms, ())
        called = account_names(self._scenario.jobs)
        several = len({job.tenant for job in self._scenario.jobs}) > 1
        tenants = dict.fromkeys(tenant for tenant, _ in self._costs) if several else {}
        return RunOutcome(
            scenario=self._scenario,
            ended_at_ms=max(at_ms, self._recorded_ms or 0) if self._until_ms is None else self._until_ms,
            jobs=tuple(self._record(life) for life in self._lives.values()),
            attempts=tuple(self._attempts),
            completed=tuple(self._completed),
            accumulated_cost_ms={called(*each): self._dispatcher.accumulated_cost_ms(*each) for each in self._costs},
            costs={called(*each): tuple(changes) for each, changes in self._costs.items()},
            unschedulable=tuple(self._dispatcher.unschedulable()),
            tenant_cost_ms={name: self._dispatcher.accumulated_cost_ms(name) for name in tenants},
        )

    def _next(self, at_ms: int, wake_ms: int | None) -> int | None:
        """The next instant at which something happens; None: there is none up to ``until``."""
        instants = [
            self._arrivals[0][0].submit_at_ms if self._arrivals else None,
            self._endings[0][0] if self._endings else None,
            self._changes[0].at_ms if self._changes else None,
            wake_ms if wake_ms is not None and wake_ms > at_ms else None,
        ]
        soonest = min((each for each in instants if each is not None), default=None)
        if soonest is None or (self._until_ms is not None and soonest > self._until_ms):
            return None
        if self._recorded_ms is not None and soonest > self._recorded_ms:
            return soonest if self._running or soonest not in self._expiries else None
        return soonest

    def _live_through(self, at_ms: int, first: Iterable[Input]) -> int | None:
        """All that happens at that instant; the instant at which the core asks to be woken."""
        now = WallMs(EPOCH_MS + at_ms)
        inputs = [*first, *self._arrived(at_ms), *self._finished(at_ms), *self._changed(at_ms)]
        touched = dict.fromkeys(_account(each.job) for each in inputs if isinstance(each, JobSeen))
        while True:
            step = self._dispatcher.step(now, inputs)
            inputs = []
            for decision in step.decisions:
                inputs += (Settled(decision, Settlement.DONE), self._echo(decision, at_ms, touched))
            inputs += self._finished(at_ms)  # what takes no time has ended already
            if not inputs:
                break
        for account in touched:
            self._sample(account, at_ms)
        self._report_progress()
        return None if step.wake_at_ms is None else step.wake_at_ms - EPOCH_MS

    # Happenings

    def _beginning(self) -> list[Input]:
        scenario = self._scenario
        learned = tuple((each.definition, each.target, each.cost_ms, EPOCH_MS) for each in scenario.learned_costs)
        return [
            *(DefinitionSeen(definition) for definition in scenario.definitions),
            *(LaneSeen(lane) for lane in scenario.lanes),
            *(TenantSeen(tenant) for tenant in scenario.tenants),
            AccountsRestored(AccountsSnapshot(learned=learned)),
            TermBegan(1),
        ]

    def _arrived(self, at_ms: int) -> list[Input]:
        seen: list[Input] = []
        while self._arrivals and self._arrivals[0][0].submit_at_ms <= at_ms:
            job, sequence = self._arrivals.popleft()
            life = _Life(job, sequence, submitted(job, sequence))
            self._lives[job.id] = life
            seen.append(JobSeen(life.ref))
        return seen

    def _finished(self, at_ms: int) -> list[Input]:
        """The jobs that end, in the order in which they were dispatched."""
        orders: list[tuple[int, str]] = []
        while self._endings and self._endings[0][0] <= at_ms:
            _, order, job_id = heapq.heappop(self._endings)
            if order in self._running:  # else its processor left before
                orders.append((order, job_id))
        gone: list[Input] = []
        for order, job_id in orders:
            self._end_attempt(self._lives[job_id], order, at_ms, lost=False)
            self._lives[job_id].finished_at_ms = at_ms
            self._completed.append((at_ms, job_id))
            self._ended += 1
            gone.append(JobGone(job_id, JobState.SUCCEEDED, EPOCH_MS + at_ms))
        return gone

    def _changed(self, at_ms: int) -> list[Input]:
        seen: list[Input] = []
        while self._changes and self._changes[0].at_ms <= at_ms:
            seen.append(self._changes.popleft().seen)
        return seen

    # Decisions

    def _echo(self, decision: Decision, at_ms: int, touched: dict[_Account, None]) -> Input:
        match decision:
            case Dispatch(job_id, attempt, processor):
                life = self._lives[job_id]
                touched[_account(life.job)] = None
                self._start(life, processor, at_ms)
                now = WallMs(EPOCH_MS + at_ms)
                life.ref = replace(
                    life.ref,
                    rev=life.ref.rev + 2,
                    state=JobState.RUNNING,
                    attempt=attempt,
                    processor=processor,
                    dispatched_at_ms=now,
                    started_at_ms=now,
                    first_started_at_ms=life.ref.first_started_at_ms or now,
                )
                return JobSeen(life.ref)
            case Requeue(job_id, _, _):
                life = self._lives[job_id]
                self._end_attempt(life, life.attempts[-1].order, at_ms, lost=True)
                losses = life.ref.losses + (life.ref.state is JobState.RUNNING)
                pause_ms = lost_pause_ms(losses) if life.ref.state is JobState.RUNNING else 0
                life.ref = replace(
                    life.ref,
                    rev=life.ref.rev + 1,
                    state=JobState.PENDING,
                    processor=None,
                    dispatched_at_ms=None,
                    started_at_ms=None,
                    losses=losses,
                    retry_at_ms=WallMs(EPOCH_MS + at_ms + pause_ms) if pause_ms else None,
                )
                return JobSeen(life.ref)
            case Fail(job_id, _, _):
                life = self._lives[job_id]
                if life.attempts:
                    self._end_attempt(life, life.attempts[-1].order, at_ms, lost=True)
                life.finished_at_ms, life.gave_up, life.expired = at_ms, bool(life.attempts), not life.attempts
                self._ended += 1
                return JobGone(job_id, JobState.FAILED, EPOCH_MS + at_ms)
            case _:
                raise InvariantBroken(f"a scenario has no schedules and no cancels: {decision}")

    def _start(self, life: _Life, processor: str, at_ms: int) -> None:
        job, order = life.job, len(self._attempts)
        cost_ms = self._dispatcher.learned_cost_ms(job.definition, job.target)
        if cost_ms is None:
            cost_ms = self._costs_by_default[job.definition]
        attempt = SimulatedAttempt(job.id, processor, order, at_ms, None, lost=False, cost_ms=cost_ms)
        self._running[order] = len(life.attempts)
        life.attempts.append(attempt)
        self._attempts.append(attempt)
        heapq.heappush(self._endings, (at_ms + job.duration_ms, order, job.id))

    def _end_attempt(self, life: _Life, order: int, at_ms: int, *, lost: bool) -> None:
        ended = replace(self._attempts[order], ended_at_ms=at_ms, lost=lost)
        life.attempts[self._running.pop(order)] = self._attempts[order] = ended

    # Samples and progress

    def _sample(self, account: _Account, at_ms: int) -> None:
        changes, cost_ms = self._costs.setdefault(account, []), self._dispatcher.accumulated_cost_ms(*account)
        if not changes or changes[-1][1] != cost_ms:
            changes.append((at_ms, cost_ms))

    def _report_progress(self) -> None:
        if self._progress is not None:
            self._progress(self._ended, len(self._scenario.jobs))

    def _record(self, life: _Life) -> JobRecord:
        return JobRecord(life.job, life.sequence, tuple(life.attempts), life.finished_at_ms, life.gave_up, life.expired)


def _account(job: ScenarioJob | JobRef) -> _Account:
    return job.tenant, job.fairness_key


EPOCH_MS = 1_000_000_000_000
"""The wall time at which every run begins."""


@dataclass(frozen=True, slots=True)
class ProcessorChange:
    """A processor joins, drains or leaves."""

    at_ms: int
    seen: ProcessorSeen | ProcessorGone


def processor_changes(processors: Iterable[ScenarioProcessor]) -> list[ProcessorChange]:
    """The changes of all processors, in order of time; at one instant in the order of the file."""
    changes: list[ProcessorChange] = []
    for each in processors:
        changes.append(ProcessorChange(each.join_at_ms, ProcessorSeen(_registered(each, beat=1))))
        if each.drain_at_ms is not None:
            changes.append(ProcessorChange(each.drain_at_ms, ProcessorSeen(_registered(each, beat=2, draining=True))))
        if each.leave_at_ms is not None:
            changes.append(ProcessorChange(each.leave_at_ms, ProcessorGone(each.id)))
    return sorted(changes, key=lambda change: change.at_ms)


def _registered(processor: ScenarioProcessor, *, beat: int, draining: bool = False) -> ProcessorRef:
    return ProcessorRef(
        id=processor.id,
        name=processor.id,
        shard="default",
        definitions=processor.definitions,
        slots=processor.slots,
        beat=beat,
        draining=draining,
        parked=0,
        resources=processor.resources,
    )


def submitted(job: ScenarioJob, sequence: int) -> JobRef:
    """The job as the stream shows it after its submission."""
    return JobRef(
        id=job.id,
        rev=1,
        state=JobState.PENDING,
        attempt=0,
        definition=job.definition,
        target=job.target,
        tenant=job.tenant,
        lane=job.lane,
        fairness_key=job.fairness_key,
        priority=job.priority,
        mode=job.mode,
        submitted_at_ms=WallMs(EPOCH_MS + job.submit_at_ms),
        sequence=sequence,
        not_before_ms=None,
        processor=None,
        dispatched_at_ms=None,
        cancel_requested_at_ms=None,
        resources=job.resources,
        limit_keys=job.limit_keys,
        expires_at_ms=None if job.expires_at_ms is None else WallMs(EPOCH_MS + job.expires_at_ms),
    )
