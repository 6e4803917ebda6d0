"""Run a scenario: the real `Dispatcher` on virtual time, which sees at once what a leader would read in the stream.

At each instant jobs arrive in the order of the file, jobs end in the order of their dispatch, processors join, drain
and leave, and then the core takes step after step until it decides nothing more. The next instant is the time of the
next such event, or the one at which the core asks to be woken.
"""

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hascheduler.dispatch.accounts import AccountsSnapshot
from hascheduler.dispatch.config import DispatchConfig
from hascheduler.dispatch.decisions import Decision, Dispatch, Fail, Requeue, Settlement
from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.dispatch.inputs import AccountsRestored, Input, Settled, TermBegan
from hascheduler.errors import InvariantBroken
from hascheduler.mirror import changes
from hascheduler.model.collection import Collection
from hascheduler.model.job import JobRef, JobState
from hascheduler.model.processor import ProcessorRef
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.retry import lost_pause_ms
from hascheduler.simulate.scenario import JOB_FIELDS, Scenario, ScenarioJob, ScenarioProcessor, account_names

_EPOCH_MS = 1_000_000_000_000
"""The wall time at which every run begins."""


@dataclass(slots=True)
class SimulatedAttempt:
    """One dispatch, the ``order``-th of the run; ``lost`` if its processor left before it ended."""

    job: str
    processor: str
    order: int
    started_at_ms: int
    ended_at_ms: int | None = None
    lost: bool = False


