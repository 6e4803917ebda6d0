"""All that the pure side and the daemon ask of the world. Adapters implement these; the daemon knows nothing else.

Faults: every method may raise `StoreUnavailable` (stores, journal, stream) or `BrokerUnavailable` (transport) when
there was no answer in time; whether a write was carried out is then unknown, and each write here may be repeated.
Expected outcomes are return values. No method waits for ever: adapters set time limits on every call.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, TypeVar

from hascheduler.dispatch.accounts import Accounts
from hascheduler.dispatch.decisions import Decision, Settlement
from hascheduler.dispatch.explanation import Explanation
from hascheduler.mirror.changes import Change
from hascheduler.model import documents
from hascheduler.model.instants import MonoMs, WallMs
from hascheduler.model.job import JobState, NewJob
from hascheduler.model.journal import JournalHead
from hascheduler.model.lease import LeaseRecord
from hascheduler.model.message import Message
from hascheduler.model.processor import ProcessorRef
from hascheduler.model.replica import ReplicaStatus
from hascheduler.model.verdict import Verdict, VerdictRun
from hascheduler.simulate.recording import Ended, Heading, RecordedStep

# Time


class Clock(Protocol):
    def wall_ms(self) -> WallMs:
        """Milliseconds since the Unix epoch; may jump."""
        ...

    def mono_ms(self) -> MonoMs:
        """Milliseconds that only grow."""
        ...


# Leadership


class LeaseStore(Protocol):
    """Who leads each shard. Every write is one compare-and-set, acknowledged by a majority."""

    async def get(self, shard: str) -> LeaseRecord | None:
        """The newest majority-committed record."""
        ...

    async def create(self, record: LeaseRecord) -> bool:
        """Insert the first record of its shard; False when there is one."""
        ...

    async def update(self, expected: LeaseRecord, proposed: LeaseRecord) -> bool:
        """Replace ``expected`` (same holder, term and renewals) by ``proposed``; False when it is no longer that."""
        ...


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One entry: its head, when it was written (the leader's wall clock, for people) and what was decided."""

    head: JournalHead
    at_ms: WallMs
    decisions: tuple[Decision, ...] = ()


class Journal(Protocol):
    """The ordered record of every decision: one entry per (shard, seq), written once, never changed."""

    async def tail(self, shard: str) -> JournalHead | None:
        """The head of the newest entry, read so that no earlier acknowledged insert can be missing."""
        ...

    async def insert(self, entry: JournalEntry) -> bool:
        """Insert, acknowledged by a majority; False when that seq is already written (by whomever)."""
        ...

    async def get(self, shard: str, seq: int) -> JournalEntry | None: ...

    async def read(self, shard: str, after_seq: int, before_seq: int) -> list[JournalEntry]:
        """The entries strictly between, in order."""
        ...

    async def trim(self, shard: str, through_seq: int, before_ms: WallMs) -> int:
        """Delete entries up to ``through_seq`` that are older than ``before_ms``; how many."""
        ...


class ClaimStore(Protocol):
    """Carries decisions out, in groups."""

    async def apply(self, decisions: Sequence[Decision], at_ms: WallMs, *, majority: bool) -> list[Settlement]:
        """One settlement for each decision, in their order; applying a decision twice settles DONE twice.

        Fires come before dispatches of the jobs they insert. A dispatch demands ``pending`` and the attempt before
        it; a requeue or fail demands its attempt. No exception for the database's absence: that is UNKNOWN.
        """
        ...


# The stream


@dataclass(frozen=True, slots=True)
class Batch:
    """What the stream delivered: changes in order (perhaps none).

    ``resume`` is the token after them, opaque; ``position`` the cluster time of the last event ("" before the first),
    a text that two replicas may compare.
    """

    changes: Sequence[Change]
    resume: Any
    position: str


class ChangeStream(Protocol):
    """One open stream over all mirrored collections: one total order."""

    async def next_batch(self, wait_ms: int) -> Batch:
        """The next changes, or an empty batch after ``wait_ms``.

        Raises `HistoryLost` when it can't go on (history gone, invalidated, a collection dropped or renamed), and
        `StoreUnavailable` when it may be resumed after the last batch's token.
        """
        ...

    def snapshot(self) -> AsyncIterator[Sequence[Change]]:
        """All live documents, as PUTs in slices, read at or after the moment the stream starts from.

        Only for a stream that was opened without a token. Live: every document but finished jobs and all but the
        newest journal entry.
        """
        ...

    async def close(self) -> None: ...


class ChangeSource(Protocol):
    async def open(self, resume: Any | None) -> ChangeStream:
        """The stream after that token, or, with None, from now on: follow it with `ChangeStream.snapshot`."""
        ...

    async def fetch(self, collection: documents.Collection, ids: Sequence[str]) -> Sequence[Change]:
        """The present state of those documents: a PUT for each that is there, a DELETE for each that is not."""
        ...


