"""In which form a job's data is written and read, from the least that the protocol needs to what the system has.

The least of all has a small document, no index, short updates, and streams of raw bytes that nobody decodes. *As
stored*, a job has the document, the indexes and the updates of the system, and each stream is the one that a mirror
follows, decoded by the driver: what this form of the data costs, whatever the code around it. *Mirrored*, each stream
is folded into a mirror and a core of the system besides, as every replica does that may lead the next moment: what a
deployment costs in which a successor knows all that the leader knows. *In processes* is the same with a process for
each replica and processor.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from hascheduler.dispatch.decisions import Dispatch
from hascheduler.model.documents.job import new_job_document
from hascheduler.model.documents.schedule import NewSchedule, new_schedule_document
from hascheduler.model.job import JobState, Move, NewJob
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.state_updates import (
    AttemptTimes,
    claimed_fields,
    expiry,
    plain_terminal_update,
    source_states,
)
from hascheduler.mongo.work.starts import first_start
from hascheduler.ports import AttemptOutcome
from hascheduler.schema.schedule import JobTemplate
from hascheduler.schema.trigger import Once, Trigger

PROCESSORS = ("processor-1", "processor-2")
"""Their queues have their names."""
NOMINAL_MS = 1
"""Of each fire."""
_JOB_RETENTION_MS = 86_400_000
_JOB: dict[str, Any] = {
    "state": "pending",
    "definition": "noop",
    "tenant": "default",
    "lane": "default",
    "priority": 0,
    "payload": {"number": 1},
    "attempt": 0,
    "attempts": [],
    "rev": 1,
}
"""About as large as a job that is submitted with nothing but its definition."""
_SCHEDULE: dict[str, Any] = {"cursor_ms": 0, "job": {"definition": "noop"}}
Write = tuple[dict[str, Any], dict[str, Any]]
"""What a job must be beside its id, and the update."""


class Form(StrEnum):
    """In which form a job's data is, and what becomes of its events."""

    LEAST = "least"
    AS_STORED = "as stored"
    MIRRORED = "mirrored"
    IN_PROCESSES = "in processes"

    def case(self, label: str) -> str:
        """What is measured under that label, in this form."""
        return label if self is Form.LEAST else f"{label}, {self}"


@dataclass(frozen=True, slots=True)
class Moves:
    """The moves of a job by one processor, each the first attempt's."""

    claim: Write
    start: Write
    finish: Write


@dataclass(frozen=True, slots=True)
class Written:
    """A job and a schedule as they are written first, both without an id, and what each processor's jobs go through."""

    job: Mapping[str, Any]
    schedule: Mapping[str, Any]
    moves: Mapping[str, Moves]

    @classmethod
    def of(cls, form: Form, at_ms: int) -> "Written":
        """All moves say that they are of ``at_ms``, in Unix milliseconds: one process finds what another has written
        only if both have the same."""
        if form is Form.LEAST:
            return cls(_JOB, _SCHEDULE, {name: _least_moves(name) for name in PROCESSORS})
        moves = {name: _stored_moves(name, WallMs(at_ms)) for name in PROCESSORS}
        return cls(_stored_job(), _stored_schedule(), moves)


def schedule_names(count: int) -> list[str]:
    return [f"schedule-{number:06d}" for number in range(count)]


def fired_id(schedule: str) -> str:
    return f"fire:{schedule}:{NOMINAL_MS}"


def _least_moves(processor: str) -> Moves:
    def move(before: str, **fields: Any) -> Write:
        return {"state": before}, {"$set": fields, "$inc": {"rev": 1}}

    return Moves(
        claim=move("pending", state="dispatched", attempt=1, processor=processor),
        start=move("dispatched", state="running", started_at_ms=1),
        finish=move("running", state="succeeded", result=None),
    )


def _stored_job() -> dict[str, Any]:
    job = NewJob("", "noop", "target", {"number": 1}, "default", "default", "default", 5, "queued", {}, WallMs(1))
    return new_job_document(job)


def _stored_schedule() -> dict[str, Any]:
    template = JobTemplate("noop", None, "default", "default", "default", 5, "queued")
    once = Trigger(Once(WallMs(NOMINAL_MS)))
    return new_schedule_document(NewSchedule("", once, template, {"number": 1}, {}, WallMs(0)))


def _stored_moves(processor: str, at_ms: WallMs) -> Moves:
    held = {"attempt": 1, "processor": processor}
    times = AttemptTimes(at_ms, at_ms)
    starting, started = first_start(at_ms)
    claimed = {"$set": claimed_fields(Dispatch("", 1, processor), at_ms), "$inc": {"rev": 1}}
    ended = plain_terminal_update(
        AttemptOutcome(JobState.SUCCEEDED), (1, processor), times, at_ms, kept_ms=_JOB_RETENTION_MS
    )
    running = {"state": {"$in": source_states(Move.FINISH)}, **times.filter(expiry(at_ms, _JOB_RETENTION_MS))}
    return Moves(
        claim=({"state": {"$in": source_states(Move.CLAIM)}, "attempt": 0}, claimed),
        start=({**held, "state": {"$in": starting}}, started),
        finish=({**held, **running}, ended),
    )