@dataclass(slots=True)
class JobRecord:
    """The history of a job; it ``gave_up`` if it was lost too often, and ``expired`` if it had not begun in time.

    ``ref`` is its newest version in the stream.
    """

    job: ScenarioJob
    ref: JobRef
    attempts: list[SimulatedAttempt] = field(default_factory=list)
    finished_at_ms: int | None = None
    gave_up: bool = False
    expired: bool = False

    @property
    def started_at_ms(self) -> int | None:
        """Return when it was first dispatched."""
        return self.attempts[0].started_at_ms if self.attempts else None

    @property
    def is_running(self) -> bool:
        return bool(self.attempts) and self.attempts[-1].ended_at_ms is None


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The jobs in order of submission, the attempts in order of dispatch, and who consumed what.

    ``completed`` are (at, job) of those that succeeded. Costs are by account, as `account_names` calls it, and by
    tenant if there are several. ``unschedulable`` are the waiting jobs that no processor could run at the end.
    """

    scenario: Scenario
    ended_at_ms: int
    jobs: tuple[JobRecord, ...]
    attempts: tuple[SimulatedAttempt, ...]
    completed: tuple[tuple[int, str], ...]
    accumulated_cost_ms: Mapping[str, int]
    tenant_cost_ms: Mapping[str, int]
    unschedulable: tuple[str, ...]

    @property
    def pending(self) -> tuple[str, ...]:
        return tuple(each.job.id for each in self.jobs if each.finished_at_ms is None and not each.is_running)


def as_document(outcome: RunOutcome) -> dict[str, Any]:
    """Return the outcome for programs, in seconds; the last four fields are left out if they are empty."""
    rare = {
        "expired": [[(each.finished_at_ms or 0) / 1_000, each.job.id] for each in outcome.jobs if each.expired],
        "unschedulable": list(outcome.unschedulable),
        "accumulated_cost_by_tenant": {name: cost_ms / 1_000 for name, cost_ms in outcome.tenant_cost_ms.items()},
        "left_out": {why: list(ids) for why, ids in outcome.scenario.left_out.items() if ids},
    }
    return {
        "dispatched": [[each.started_at_ms / 1_000, each.job, each.processor] for each in outcome.attempts],
        "completed": [[at_ms / 1_000, job] for at_ms, job in outcome.completed],
        "accumulated_cost": {key: cost_ms / 1_000 for key, cost_ms in outcome.accumulated_cost_ms.items()},
        "pending": list(outcome.pending),
        **{name: found for name, found in rare.items() if found},
    }


def run(scenario: Scenario, progress: Callable[[int], None] = lambda done: None) -> RunOutcome:
    """Return the outcome; at each instant, ``progress`` gets how many jobs have ended."""
    return _Run(scenario, progress).outcome()


class _Run:
    """Owner of the virtual world: what arrives when, what runs until when, and the outcome so far."""

    def __init__(self, scenario: Scenario, progress: Callable[[int], None]) -> None:
        self._scenario = scenario
        self._progress = progress
        self._expiries = {each.expires_at_ms for each in scenario.jobs}
        self._dispatcher = Dispatcher(DispatchConfig(policy=scenario.policy.config()))
        ordered = sorted(enumerate(scenario.jobs), key=lambda item: (item[1].submit_at_ms, item[0]))
        self._arrivals = deque(JobRecord(job, _submitted(job, sequence)) for sequence, job in ordered)
        self._turnover = deque(_processor_changes(scenario.processors))
        self._endings: list[tuple[int, int]] = []
        self._records: dict[str, JobRecord] = {}
        self._attempts: list[SimulatedAttempt] = []
        self._running = self._ended = 0
        self._completed: list[tuple[int, str]] = []

    def outcome(self) -> RunOutcome:
        scenario, at_ms = self._scenario, 0
        wake_ms = self._live_through(at_ms, self._beginning())
        while (next_ms := self._next(at_ms, wake_ms)) is not None:
            at_ms = next_ms
            wake_ms = self._live_through(at_ms, ())
        called, costs = account_names(scenario.jobs), self._dispatcher.state.accounts
        accounts = dict.fromkeys((each.job.tenant, each.job.fairness_key) for each in self._records.values())
        several = len({job.tenant for job in scenario.jobs}) > 1
        tenants = dict.fromkeys(tenant for tenant, _ in accounts) if several else {}
        return RunOutcome(
            scenario=scenario,
            ended_at_ms=max(at_ms, scenario.recorded_ms or 0) if scenario.until_ms is None else scenario.until_ms,
            jobs=tuple(self._records.values()),
            attempts=tuple(self._attempts),
            completed=tuple(self._completed),
            accumulated_cost_ms={called(*each): costs.cost(*each) for each in accounts},
            tenant_cost_ms={name: costs.tenant_cost(name) for name in tenants},
            unschedulable=tuple(self._dispatcher.state.explainer.unschedulable()),
        )

    def _next(self, at_ms: int, wake_ms: int | None) -> int | None:
        """Return the next instant at which something happens; None if there is none up to the end."""
        instants = [
            self._arrivals[0].job.submit_at_ms if self._arrivals else None,
            self._endings[0][0] if self._endings else None,
            self._turnover[0][0] if self._turnover else None,
            wake_ms if wake_ms is not None and wake_ms > at_ms else None,
        ]
        soonest = min((each for each in instants if each is not None), default=None)
        until_ms, recorded_ms = self._scenario.until_ms, self._scenario.recorded_ms
        if soonest is None or (until_ms is not None and soonest > until_ms):
            return None
        is_over = recorded_ms is not None and soonest > recorded_ms and not self._running
        return None if is_over and soonest in self._expiries else soonest

    def _live_through(self, at_ms: int, first: Iterable[Input]) -> int | None:
        """Apply all events of that instant; return when the core asks to be woken."""
        inputs = [*first, *self._arrived(at_ms), *self._finished(at_ms), *self._changed(at_ms)]
        while True:
            step = self._dispatcher.step(WallMs(_EPOCH_MS + at_ms), inputs)
            inputs = []
            for decision in step.decisions:
                inputs += (Settled(decision, Settlement.DONE), self._echo(decision, at_ms))
            inputs += self._finished(at_ms)  # jobs that take no time have ended already
            if not inputs:
                break
        self._progress(self._ended)
        return None if step.wake_at_ms is None else step.wake_at_ms - _EPOCH_MS

    def _beginning(self) -> list[Input]:
        scenario = self._scenario
        return [
            *(changes.NounSeen(Collection.DEFINITIONS, each.name, each) for each in scenario.definitions),
            *(changes.NounSeen(Collection.LANES, each.name, each) for each in scenario.lanes),
            *(changes.NounSeen(Collection.TENANTS, each.name, each) for each in scenario.tenants),
            AccountsRestored(AccountsSnapshot(learned=tuple((*row, _EPOCH_MS) for row in scenario.learned_costs))),
            TermBegan(1),
        ]

    def _arrived(self, at_ms: int) -> Iterable[Input]:
        while self._arrivals and self._arrivals[0].job.submit_at_ms <= at_ms:
            record = self._arrivals.popleft()
            self._records[record.job.id] = record
            yield changes.JobSeen(record.ref)

    def _finished(self, at_ms: int) -> Iterable[Input]:
        while self._endings and self._endings[0][0] <= at_ms:
            attempt = self._attempts[heapq.heappop(self._endings)[1]]
            if attempt.ended_at_ms is not None:
                continue  # its processor left before
            self._end(self._records[attempt.job], at_ms)
            self._finish(self._records[attempt.job], at_ms)
            self._completed.append((at_ms, attempt.job))
            yield changes.JobGone(attempt.job, JobState.SUCCEEDED, _EPOCH_MS + at_ms)

    def _changed(self, at_ms: int) -> Iterable[Input]:
        while self._turnover and self._turnover[0][0] <= at_ms:
            yield self._turnover.popleft()[1]

    def _echo(self, decision: Decision, at_ms: int) -> Input:
        """Carry out a decision; return what the stream then shows."""
        now = WallMs(_EPOCH_MS + at_ms)
        match decision:
            case Dispatch(job_id, attempt, processor):
                record = self._records[job_id]
                self._start(record, processor, at_ms)
                record.ref = replace(
                    record.ref,
                    rev=record.ref.rev + 2,
                    state=JobState.RUNNING,
                    attempt=attempt,
                    processor=processor,
                    dispatched_at_ms=now,
                    started_at_ms=now,
                    first_started_at_ms=record.ref.first_started_at_ms or now,
                )
                return changes.JobSeen(record.ref)
            case Requeue(job_id, _, _):
                record = self._records[job_id]
                self._end(record, at_ms, lost=True)
                was_running = record.ref.state is JobState.RUNNING
                losses = record.ref.losses + was_running
                pause_ms = lost_pause_ms(losses) if was_running else 0
                record.ref = replace(
                    record.ref,
                    rev=record.ref.rev + 1,
                    state=JobState.PENDING,
                    processor=None,
                    dispatched_at_ms=None,
                    started_at_ms=None,
                    losses=losses,
                    retry_at_ms=WallMs(now + pause_ms) if pause_ms else None,
                )
                return changes.JobSeen(record.ref)
            case Fail(job_id, _, _):
                record = self._records[job_id]
                record.gave_up, record.expired = bool(record.attempts), not record.attempts
                if record.attempts:
                    self._end(record, at_ms, lost=True)
                self._finish(record, at_ms)
                return changes.JobGone(job_id, JobState.FAILED, now)
            case _:
                raise InvariantBroken(f"a scenario has no schedules and no cancels: {decision}")

    def _start(self, record: JobRecord, processor: str, at_ms: int) -> None:
        job, order = record.job, len(self._attempts)
        attempt = SimulatedAttempt(job.id, processor, order, at_ms)
        record.attempts.append(attempt)
        self._attempts.append(attempt)
        heapq.heappush(self._endings, (at_ms + job.duration_ms, order))
        self._running += 1

    def _end(self, record: JobRecord, at_ms: int, *, lost: bool = False) -> None:
        attempt = record.attempts[-1]
        attempt.ended_at_ms, attempt.lost = at_ms, lost
        self._running -= 1

    def _finish(self, record: JobRecord, at_ms: int) -> None:
        record.finished_at_ms = at_ms
        self._ended += 1


def _processor_changes(processors: Iterable[ScenarioProcessor]) -> list[tuple[int, Input]]:
    """Return (at, change) of all processors in order of time, at one instant in the order of the file."""
    found: list[tuple[int, Input]] = []
    for each in processors:
        ref = ProcessorRef(
            each.id, each.id, "default", each.definitions, each.slots, 1, False, 0, resources=each.resources
        )
        found.append((each.join_at_ms, changes.ProcessorSeen(ref)))
        if each.drain_at_ms is not None:
            found.append((each.drain_at_ms, changes.ProcessorSeen(replace(ref, beat=2, draining=True))))
        if each.leave_at_ms is not None:
            found.append((each.leave_at_ms, changes.ProcessorGone(each.id)))
    return sorted(found, key=lambda change: change[0])


def _submitted(job: ScenarioJob, sequence: int) -> JobRef:
    """Return the job as the stream shows it after its submission."""
    return JobRef(
        **{name: getattr(job, name) for name in JOB_FIELDS},
        rev=1,
        state=JobState.PENDING,
        attempt=0,
        submitted_at_ms=WallMs(_EPOCH_MS + job.submit_at_ms),
        sequence=sequence,
        not_before_ms=None,
        limit_keys=job.limit_keys,
        expires_at_ms=None if job.expires_at_ms is None else WallMs(_EPOCH_MS + job.expires_at_ms),
    )