class AccountStore(Protocol):
    async def save(self, shard: str, term: int, accounts: Accounts) -> bool:
        """Replace what is stored; False when a later term has stored something. Need not survive a fail-over."""
        ...

    async def load(self, shard: str) -> Accounts:
        """What was saved last, or empty accounts; `InvalidInput` when that can't be read."""
        ...


class ReplicaBoard(Protocol):
    """Where replicas write their own account; a record nobody renews for a minute disappears."""

    async def beat(self, status: ReplicaStatus) -> None: ...

    async def remove(self, replica_id: str) -> None: ...


# Messages out


class Confirm(StrEnum):
    CONFIRMED = "confirmed"
    UNKNOWN = "unknown"
    """Returned, nacked, timed out or not sent: try again with the same message id."""


class Transport(Protocol):
    """Carries messages to processors. ``run`` keeps it connected until cancelled; it outlives every outage."""

    async def run(self) -> None: ...

    @property
    def accepting(self) -> bool:
        """Whether messages go out now: connected, and the broker does not block us."""
        ...

    async def publish(self, messages: Sequence[tuple[str, Message]]) -> list[Confirm]:
        """Send each message to its processor (by id), pipelined; one outcome each, in order. Never raises."""
        ...


# The processor's side


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message as it arrived. Exactly one of ``ack`` and ``park`` is awaited, once."""

    body: bytes
    ack: Callable[[], Awaitable[None]]
    park: Callable[[str], Awaitable[None]]
    """Moves the message to the parking queue with the reason, and takes it from the processor's queue."""


class Deliveries(Protocol):
    """The processor's own queue. ``run`` hands each delivery to ``sink`` until cancelled; it outlives every outage."""

    async def run(self, sink: Callable[[Delivery], Awaitable[None]]) -> None: ...

    async def delete(self) -> None:
        """Remove the queue: this processor will not come back."""
        ...


@dataclass(frozen=True, slots=True)
class StartedJob:
    """What a handler needs, read in the same operation that started the attempt."""

    id: str
    attempt: int
    definition: str
    target: str
    payload: Any
    tenant: str
    labels: Mapping[str, str]
    schedule: str | None
    nominal_ms: WallMs | None
    submitted_at_ms: WallMs


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attempt ended: succeeded (result), failed (error) or cancelled (after a request)."""

    state: JobState
    result: Any = None
    error: str | None = None


class FinishAnswer(StrEnum):
    DONE = "done"
    LATE = "late"
    """The attempt is no longer this one's to finish; the result is kept beside the job and changes nothing."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What has become of attempts that a processor still runs: ``cancelled`` are asked to stop, ``revoked`` are no
    longer its own."""

    cancelled: frozenset[tuple[str, int]]
    revoked: frozenset[tuple[str, int]]


class WorkStore(Protocol):
    """What a processor may write. Every write names the attempt, and is acknowledged by a majority."""

    async def register(self, processor: ProcessorRef) -> None:
        """Insert or replace the registration."""
        ...

    async def beat(self, processor_id: str, beat: int, *, draining: bool, parked: int) -> bool:
        """Write one heartbeat for all its jobs; False when the registration is gone (register again)."""
        ...

    async def deregister(self, processor_id: str) -> None: ...

    async def start(self, job_id: str, attempt: int, processor_id: str, at_ms: WallMs) -> StartedJob | None:
        """Dispatched → running for that attempt and processor, or None: a duplicate, or not its own any more.

        A repeat after an unknown answer returns the job again: only one start per attempt may come from a processor,
        and the caller sees to that.
        """
        ...

    async def finish(
        self, job_id: str, attempt: int, processor_id: str, outcome: Outcome, at_ms: WallMs
    ) -> FinishAnswer:
        """Running → the outcome's state for that attempt, or LATE. A repeat of a finish that happened is DONE."""
        ...

    async def give_back(self, job_id: str, attempt: int, processor_id: str, reason: str, at_ms: WallMs) -> bool:
        """Dispatched or running → pending, keeping the attempt's record; False when it is not its own any more."""
        ...

    async def standing(self, processor_id: str, running: Sequence[tuple[str, int]]) -> Standing: ...


# The API's side


StoredDocument = Mapping[str, Any]
"""A whole stored document, ``_id`` and all, in the form of `hascheduler.model.documents`."""

Noun_contra = TypeVar("Noun_contra", contravariant=True)


class ScheduleStore(Protocol):
    async def create(self, document: StoredDocument) -> StoredDocument | None:
        """Insert; None when the name is taken."""
        ...

    async def edit(self, name: str, rev: int, fields: Mapping[str, Any]) -> StoredDocument | None:
        """Set ``fields`` and raise ``rev`` by one; None when there is none by that name at that revision.

        What the leader writes meanwhile (the cursor, the tally) is no edit and stays.
        """
        ...

    async def get(self, name: str) -> StoredDocument | None: ...

    async def list(
        self, after: str | None, limit: int, labels: Mapping[str, str] | None = None
    ) -> Sequence[StoredDocument]:
        """By name, those after ``after``, that have all ``labels``."""
        ...

    async def delete(self, name: str, rev: int | None = None) -> bool:
        """False when there is none (at that revision)."""
        ...


