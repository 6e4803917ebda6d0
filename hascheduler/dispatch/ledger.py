"""What was promised and has not come back: at most one fire and one move (dispatch, requeue, fail) per job.

A *fire* is fulfilled when the stream has shown its job and a cursor that reached it; a *move* when the stream shows
the job at or past what was promised. Then the decision is reported as settled, which lets the journal's
``applied_through`` advance: whatever is not settled would be applied again by a successor.

A promise that is overdue is handed out again, to be decided again with writes that wait for a majority. If that ends
DONE the outcome is durable. It fulfils a fire, even if this replica's stream never shows the job (it had ended before).
A move is fulfilled by the reading of its job, which is asked for then: the job keeps its slot until it is known.
"""

from dataclasses import dataclass

from hascheduler.dispatch.decisions import Decision, Dispatch, Fail, Fire, Requeue, Settlement
from hascheduler.model.instants import WallMs
from hascheduler.model.job import TERMINAL, JobRef, JobState

Move = Dispatch | Requeue | Fail


@dataclass(slots=True)
class _Promise:
    decision: Decision
    promised_at_ms: WallMs
    reasserted: bool = False
    job_seen: bool = False
    cursor_seen: bool = False


class Ledger:
    def __init__(self) -> None:
        # In order of promised_at_ms: what is promised again goes to the end.
        self._promises: dict[Decision, _Promise] = {}
        self._moves: dict[str, Move] = {}
        self._fires: dict[str, Fire] = {}
        self._fires_of: dict[str, dict[WallMs, Fire]] = {}
        self._settled: list[Decision] = []

    def __len__(self) -> int:
        return len(self._promises)

    def move(self, job_id: str) -> Move | None:
        """What was promised for that job, and has not been seen yet."""
        return self._moves.get(job_id)

    def is_unseen_fire(self, job_id: str) -> bool:
        """Whether the job exists only as the promise of a fire."""
        fire = self._fires.get(job_id)
        return fire is not None and not self._promises[fire].job_seen

    def unseen_fires(self) -> list[str]:
        """The ids of the jobs that exist only as promises."""
        return [job_id for job_id in self._fires if self.is_unseen_fire(job_id)]

    def moves(self) -> list[str]:
        return list(self._moves)

    def promise(self, decision: Decision, now: WallMs) -> None:
        self._promises[decision] = _Promise(decision, now)
        if isinstance(decision, Fire):
            self._fires[decision.job_id] = decision
            self._fires_of.setdefault(decision.schedule, {})[decision.nominal_ms] = decision
        else:
            self._moves[decision.job_id] = decision

    def job_seen(self, job: JobRef) -> None:
        self._fire_seen(job.id)
        move = self._moves.get(job.id)
        if move is not None and _shows(job, move):
            self._fulfil(move)

    def job_gone(self, job_id: str) -> None:
        """A job that is gone shows every move; not a fire, whose insert may still be on its way."""
        move = self._moves.get(job_id)
        if move is not None:
            self._fulfil(move)

    def cursor_seen(self, schedule: str, cursor_ms: WallMs) -> None:
        for nominal_ms, fire in list(self._fires_of.get(schedule, {}).items()):
            if nominal_ms <= cursor_ms:
                promise = self._promises[fire]
                promise.cursor_seen = True
                self._fulfil_fire(promise)

    def schedule_gone(self, schedule: str) -> None:
        for fire in list(self._fires_of.get(schedule, {}).values()):
            promise = self._promises[fire]
            promise.cursor_seen = True
            self._fulfil_fire(promise)

    def concluded(self, decision: Decision, settlement: Settlement) -> bool:
        """What applying ``decision`` said; True when that ended its promise."""
        promise = self._promises.get(decision)
        if promise is None:
            # Its promise ended before it was applied, perhaps even before it was journaled; that entry is done too.
            self._settled.append(decision)
            return False
        durable = settlement is Settlement.DONE and promise.reasserted
        if settlement is Settlement.LOST or (durable and isinstance(decision, Fire)):
            self._fulfil(decision)
            return True
        return False

    def is_reasserted(self, decision: Decision) -> bool:
        """Whether the decision was promised, did not come back, and was decided again."""
        promise = self._promises.get(decision)
        return promise is not None and promise.reasserted

    def take_overdue(self, before_ms: int, now: WallMs, limit: int) -> list[Decision]:
        """Promises made at or before ``before_ms``, oldest first; each counts as promised again, now."""
        overdue: list[Decision] = []
        for decision, promise in self._promises.items():
            if promise.promised_at_ms > before_ms or len(overdue) >= limit:
                break
            overdue.append(decision)
        for decision in overdue:
            promise = self._promises.pop(decision)
            promise.promised_at_ms = now
            promise.reasserted = True
            self._promises[decision] = promise
        return overdue

    def oldest_at(self) -> int | None:
        return next((promise.promised_at_ms for promise in self._promises.values()), None)

    def take_settled(self) -> tuple[Decision, ...]:
        """The decisions whose promises ended since the last call."""
        settled = tuple(self._settled)
        self._settled.clear()
        return settled

    def clear(self) -> None:
        """Forget all promises, without settling them."""
        for table in (self._promises, self._moves, self._fires, self._fires_of):
            table.clear()
        self._settled.clear()

    def _fire_seen(self, job_id: str) -> None:
        fire = self._fires.get(job_id)
        if fire is not None:
            promise = self._promises[fire]
            promise.job_seen = True
            self._fulfil_fire(promise)

    def _fulfil_fire(self, promise: _Promise) -> None:
        if promise.job_seen and promise.cursor_seen:
            self._fulfil(promise.decision)

    def _fulfil(self, decision: Decision) -> None:
        del self._promises[decision]
        self._settled.append(decision)
        if isinstance(decision, Fire):
            del self._fires[decision.job_id]
            of_schedule = self._fires_of[decision.schedule]
            del of_schedule[decision.nominal_ms]
            if not of_schedule:
                del self._fires_of[decision.schedule]
        else:
            del self._moves[decision.job_id]


def _shows(job: JobRef, move: Move) -> bool:
    """Whether this version of the job is at or past what ``move`` wants."""
    if job.state in TERMINAL or job.attempt > move.attempt:
        return True
    match move:
        case Dispatch():
            return job.attempt == move.attempt
        case Requeue():
            return job.attempt == move.attempt and job.state is JobState.PENDING
        case Fail():
            return False
