"""A tiny database in memory: documents, compare-and-set writes, and the one stream that tells of them.

It knows the rules of the real one only as far as the core can notice them, and checks at every write that no attempt
is claimed or started twice, that no nominal time is inserted twice, and that each move is in the table.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from hascheduler.dispatch.decisions import (
    Cancel,
    CountFailures,
    Decision,
    Dispatch,
    Fire,
    JobMove,
    RecordVerdict,
    ReleaseHold,
    Requeue,
    ResetCursor,
    Settlement,
    TimeOutcome,
    throttled,
)
from hascheduler.dispatch.schedules.edits import reset_cursor
from hascheduler.dispatch.schedules.planner import SETTLEMENT_OF, CursorStep, counted, cursor_steps
from hascheduler.dispatch.settlements import classify_outcome
from hascheduler.mirror.changes import Change, Operation, batch_read
from hascheduler.model.collection import Collection
from hascheduler.model.documents.fired_job import AFTER_MAX, JobMaker
from hascheduler.model.documents.job import REVIVED_FIELDS, new_job_document, stored_waits_for
from hascheduler.model.documents.lean_fields import LEAN_FIELDS
from hascheduler.model.documents.processor import encode_processor
from hascheduler.model.documents.schedule import decode_schedule, encode_fire_counts, encode_reset, encode_schedule_ref
from hascheduler.model.job import LIVE, OCCUPYING, TRANSITIONS, JobState, Move, NewJob, is_batch
from hascheduler.model.processor import ProcessorRef
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import VerdictRun
from hascheduler.schema.calendar import Calendar
from hascheduler.schema.noun import document_of
from hascheduler.schema.schedule import ScheduleRef
from hascheduler.schema.tenant import Tenant
from tests.checkers.jobs import may_follow

JOBS, SCHEDULES, PROCESSORS = Collection.JOBS, Collection.SCHEDULES, Collection.PROCESSORS
_SOURCES = {Dispatch: TRANSITIONS[Move.CLAIM].sources, Cancel: LIVE}


class Database:
    def __init__(self) -> None:
        self.documents: dict[Collection, dict[str, dict[str, Any]]] = {
            JOBS: {}, SCHEDULES: {}, PROCESSORS: {}, Collection.TENANTS: {}, Collection.CALENDARS: {}
        }  # fmt: skip
        self.stream: list[Change] = []
        self._claimed: set[tuple[str, int]] = set()
        self._started: set[tuple[str, int]] = set()
        self._inserted: set[str] = set()
        self._ended: set[str] = set()
        self.passed_over: dict[tuple[str, int], VerdictRun] = {}
        """What did not fire, by schedule and first nominal time."""
        self.unstorable: set[str] = set()
        """The jobs of times that fired, that can't be."""

    @property
    def jobs(self) -> dict[str, dict[str, Any]]:
        return self.documents[JOBS]

    def read(self, collection: Collection, id: str) -> Change:
        if is_batch(id):
            states = {each: JobState(job["state"]) for each, job in self.jobs.items() if job["batch"] == id}
            failed = [each for each, state in states.items() if state in (JobState.FAILED, JobState.CANCELLED)]
            named = (failed[0], states[failed[0]].value) if failed else None
            return batch_read(id, is_live=any(state in LIVE for state in states.values()), failed=named)
        fields = self.documents[collection].get(id)
        if fields is None:
            return Change(collection, Operation.DELETE, id, {})
        return Change(collection, Operation.PUT, id, _lean(collection, fields))

    def snapshot(self) -> list[Change]:
        return [
            self.read(collection, id)
            for collection, documents in self.documents.items()
            for id, fields in documents.items()
            if collection is not JOBS or fields["state"] in LIVE
        ]

    def occupants(self, processor_id: str) -> list[str]:
        return [id for id, job in self.jobs.items() if job["state"] in OCCUPYING and job["processor"] == processor_id]

    # The API

    def submit(self, job: NewJob) -> None:
        assert job.id not in self._inserted, f"{job.id} was inserted twice"
        self._inserted.add(job.id)
        document = new_job_document(job)
        del document["_id"]
        self._put(JOBS, job.id, document)

    def cancel(self, id: str, at_ms: WallMs) -> None:
        state = self.jobs[id]["state"]
        if state in TRANSITIONS[Move.CANCEL].sources:
            self._end(id, JobState.CANCELLED, "cancelled", None)
        elif state == JobState.RUNNING and self.jobs[id]["cancel_requested_at_ms"] is None:
            self._move(id, cancel_requested_at_ms=at_ms)

    def reprioritize(self, id: str, priority: int) -> None:
        if self.jobs[id]["state"] == JobState.PENDING:
            self._move(id, priority=priority)

    def revive(self, id: str, waits_for: Sequence[str] = ()) -> None:
        job = self.jobs[id]
        if job["state"] in TRANSITIONS[Move.REVIVE].sources:
            fields = {**REVIVED_FIELDS, "state": JobState.PENDING, "waits_for": stored_waits_for(id, waits_for)}
            self._move(id, **fields, attempt=job["attempt"] + 1)

    def put_schedule(self, schedule: ScheduleRef) -> None:
        self._put(SCHEDULES, schedule.name, encode_schedule_ref(schedule))

    def schedule(self, name: str) -> ScheduleRef:
        return decode_schedule(name, self.documents[SCHEDULES][name])

    def edit_schedule(self, edited: ScheduleRef) -> None:
        fields = {**encode_schedule_ref(edited), "rev": edited.rev + 1}
        before = self.documents[SCHEDULES][edited.name]
        changed = {name: value for name, value in fields.items() if before[name] != value}
        self._patch(SCHEDULES, edited.name, **changed)

    def delete(self, collection: Collection, id: str) -> None:
        if self.documents[collection].pop(id, None) is not None:
            self.stream.append(Change(collection, Operation.DELETE, id, {}))

    def put_calendar(self, calendar: Calendar) -> None:
        self._put(Collection.CALENDARS, calendar.name, document_of(calendar))

    def limit(self, tenant: Tenant) -> None:
        self._put(Collection.TENANTS, tenant.name, document_of(tenant))

    # Processors

    def register(self, processor: ProcessorRef) -> None:
        document = encode_processor(processor)
        del document["_id"]
        self._put(PROCESSORS, processor.id, document)

    def beat(self, id: str) -> None:
        fields = self.documents[PROCESSORS].get(id)
        if fields is not None:
            self._patch(PROCESSORS, id, beat=fields["beat"] + 1)

    def start(self, id: str, attempt: int, processor_id: str) -> bool:
        if not self._holds(id, attempt, processor_id, JobState.DISPATCHED):
            return False
        assert (id, attempt) not in self._started, f"attempt {attempt} of {id} was started twice"
        self._started.add((id, attempt))
        self._move(id, state=JobState.RUNNING)
        return True

    def finish(self, id: str, attempt: int, processor_id: str, state: JobState) -> bool:
        if not self._holds(id, attempt, processor_id, JobState.RUNNING):
            return False
        self._end(id, state, state.value, None)
        return True

    def try_again(self, id: str, attempt: int, processor_id: str, at_ms: WallMs) -> None:
        """The attempt failed, and the next one comes then."""
        if self._holds(id, attempt, processor_id, JobState.RUNNING):
            self._back_to_pending(id, "failed", "an error", retry_at_ms=at_ms, failures=self.jobs[id]["failures"] + 1)

    def give_back(self, id: str, attempt: int, processor_id: str) -> bool:
        if not self._holds(id, attempt, processor_id, JobState.DISPATCHED, JobState.RUNNING):
            return False
        self._back_to_pending(id, "given_back", "drain")
        return True

    # The leader

    def apply(self, decision: Decision, at_ms: WallMs) -> Settlement:
        match decision:
            case Fire() | RecordVerdict():
                return self._conclude(decision)
            case CountFailures():
                return self._count_failures(decision)
            case ResetCursor():
                return self._reset_cursor(decision)
            case ReleaseHold():
                return Settlement.DONE  # no hold is in these stories
            case _:
                return self._move_job(decision, at_ms)

    def _move_job(self, decision: JobMove, at_ms: WallMs) -> Settlement:
        job = self.jobs.get(decision.job_id)
        demanded = decision.attempt - 1 if isinstance(decision, Dispatch) else decision.attempt
        sources = _SOURCES.get(type(decision), TRANSITIONS[Move.FAIL].sources)
        if isinstance(decision, Requeue):
            sources = TRANSITIONS[decision.move].sources
        if job is None or job["state"] not in sources or job["attempt"] != demanded:
            return classify_outcome(decision, job)
        match decision:
            case Dispatch(id, attempt, processor_id):
                assert (id, attempt) not in self._claimed, f"attempt {attempt} of {id} was claimed twice"
                self._check_dependencies(job)
                self._claimed.add((id, attempt))
                self._move(
                    id, state=JobState.DISPATCHED, attempt=attempt, processor=processor_id, dispatched_at_ms=at_ms
                )
            case Requeue(id, _, reason) if job["state"] == JobState.RUNNING and reason == "timed out":
                self._back_to_pending(id, "failed", reason, failures=job["failures"] + 1)
            case Requeue(id, _, reason) if job["state"] == JobState.RUNNING:
                losses = job["losses"] + 1
                again_ms = at_ms + [0, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000][min(losses, 8) - 1]
                retry_at_ms = None if losses == 1 else WallMs(again_ms)
                self._back_to_pending(id, "lost", reason, losses=losses, retry_at_ms=retry_at_ms)
            case Requeue(id, _, reason):
                self._back_to_pending(id, "lost", reason)
            case Cancel() if job["cancel_requested_at_ms"] is not None and job["state"] != JobState.PENDING:
                return Settlement.DONE
            case Cancel(id):
                self.cancel(id, at_ms)
            case _:
                self._end(decision.job_id, JobState.FAILED, "lost", decision.reason)
        return Settlement.DONE

    def _conclude(self, conclusion: TimeOutcome) -> Settlement:
        schedule = self.documents[SCHEDULES].get(conclusion.schedule)
        if isinstance(conclusion, Fire):
            job = self.jobs.get(conclusion.job_id)
            is_made = job is not None and conclusion.basis.is_of(job["schedule_created_at_ms"])
            is_written = is_made or conclusion.job_id in self.unstorable
        else:
            is_written = self.passed_over.get((conclusion.schedule, conclusion.run.first_ms)) == conclusion.run
        steps = cursor_steps(schedule, [conclusion], [conclusion] if is_written else [])
        [(_, link)] = steps.links
        if link not in (CursorStep.NEXT, CursorStep.WRITTEN):
            return SETTLEMENT_OF[link]
        settlement = Settlement.DONE if is_written else self._write(conclusion)
        tally = encode_fire_counts(counted(steps.tally, conclusion))
        fields: dict[str, Any] = {"cursor_ms": conclusion.nominal_ms, "tally": tally}
        if throttled(conclusion):
            known = self.documents[SCHEDULES][conclusion.schedule].get("throttled", 0)
            fields["throttled"] = known + throttled(conclusion)
        self._patch(SCHEDULES, conclusion.schedule, **fields)
        return settlement

    def _write(self, conclusion: TimeOutcome) -> Settlement:
        if isinstance(conclusion, RecordVerdict):
            key = (conclusion.schedule, conclusion.run.first_ms)
            assert self.passed_over.setdefault(key, conclusion.run) == conclusion.run, f"{key} has two verdicts"
            return Settlement.DONE
        schedule = self.documents[SCHEDULES][conclusion.schedule]
        maker = JobMaker(conclusion.schedule, schedule, conclusion.keyed_by)
        jobs = maker.fired(conclusion.nominal_ms, conclusion.after)
        if not jobs:
            self.unstorable.add(conclusion.job_id)
            return Settlement.REFUSED
        for job in jobs:
            self.submit(job)
        self._check_after(conclusion)
        return Settlement.DONE

    def _check_after(self, fire: Fire) -> None:
        """Whatever there is of the fires before is waited for, unless it was revived, or there is too much."""
        earlier = [
            id
            for id, job in self.jobs.items()
            if fire.after and job["schedule"] == fire.schedule and fire.basis.is_of(job["schedule_created_at_ms"])
            if job["nominal_ms"] < fire.nominal_ms and job["state"] in LIVE and id not in self._ended
        ]
        is_enough = set(earlier) <= set(fire.after) or len(fire.after) == AFTER_MAX
        assert is_enough, f"{fire} does not wait for all of {earlier}"

    def _count_failures(self, decision: CountFailures) -> Settlement:
        schedule = self.documents[SCHEDULES].get(decision.schedule)
        if schedule is None or decision.created_at_ms not in (None, schedule["created_at_ms"]):
            return Settlement.LOST
        if decision.pause_at_ms is not None and schedule["rev"] != decision.rev:
            return Settlement.DONE if schedule["paused_at_ms"] == decision.pause_at_ms else Settlement.LOST
        if decision.pause_at_ms is None:
            self._patch(SCHEDULES, decision.schedule, failures=decision.failures)
        else:
            pause = {"failures": decision.failures, "paused_at_ms": decision.pause_at_ms, "rev": decision.rev + 1}
            self._patch(SCHEDULES, decision.schedule, **pause)
        return Settlement.DONE

    def _reset_cursor(self, decision: ResetCursor) -> Settlement:
        stored = self.documents[SCHEDULES].get(decision.schedule)
        if stored is None or stored["created_at_ms"] != decision.created_at_ms:
            return Settlement.LOST
        if stored.get("reset_at_ms") != decision.reset_at_ms:
            return Settlement.DONE
        runs = {key: run for key, run in self.passed_over.items() if key[0] == decision.schedule}
        later = [run for _, run in sorted(runs.items()) if run.last_ms > decision.reset_at_ms]
        done = reset_cursor(decode_schedule(decision.schedule, stored), later)
        for run, left in done.withdrawn:
            del self.passed_over[(run.schedule, run.first_ms)]
            if left is not None:
                self.passed_over[(run.schedule, run.first_ms)] = left
        self._patch(SCHEDULES, decision.schedule, **encode_reset(done.schedule), rev=stored["rev"] + 1)
        return Settlement.DONE

    # Writing

    def _holds(self, id: str, attempt: int, processor_id: str, *states: JobState) -> bool:
        job = self.jobs.get(id)  # its insert may have been lost with a primary
        if job is None or job["state"] not in states:
            return False
        return bool((job["attempt"], job["processor"]) == (attempt, processor_id))

    def _check_dependencies(self, job: dict[str, Any]) -> None:
        for id in self._awaited(job):
            state = self.jobs[id]["state"]
            has_ended_well = id in self._ended if job["ignores_failures"] else state == JobState.SUCCEEDED
            assert has_ended_well, f"a job goes although {id}, which it waits for, is {state}"

    def _awaited(self, job: dict[str, Any]) -> Iterator[str]:
        """The jobs that it waits for: of a batch, those that were there when it was submitted, and perhaps more."""
        before = list(itertools.takewhile(lambda other: self.jobs[other] is not job, self.jobs))
        for id in job["waits_for"]:
            if is_batch(id):
                yield from [each for each in before if self.jobs[each]["batch"] == id]
            elif self.jobs[id] is not job:
                yield id

    def _back_to_pending(self, id: str, outcome: str, error: str, **more: Any) -> None:
        attempts = self._attempts_with(id, outcome, error)
        self._move(id, state=JobState.PENDING, processor=None, dispatched_at_ms=None, attempts=attempts, **more)

    def _end(self, id: str, state: JobState, outcome: str, error: str | None) -> None:
        self._ended.add(id)
        attempts = self._attempts_with(id, outcome, error)
        self._move(id, state=state, processor=None, error=error, attempts=attempts)

    def _attempts_with(self, id: str, outcome: str, error: str | None) -> Sequence[dict[str, Any]]:
        job = self.jobs[id]
        if job["state"] not in OCCUPYING:
            return list(job["attempts"])
        record = {"number": job["attempt"], "processor": job["processor"], "outcome": outcome, "error": error}
        return [*job["attempts"], record]

    def _move(self, id: str, **fields: Any) -> None:
        job = self.jobs[id]
        before = JobState(job["state"])
        after = JobState(fields.get("state", before))
        assert before is after or may_follow(before, after), f"{id} went from {before} to {after}"
        assert fields.get("attempt", job["attempt"]) >= job["attempt"]
        self._patch(JOBS, id, rev=job["rev"] + 1, **{name: getattr(v, "value", v) for name, v in fields.items()})

    def _put(self, collection: Collection, id: str, fields: dict[str, Any]) -> None:
        self.documents[collection][id] = fields
        self.stream.append(Change(collection, Operation.PUT, id, _lean(collection, fields)))

    def _patch(self, collection: Collection, id: str, **fields: Any) -> None:
        self.documents[collection][id] = {**self.documents[collection][id], **fields}
        self.stream.append(Change(collection, Operation.PATCH, id, _lean(collection, fields)))


def _lean(collection: Collection, fields: dict[str, Any]) -> dict[str, Any]:
    return {name: fields[name] for name in LEAN_FIELDS[collection] if name in fields}
