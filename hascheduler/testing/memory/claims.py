"""Applies the leader's decisions: first those about schedules, then those about jobs, each job's in their order.

If a job is not in the state that a decision demands, the decision is DONE if the document shows that it was applied
before, and LOST if not.
"""

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress

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
    attempt_end,
    missed,
    throttled,
)
from hascheduler.dispatch.schedules.edits import reset_cursor
from hascheduler.dispatch.schedules.planner import SETTLEMENT_OF, CursorStep, counted, cursor_steps
from hascheduler.dispatch.settlements import is_carried_out, riding
from hascheduler.errors import InvalidInput, StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.documents.fired_job import FIRED_ON, JobMaker, fired_on
from hascheduler.model.documents.job import maker_of, new_job_document
from hascheduler.model.documents.schedule import (
    TOO_MANY_FAILURES,
    decode_schedule,
    encode_fire_counts,
    encode_missed,
    encode_offsets,
    encode_reset,
    unstorable_of,
)
from hascheduler.model.documents.verdict import decode_verdict, verdict_document, verdict_id
from hascheduler.model.job import JobState, Move, is_before_last, last_job_id
from hascheduler.model.values.instants import WallMs, to_datetime
from hascheduler.model.verdict import FireCounts, Verdict, VerdictRun, is_unstorable, stored_verdict
from hascheduler.ports import AttemptOutcome
from hascheduler.testing.memory import state_updates
from hascheduler.testing.memory.database import Document, MemoryDatabase, RetainingStore, stored_form


class MemoryClaimStore(RetainingStore):
    """`hascheduler.ports.ClaimStore`; a job that fails here is deleted ``retention_ms`` later."""

    async def apply(self, decisions: Sequence[Decision], at_ms: WallMs, *, majority: bool) -> list[Settlement]:
        # Every write here is durable at once, with or without a majority.
        settled: dict[Decision, Settlement] = {}
        try:
            async with self._connection.exchange("claims.apply") as database:
                outcomes = [decision for decision in decisions if isinstance(decision, Fire | RecordVerdict)]
                late = [each for each in riding(decisions).values() if database.find(Collection.JOBS, each.job_id)]
                settled.update(apply_time_outcomes(database, outcomes, at_ms, self._retention_ms).items())
                for decision in decisions:
                    match decision:
                        case CountFailures():
                            settled[decision] = _count_failures(database, decision)
                        case ResetCursor():
                            settled[decision] = _apply_reset(database, decision)
                        case ReleaseHold():
                            settled[decision] = _release(database, decision)
                for decision in decisions:
                    if isinstance(decision, JobMove):
                        settled[decision] = self._move(database, decision, at_ms, is_late=decision in late)
        except StoreUnavailable:
            return [Settlement.UNKNOWN] * len(decisions)
        return [settled[decision] for decision in decisions]

    def _move(self, database: MemoryDatabase, decision: JobMove, at_ms: WallMs, *, is_late: bool) -> Settlement:
        job = database.find(Collection.JOBS, decision.job_id)
        if job is None:
            return Settlement.LOST
        attempt = job.get("attempt")
        match decision:
            case Dispatch() if not is_late and state_updates.may(Move.CLAIM, job) and attempt == decision.attempt - 1:
                fields = state_updates.dispatched(job, decision.attempt, decision.processor, at_ms)
            case Requeue() if state_updates.may(decision.move, job) and attempt == decision.attempt:
                fields = state_updates.back_to_pending(job, attempt_end(decision.reason), decision.reason, at_ms)
            case Fail() if state_updates.may(Move.FAIL, job) and attempt == decision.attempt:
                end = AttemptOutcome(JobState.FAILED, error=decision.reason)
                fields = state_updates.to_terminal(
                    job, end, attempt_end(decision.reason), at_ms, kept_ms=self._retention_ms
                )
            case Cancel() if attempt == decision.attempt and state_updates.may_be_cancelled(job):
                fields = state_updates.cancelled(job, at_ms, decision.reason, kept_ms=self._retention_ms)
            case _:
                return Settlement.DONE if is_carried_out(decision, job) else Settlement.LOST
        database.update(Collection.JOBS, job, fields)
        return Settlement.DONE


def _release(database: MemoryDatabase, decision: ReleaseHold) -> Settlement:
    hold = database.find(Collection.HOLDS, decision.key)
    if hold is None or hold.get("rev") != decision.rev:
        return Settlement.LOST
    database.update(Collection.HOLDS, hold, {"released": decision.rev})
    return Settlement.DONE


