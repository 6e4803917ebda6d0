"""What was promised and has not come back: at most one fire and one move (dispatch, requeue, fail, cancel) per job.

What fulfils a promise:

- a *fire*: the stream has shown its job, and a cursor that reached it
- a *verdict* on times that do not fire: its record is written, and the stream has shown such a cursor
- a *move*: the stream shows the job at or past what was promised
- a *count* of failures: the stream shows it on its schedule
- a *reset*: the stream shows the schedule without the request
- a *release*: the stream shows it on its hold

Then the decision is reported as settled, which lets the journal's ``applied_through`` advance: a successor would apply
again what is not settled.

An overdue promise is handed out again, to be decided again with writes that wait for a majority. If that ends DONE, the
outcome is durable. It fulfils a fire, even if this replica's stream never shows the job (it had ended before), and any
decision about a schedule. A move is fulfilled by reading its job, which is then requested: the job keeps its slot until
its state is known.

A move is not lost either if its job exists only as the promise of a fire: if a failover of the primary rolled the job
back, this leader or a successor applies both again, and the job will hold its slot then.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from hascheduler.dispatch.decisions import (
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
    Settlement,
    TimeOutcome,
)
from hascheduler.model.job import TERMINAL, JobRef, JobState
from hascheduler.model.partition import Hold
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.schedule import ScheduleRef


@dataclass(slots=True)
class _Promise:
    decision: Decision
    promised_at_ms: WallMs
    retried: bool = False
    made: bool = False
    refused: bool = False
    cursor_seen: bool = False


class Ledger:
    def __init__(self) -> None:
        # In order of promised_at_ms: what is promised again goes to the end.
        self._promises: dict[Decision, _Promise] = {}
        self._moves: dict[str, JobMove] = {}
        self._fires: dict[str, Fire] = {}
        self._outcomes_of: dict[str, dict[WallMs, TimeOutcome]] = {}
        self._counts: dict[str, CountFailures] = {}
        self._resets: dict[str, ResetCursor] = {}
        self._releases: dict[str, ReleaseHold] = {}
        self._new_fires: dict[str, None] = {}
        self._settled: list[Decision] = []
        self._under_way: dict[Decision, int] = {}

    def __len__(self) -> int:
        return len(self._promises)

    def move(self, job_id: str) -> JobMove | None:
        """Return the move that is promised for that job and not seen yet."""
        return self._moves.get(job_id)

    def is_unseen_fire(self, job_id: str) -> bool:
        """Return True if the job exists only as the promise of a fire."""
        fire = self._fires.get(job_id)
        return fire is not None and not self._promises[fire].made

    def unseen_fires(self) -> list[str]:
        """Return the ids of the jobs that exist only as promises."""
        return [job_id for job_id in self._fires if self.is_unseen_fire(job_id)]

    def is_out_of_reach(self, job_id: str) -> bool:
        """Return True if the job exists only as the promise of a fire of an earlier step: see `take_new_fires`."""
        return self.is_unseen_fire(job_id) and job_id not in self._new_fires

    def take_new_fires(self) -> list[str]:
        """Return the jobs of the fires promised since the last call for which no move is promised.

        Until then a dispatch may ride with the fire, which carries out both or neither. Afterwards it would be a
        decision about a job that another leader may make, or nobody.
        """
        new, self._new_fires = self._new_fires, {}
        return [job_id for job_id in new if job_id not in self._moves]

    def moves(self) -> list[str]:
        return list(self._moves)

    def has_outcomes(self, schedule: str) -> bool:
        """Return True if some of its nominal times are promised."""
        return schedule in self._outcomes_of

    def outcomes_after(self, outcome: TimeOutcome) -> list[TimeOutcome]:
        """Return the promised outcomes of its schedule for later times, the latest first."""
        of_schedule = self._outcomes_of.get(outcome.schedule, {})
        return [of_schedule[at_ms] for at_ms in sorted(of_schedule, reverse=True) if at_ms > outcome.nominal_ms]

    def count(self, schedule: str) -> CountFailures | None:
        """Return the count that is promised for that schedule and not seen yet."""
        return self._counts.get(schedule)

    def has_reset(self, schedule: str) -> bool:
        """Return True if a reset of that schedule is promised and not seen yet."""
        return schedule in self._resets

    def has_release(self, key: str) -> bool:
        """Return True if a release of that hold is promised and not seen yet."""
        return key in self._releases

    def promises(self) -> list[Decision]:
        """Return all decisions that have not come back, oldest first."""
        return list(self._promises)

    def promise(self, decision: Decision, now: WallMs) -> None:
        self._promises[decision] = _Promise(decision, now)
        match decision:
            case Fire() | RecordVerdict():
                if isinstance(decision, Fire):
                    self._fires[decision.job_id] = decision
                    self._new_fires[decision.job_id] = None
                self._outcomes_of.setdefault(decision.schedule, {})[decision.nominal_ms] = decision
            case CountFailures():
                self._counts[decision.schedule] = decision
            case ResetCursor():
                self._resets[decision.schedule] = decision
            case ReleaseHold():
                self._releases[decision.key] = decision
            case _:
                self._moves[decision.job_id] = decision

    def job_seen(self, job: JobRef) -> None:
        self._fire_seen(job.id)
        move = self._moves.get(job.id)
        if move is not None and _shows(job, move):
            self._fulfil(move)

    def job_gone(self, job_id: str) -> None:
        """Fulfil the job's move, which a gone job shows; not a fire, whose insert may still be on its way."""
        move = self._moves.get(job_id)
        if move is not None:
            self._fulfil(move)

    def has_yet_to_insert(self, job_id: str) -> bool:
        """Return True if a read that found no such job may be older than the insert of a promised fire.

        An edit may overtake a fire, and the same time may be decided again while the job of the lost fire is being
        read. If the job did exist and is gone, deciding the fire again, as it is overdue, ends the promise.
        """
        fire = self._fires.get(job_id)
        if fire is None or self._promises[fire].refused:
            return False
        self._promises[fire].made = False
        return True

    def schedule_seen(self, schedule: ScheduleRef) -> None:
        for nominal_ms, outcome in list(self._outcomes_of.get(schedule.name, {}).items()):
            if nominal_ms <= schedule.cursor_ms:
                self._cursor_seen(outcome)
        count = self._counts.get(schedule.name)
        if count is not None and (schedule.rev > count.rev or _counted(schedule, count)):
            self._fulfil(count)
        reset = self._resets.get(schedule.name)
        if reset is not None and schedule.reset_at_ms != reset.reset_at_ms:
            self._fulfil(reset)

    def schedule_gone(self, schedule: str) -> None:
        for outcome in list(self._outcomes_of.get(schedule, {}).values()):
            self._cursor_seen(outcome)
        for promised in (self._counts.get(schedule), self._resets.get(schedule)):
            if promised is not None:
                self._fulfil(promised)

    def hold_seen(self, key: str, hold: Hold | None) -> None:
        release = self._releases.get(key)
        if release is not None and (hold is None or hold.rev > release.rev or hold.released >= release.rev):
            self._fulfil(release)

    def settle(self, decision: Decision, settlement: Settlement) -> bool:
        """Record the result of applying ``decision``.

        Return True if it ended the promise, or what it promised of a job.
        """
        promise = self._promises.get(decision)
        if promise is None:
            # Its promise ended before it was applied, perhaps even before it was journaled; that entry is done too.
            self._settled.append(decision)
            return False
        if settlement is Settlement.REFUSED:
            # The stream will show no job, and has yet to show the cursor.
            promise.made = promise.refused = True
            if promise.retried:
                self._fulfil(decision)
            else:
                self._fulfil_outcome(promise)
            return True
        durable = settlement is Settlement.DONE and promise.retried
        if settlement is Settlement.LOST and isinstance(decision, JobMove) and self.is_unseen_fire(decision.job_id):
            return False
        if settlement is Settlement.LOST or (durable and not isinstance(decision, JobMove)):
            self._fulfil(decision)
            return True
        if settlement is Settlement.DONE and isinstance(decision, RecordVerdict):
            # The stream does not show the record.
            promise.made = True
            self._fulfil_outcome(promise)
        return False

    def handed_out(self, decisions: Iterable[Decision]) -> None:
        """Count each decision as on its way to be applied, one more time."""
        for decision in decisions:
            self._under_way[decision] = self._under_way.get(decision, 0) + 1

    def came_back(self, decision: Decision) -> bool:
        """Record that it was applied once; return True if it is not on its way another time.

        A decision made again, overdue or after an edit, may equal one that is still on its way. If the earlier one is
        lost, the later need not be; if it is done, it had no majority behind it. So the last one counts.
        """
        left = self._under_way.pop(decision, 0) - 1
        if left > 0:
            self._under_way[decision] = left
        return left <= 0

    def is_retried(self, decision: Decision) -> bool:
        """Return True if the decision was promised, did not come back, and was decided again."""
        promise = self._promises.get(decision)
        return promise is not None and promise.retried

    def take_overdue(self, before_ms: int, now: WallMs, limit: int) -> list[Decision]:
        """Return the promises made at or before ``before_ms``, oldest first; each counts as promised again, now."""
        overdue: list[Decision] = []
        for decision, promise in self._promises.items():
            if promise.promised_at_ms > before_ms or len(overdue) >= limit:
                break
            overdue.append(decision)
        for decision in overdue:
            promise = self._promises.pop(decision)
            promise.promised_at_ms = now
            promise.retried = True
            self._promises[decision] = promise
        return overdue

    def oldest_at(self) -> int | None:
        return next((promise.promised_at_ms for promise in self._promises.values()), None)

    def take_settled(self) -> tuple[Decision, ...]:
        """Return the decisions whose promises ended since the last call."""
        settled = tuple(self._settled)
        self._settled.clear()
        return settled

    def clear(self) -> None:
        """Forget all promises, without settling them."""
        for table in (
            self._promises, self._moves, self._fires, self._outcomes_of, self._counts, self._resets, self._releases,
            self._new_fires, self._under_way,
        ):  # fmt: skip
            table.clear()
        self._settled.clear()

    def _fire_seen(self, job_id: str) -> None:
        fire = self._fires.get(job_id)
        if fire is not None:
            promise = self._promises[fire]
            promise.made = True
            self._fulfil_outcome(promise)

    def _cursor_seen(self, outcome: TimeOutcome) -> None:
        promise = self._promises[outcome]
        promise.cursor_seen = True
        self._fulfil_outcome(promise)

    def _fulfil_outcome(self, promise: _Promise) -> None:
        if promise.made and promise.cursor_seen:
            self._fulfil(promise.decision)

    def _fulfil(self, decision: Decision) -> None:
        del self._promises[decision]
        self._settled.append(decision)
        match decision:
            case Fire() | RecordVerdict():
                if isinstance(decision, Fire):
                    del self._fires[decision.job_id]
                of_schedule = self._outcomes_of[decision.schedule]
                del of_schedule[decision.nominal_ms]
                if not of_schedule:
                    del self._outcomes_of[decision.schedule]
            case CountFailures():
                del self._counts[decision.schedule]
            case ResetCursor():
                del self._resets[decision.schedule]
            case ReleaseHold():
                del self._releases[decision.key]
            case _:
                del self._moves[decision.job_id]


def _counted(schedule: ScheduleRef, count: CountFailures) -> bool:
    return schedule.failures == count.failures and count.pause_at_ms is None


def _shows(job: JobRef, move: JobMove) -> bool:
    """Return True if this version of the job is at or past what ``move`` demands."""
    if job.state in TERMINAL or job.attempt > move.attempt:
        return True
    match move:
        case Dispatch():
            return job.attempt == move.attempt
        case Requeue():
            return job.attempt == move.attempt and job.state is JobState.PENDING
        case Fail():
            return False
        case Cancel():
            # A job that was asked to stop and is pending again has yet to be ended.
            return job.cancel_requested_at_ms is not None and job.state is not JobState.PENDING