@dataclass(frozen=True, slots=True)
class VerdictRecord:
    """What became of one nominal time, or of a run of them; ``job_state`` tells of the job of a fired one."""

    run: VerdictRun
    job_state: JobState | None = None


class VerdictStore(Protocol):
    async def list(
        self, schedule: str, verdicts: Collection[Verdict], after_ms: WallMs, before_ms: WallMs, limit: int
    ) -> Sequence[VerdictRecord]:
        """Those records with one of ``verdicts`` that begin strictly between the instants, the newest first.

        Fired ones are told by their jobs, the others by their own records; both are kept for the retention time.
        """
        ...


class NounStore(Protocol[Noun_contra]):
    """Definitions, lanes or tenants: each is written as a whole, under its name."""

    async def create(self, noun: Noun_contra) -> StoredDocument | None:
        """Insert with rev 1; None when the name is taken."""
        ...

    async def put(self, noun: Noun_contra) -> tuple[StoredDocument, bool]:
        """Create or replace (the stored rev grows, ``noun.rev`` is ignored); the document, and if it is new."""
        ...

    async def replace(self, noun: Noun_contra, rev: int) -> StoredDocument | None:
        """Replace the one at that revision; None when there is none."""
        ...

    async def get(self, name: str) -> StoredDocument | None: ...

    async def list(self, after: str | None, limit: int) -> Sequence[StoredDocument]: ...

    async def delete(self, name: str, rev: int | None = None) -> bool:
        """False when there is none (at that revision)."""
        ...


class CancelAnswer(StrEnum):
    CANCELLED = "cancelled"
    ALREADY_RUNNING = "already_running"
    """The running attempt was asked to stop; a result that arrives first wins."""
    ALREADY_DONE = "already_done"


@dataclass(frozen=True, slots=True)
class JobFilter:
    state: JobState | None = None
    definition: str | None = None
    schedule: str | None = None


class JobStore(Protocol):
    async def submit(self, job: NewJob) -> StoredDocument:
        """Insert, acknowledged by a majority. A repeat with the same id returns the stored job."""
        ...

    async def submit_many(self, jobs: Sequence[NewJob]) -> Sequence[bool]:
        """Insert those that are not there yet, acknowledged by a majority; for each, whether it is new."""
        ...

    async def get(self, job_id: str) -> StoredDocument | None: ...

    async def list(self, which: JobFilter, after: str | None, limit: int) -> Sequence[StoredDocument]:
        """By id, newest id first, those before ``after``; without payload, result and attempts."""
        ...

    async def cancel(self, job_id: str, at_ms: WallMs) -> CancelAnswer | None:
        """Pending or dispatched → cancelled; running → asked to stop; None when there is no such job."""
        ...


@dataclass(frozen=True, slots=True)
class Cluster:
    """What this replica sees of the whole: all of it from its mirror, nothing read from the database."""

    replica_id: str
    lease: LeaseRecord | None
    journal: JournalHead | None
    leading: bool
    ready: bool
    replicas: Sequence[ReplicaStatus]
    processors: Sequence[tuple[ProcessorRef, int, bool]]
    """Each with its occupied slots, and whether its heartbeat still changes."""
    counts: Mapping[str, int]
    """Live jobs by state, schedules, definitions."""
    quarantine: Sequence[tuple[str, str, str]]
    """(collection, id, reason), the newest first, at most a hundred."""
    quarantined: int
    """How many there are in all."""
    stream_lag_ms: int | None
    position: str
    digest: str


Recording = tuple[Heading, AsyncIterator[RecordedStep | Ended]]
"""What a leader is told and decides from now on; whoever reads it too slowly is told that it ended."""


class ClusterView(Protocol):
    """What the API may ask of the replica it runs in; reads only."""

    def cluster(self) -> Cluster: ...

    def explain(self, job_id: str) -> Explanation | None:
        """Why that job waits, or who has it; None when no live job of that id is known here."""
        ...

    def unschedulable(self) -> Collection[str]:
        """The ids of the pending jobs that no processor which lives could ever run: as of a second ago, and not all
        where there are thousands."""
        ...

    def record(self, for_ms: int) -> Recording | None:
        """None when this replica does not lead, or is being recorded by too many already."""
        ...

    @property
    def ready(self) -> bool:
        """The mirror is complete and fresh."""
        ...

    @property
    def unready_reason(self) -> str: ...

    @property
    def alive(self) -> bool:
        """The loops still turn; False only for a wedged process."""
        ...