def apply_time_outcomes(
    database: MemoryDatabase, outcomes: Sequence[TimeOutcome], at_ms: WallMs, kept_ms: int
) -> dict[TimeOutcome, Settlement]:
    """Apply outcomes to their schedules and return how each was settled.

    DONE if it is applied, now or before; REFUSED if no job can be stored; LOST; UNKNOWN if an outcome before it is
    missing.
    """
    settled: dict[TimeOutcome, Settlement] = {}
    of_schedule: dict[str, list[TimeOutcome]] = defaultdict(list)
    for outcome in outcomes:
        of_schedule[outcome.schedule].append(outcome)
    for name, of_one in of_schedule.items():
        written = {outcome for outcome in of_one if _is_written(database, outcome)}
        steps = cursor_steps(database.find(Collection.SCHEDULES, name), of_one, written)
        tally = steps.tally
        for outcome, step in steps.links:
            if step is CursorStep.OTHER and isinstance(outcome, Fire):
                _cancel_incomplete(database, outcome, at_ms, kept_ms)
            if step in (CursorStep.NEXT, CursorStep.WRITTEN):
                tally = counted(tally, outcome)
            settled[outcome] = _carry_out(database, outcome, step, at_ms, kept_ms, tally=tally)
    return settled


def _count_failures(database: MemoryDatabase, decision: CountFailures) -> Settlement:
    """Store the count; LOST if the schedule is gone, is another of that name, or was edited since the count."""
    schedule = database.find(Collection.SCHEDULES, decision.schedule)
    if schedule is None or decision.created_at_ms not in (None, schedule.get("created_at_ms")):
        return Settlement.LOST
    if decision.pause_at_ms is not None and schedule.get("rev") != decision.rev:
        is_done = schedule.get("paused_at_ms") == decision.pause_at_ms
        return Settlement.DONE if is_done else Settlement.LOST
    fields: dict[str, object] = {"failures": decision.failures}
    if decision.pause_at_ms is not None:
        fields |= {
            "paused_at_ms": decision.pause_at_ms,
            "paused_because": TOO_MANY_FAILURES.format(decision.failures),
            "rev": decision.rev + 1,
        }
    database.update(Collection.SCHEDULES, schedule, fields)
    return Settlement.DONE


def _apply_reset(database: MemoryDatabase, decision: ResetCursor) -> Settlement:
    """Reset the cursor; LOST if the schedule is gone or another one, DONE if the request is gone, now or before."""
    stored = database.find(Collection.SCHEDULES, decision.schedule)
    if stored is None or stored["created_at_ms"] != decision.created_at_ms:
        return Settlement.LOST
    if stored.get("reset_at_ms") != decision.reset_at_ms:
        return Settlement.DONE
    try:
        schedule = decode_schedule(decision.schedule, stored)
        made = {
            run.first_ms: (document, run)
            for document in database.documents(Collection.VERDICTS)
            if document["schedule"] == schedule.name
            and document.get("schedule_created_at_ms") == schedule.created_at_ms
            if (run := decode_verdict(document)).last_ms > decision.reset_at_ms
            and run.verdict is not Verdict.UNSTORABLE
        }
        done = reset_cursor(schedule, [run for _, (_, run) in sorted(made.items())])
    except InvalidInput:  # damaged by hand since
        database.update(Collection.SCHEDULES, stored, {"reset_at_ms": None, "rev": stored["rev"] + 1})
        return Settlement.DONE
    for run, left in done.withdrawn:
        document, _ = made[run.first_ms]
        if left is None:
            database.delete(Collection.VERDICTS, document["_id"])
        else:
            database.update(Collection.VERDICTS, document, {"last_ms": left.last_ms, "count": left.count})
    database.update(Collection.SCHEDULES, stored, {**encode_reset(done.schedule), "rev": stored["rev"] + 1})
    return Settlement.DONE


def _carry_out(
    database: MemoryDatabase, outcome: TimeOutcome, step: CursorStep, at_ms: WallMs, kept_ms: int, *, tally: FireCounts
) -> Settlement:
    before = Settlement.REFUSED if _is_unstorable(database, outcome) else Settlement.DONE
    if step not in (CursorStep.NEXT, CursorStep.WRITTEN):
        return before if step is CursorStep.DECIDED else SETTLEMENT_OF[step]
    settlement = _write_outcome(database, outcome, at_ms, kept_ms) if step is CursorStep.NEXT else before
    schedule = database.find(Collection.SCHEDULES, outcome.schedule)
    assert schedule is not None
    # This is no edit, so rev stays.
    fields: dict[str, object] = {"cursor_ms": outcome.nominal_ms, "tally": encode_fire_counts(tally)}
    fields |= encode_offsets(outcome.nominal_ms, outcome.offsets)
    if throttled(outcome):
        fields["throttled"] = schedule.get("throttled", 0) + throttled(outcome)
    passed_by = missed([outcome])
    if passed_by is not None:
        fields["missed"] = encode_missed(passed_by)
    if settlement is Settlement.REFUSED:
        fields["unstorable"] = unstorable_of(schedule) + 1
    database.update(Collection.SCHEDULES, schedule, fields)
    return settlement


