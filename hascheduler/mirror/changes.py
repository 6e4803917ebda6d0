"""The inputs and outputs of a mirror.

In: a `Change` is one event of the stream, or one document of a snapshot or a fetch, in the order of the stream and
projected to the lean fields. Out: past-tense facts about live documents, the inputs of the dispatch core.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from hascheduler.model.collection import Collection
from hascheduler.model.job import JobRef, JobState
from hascheduler.model.leadership import JournalHead
from hascheduler.model.processor import ProcessorRef
from hascheduler.model.values.frozen import fast_frozen
from hascheduler.schema.schedule import ScheduleRef


class Operation(StrEnum):
    PUT = "put"
    """The whole (lean) document: an insert, a replace, or one read by a snapshot or a fetch."""
    PATCH = "patch"
    """Only the fields that changed."""
    DELETE = "delete"


@fast_frozen
@dataclass(frozen=True, slots=True)
class Change:
    """``fields`` never holds ``_id``; it is empty for a delete. ``id`` is the document's ``_id``, of any type.

    ``position`` is that of the event (see `hascheduler.model.event`), "" for a document of a snapshot or a fetch.
    ``at_ms`` is when the database took the write, if the event says so. ``ahead``: the document was read when the
    event arrived, and may be newer than the event.
    """

    collection: Collection
    operation: Operation
    id: "object"
    fields: Mapping[str, object]
    position: str = field(default="", compare=False)
    at_ms: int | None = field(default=None, compare=False)
    ahead: bool = field(default=False, compare=False)


@fast_frozen
@dataclass(frozen=True, slots=True)
class JobSeen:
    """The newest state of a live job."""

    job: JobRef


@fast_frozen
@dataclass(frozen=True, slots=True)
class JobGone:
    """The job ended (in ``state``), was deleted, or can no longer be read; it holds no slot any more.

    ``finished_at_ms`` is when it ended, by the clock of the process that ended it.
    """

    id: str
    state: JobState | None = None
    finished_at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class BatchSeen:
    """The state of a batch's jobs in the database.

    ``is_live``: some have not ended. ``failed`` is one job that failed or was cancelled, with its state, or None.
    """

    batch: str
    is_live: bool
    failed: tuple[str, JobState] | None = None


@fast_frozen
@dataclass(frozen=True, slots=True)
class ScheduleSeen:
    schedule: ScheduleRef


@dataclass(frozen=True, slots=True)
class ScheduleGone:
    name: str


@dataclass(frozen=True, slots=True)
class ProcessorSeen:
    processor: ProcessorRef


@dataclass(frozen=True, slots=True)
class ProcessorGone:
    """The processor deregistered, or can no longer be read."""

    id: str


@dataclass(frozen=True, slots=True)
class JournalSeen:
    head: JournalHead


@dataclass(frozen=True, slots=True)
class NounSeen:
    """The newest state of a document of another collection; None if it was deleted, or can no longer be read."""

    collection: Collection
    id: str
    noun: Any = None


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A document that can't be read, with the reason. The others go on without it."""

    collection: Collection
    id: str
    reason: str


def batch_read(batch: str, *, is_live: bool, failed: tuple[str, str] | None) -> Change:
    """Return the answer to a fetch of ``batch`` (see `BatchSeen`), in the form of a document among the jobs."""
    return Change(Collection.JOBS, Operation.PUT, batch, {"is_live": is_live, "failed": failed})


CoreFact = JobSeen | JobGone | BatchSeen | ScheduleSeen | ScheduleGone | ProcessorSeen | ProcessorGone | NounSeen
"""The facts about live documents that the dispatch core gets."""
Seen = CoreFact | JournalSeen | Quarantined