def _write_outcome(database: MemoryDatabase, outcome: TimeOutcome, at_ms: WallMs, kept_ms: int) -> Settlement:
    if isinstance(outcome, RecordVerdict):
        _record(database, outcome, outcome.run, at_ms, kept_ms)
        return Settlement.DONE
    schedule = database.find(Collection.SCHEDULES, outcome.schedule)
    jobs = JobMaker(outcome.schedule, schedule or {}, outcome.keyed_by).fired(outcome.nominal_ms, outcome.after)
    with suppress(InvalidInput):
        basis = {FIRED_ON: fired_on(outcome.basis)}
        documents = [stored_form(new_job_document(job) | (basis if is_before_last(job.id) else {})) for job in jobs]
        if documents and not any(_is_of_another(database, document) for document in documents):
            for document in documents:
                database.insert(Collection.JOBS, document)
            return Settlement.DONE
    at = outcome.nominal_ms
    _record(database, outcome, VerdictRun(outcome.schedule, Verdict.UNSTORABLE, at, at, 1), at_ms, kept_ms)
    return Settlement.REFUSED


def _cancel_incomplete(database: MemoryDatabase, lost: Fire, at_ms: WallMs, kept_ms: int) -> None:
    """Cancel the incomplete graph of a lost fire, unless it happened anyway or was decided again after an edit."""
    if _is_fired(database, lost):
        return
    for job in list(database.documents(Collection.JOBS)):
        id = str(job["_id"])
        is_part = is_before_last(id) and last_job_id(id) == lost.job_id and _is_of(job, lost)
        if is_part and job.get(FIRED_ON) == fired_on(lost.basis):
            database.update(Collection.JOBS, job, state_updates.cancelled(job, at_ms, kept_ms=kept_ms))


def _is_of_another(database: MemoryDatabase, document: Document) -> bool:
    """Return True if a job of an earlier schedule of that name has the id."""
    found = database.find(Collection.JOBS, document["_id"])
    maker, makes = (None if found is None else maker_of(found)), maker_of(document)
    return maker is not None and makes is not None and not makes.is_same(maker)


def _record(database: MemoryDatabase, outcome: TimeOutcome, run: VerdictRun, at_ms: WallMs, kept_ms: int) -> None:
    created_at_ms = outcome.basis.created_at_ms
    document = verdict_document(run, at_ms, created_at_ms) | {"expire_at": to_datetime(at_ms + kept_ms)}
    if not database.insert(Collection.VERDICTS, document):
        found = database.find(Collection.VERDICTS, document["_id"])
        if found is not None and not _is_of(found, outcome):
            database.replace(Collection.VERDICTS, document)  # no request can reach that one any more


def _is_fired(database: MemoryDatabase, fire: Fire) -> bool:
    job = database.find(Collection.JOBS, fire.job_id)
    return job is not None and _is_of(job, fire)


def _is_unstorable(database: MemoryDatabase, outcome: TimeOutcome) -> bool:
    """Return True if its job is recorded as unstorable and does not exist."""
    if not isinstance(outcome, Fire) or _is_fired(database, outcome):
        return False
    record = database.find(Collection.VERDICTS, verdict_id(outcome.schedule, outcome.nominal_ms))
    return record is not None and is_unstorable(record) and _is_of(record, outcome)


def _is_written(database: MemoryDatabase, outcome: TimeOutcome) -> bool:
    if isinstance(outcome, Fire):
        return _is_fired(database, outcome) or _is_unstorable(database, outcome)
    run = outcome.run
    record = database.find(Collection.VERDICTS, verdict_id(run.schedule, run.first_ms))
    if record is None or not _is_of(record, outcome):
        return False
    return (record["verdict"], record["last_ms"]) == (stored_verdict(run)[0], run.last_ms)


def _is_of(document: Document, outcome: TimeOutcome) -> bool:
    created_at_ms = document.get("schedule_created_at_ms")
    return created_at_ms is None or outcome.basis.is_of(created_at_ms)
