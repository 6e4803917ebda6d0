"""What a deployment of several shards keeps in its home: which shard has which slot, and whose each schedule's name is.

A name of a schedule is unique in the deployment. So it is reserved in the home before its schedule is inserted in a
shard, and released after that was deleted; what breaks off in between leaves a reservation without a schedule, never a
schedule without its reservation.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from hascheduler.model.collection import Collection
from hascheduler.model.hold import Hold
from hascheduler.model.job import JobState
from hascheduler.model.routing import Routing
from hascheduler.model.schedule import Overlap
from hascheduler.model.values.fields import identifier, integer, positive, text
from hascheduler.model.values.instants import WallMs, to_datetime
from hascheduler.ports.resources import StoredDocument

MOVED = (Collection.JOBS, Collection.SCHEDULES, Collection.VERDICTS)
"""What moves with a slot."""
MOVE_MARK = "moved"
"""The field of a document that a move inserted in another shard: the insert is no event of the job."""
WHATEVER_IS_LIVE = (None, Overlap.ALLOW.value)
"""The overlap policies, as they are stored, of schedules that need none of their live jobs to decide."""
UNUSED_FOR_MS = 60_000
"""For so long a reservation without a schedule is kept for its tenant: longer than a write may take."""


class RoutingStore(Protocol):
    async def get(self) -> Routing | None:
        """The newest majority-committed one; `InvalidInput` where it can't be read."""

    async def is_unused(self) -> bool:
        """Whether there are neither jobs nor schedules in the home."""

    async def reserve_names(self, at_ms: WallMs) -> None:
        """Reserve the name of each schedule of the home for its tenant, where it is not reserved: before the first
        routing of a deployment that had one shard."""

    async def create(self, routing: Routing) -> bool:
        """Insert the first one; False when there is one."""

    async def replace(self, epoch: int, routing: Routing) -> bool:
        """Put ``routing``, of a later epoch, in the place of that of ``epoch``; False when it is no longer that."""


@dataclass(frozen=True, slots=True)
class ReservedName:
    """``use`` grows with each reservation of the name, so that a release can't take away a later one."""

    name: str
    tenant: str
    use: int
    at_ms: WallMs


def next_use(name: str, tenant: str, before: ReservedName | None, at_ms: WallMs) -> ReservedName:
    """The reservation in the place of ``before``."""
    return ReservedName(name, tenant, 1 if before is None else before.use + 1, at_ms)


def encode_reserved_name(reserved: ReservedName) -> dict[str, Any]:
    return {"_id": reserved.name, "tenant": reserved.tenant, "use": reserved.use, "at_ms": reserved.at_ms}


def decode_reserved_name(stored: Mapping[str, Any]) -> ReservedName:
    """`InvalidInput` for one that was broken by hand."""
    return ReservedName(
        identifier(stored["_id"]), text(stored, "tenant"), positive(stored, "use"), WallMs(integer(stored, "at_ms"))
    )


class NameStore(Protocol):
    """Every write is one compare-and-set, acknowledged by a majority.

    It compares all that a reservation has: after a release ``use`` begins again. A name whose reservation was broken by
    hand is as one without: its schedule is looked for in all shards.
    """

    async def get(self, name: str) -> ReservedName | None: ...

    async def reserve(self, name: str, tenant: str, before: ReservedName | None, at_ms: WallMs) -> ReservedName | None:
        """Reserve it for that tenant in the place of ``before``; None: there is another reservation than that.
        `InvalidInput` where the one that is there can't be read."""

    async def release(self, reserved: ReservedName) -> bool:
        """Delete it, unless it was reserved again since."""


@dataclass(frozen=True, slots=True)
class Passage:
    """The way of a slot's documents from shard ``source`` to shard ``target``.

    ``closed`` is the hold on the slot in the first, ``there`` that in the second. Both have to
    be stored as they are: where a shard was closed, opened or closed again since they were read, nothing moves.
    """

    source: int
    target: int
    closed: Hold
    there: Hold


@dataclass(frozen=True, slots=True)
class MovedDocuments:
    """How many ``documents`` were moved, and that about so many are ``left``; both 0: nothing is there any more."""

    documents: int
    left: int


class SlotStore(Protocol):
    """All that is of the tenants of one slot, in the databases of all shards.

    Each document is in one shard at every instant, or on its way between two MongoDBs. What a processor has is left,
    and so is what others change meanwhile. A job that is there already goes from here. One whose idempotency or unique
    key another one has there arrives cancelled, without its key: the other one was first.
    """

    async def move_first(self, passage: Passage, limit: int, at_ms: WallMs) -> MovedDocuments:
        """Move up to about ``limit`` documents of those without which the target can't decide: schedules, the waiting
        jobs of those whose overlap policy looks at them, waiting jobs that wait for others, and those that they wait
        for, ended ones too.

        ``left`` 0: neither those are there, nor what a processor has.
        """

    async def move_rest(self, passage: Passage, limit: int, at_ms: WallMs) -> MovedDocuments:
        """Move up to about ``limit`` documents of all that is left, to a target that decides: waiting jobs, the most
        urgent and oldest first, then those that ended, then verdicts. A job comes after those that it waits for.

        ``left`` 0: nothing is there any more.
        """

    async def underway(self, index: int) -> frozenset[int]:
        """The slots of which something is on its way out of that shard, as a mover broke off."""

    async def deliver(self, passage: Passage, at_ms: WallMs) -> int:
        """Bring to the target what is on its way out of the source, which may be the same shard; how many documents."""


def looks_at_live_jobs(schedule: Mapping[str, Any]) -> bool:
    """Whether its next fire depends on its jobs that have not ended, as it is stored; an edit's fields: comes to."""
    policy = schedule.get("policy")
    return isinstance(policy, Mapping) and policy.get("overlap") not in WHATEVER_IS_LIVE


def is_late_copy(job: StoredDocument, arriving: StoredDocument) -> bool:
    """Whether ``job`` came into its shard by a leader that had stood still since it fired it, and the job by that id
    was handed out elsewhere meanwhile: it would be done again."""
    is_new = job.get("state") == JobState.PENDING.value and not job.get("attempt")
    return is_new and (arriving.get("state") != JobState.PENDING.value or bool(arriving.get("attempt")))


def duplicate_of_another(job: StoredDocument, at_ms: WallMs, kept_ms: int) -> dict[str, Any]:
    """A job as it is stored where another one has its key."""
    left = {name: value for name, value in job.items() if name not in ("idempotency_key", "unique_key", MOVE_MARK)}
    ended = {"state": JobState.CANCELLED.value, "finished_at_ms": at_ms, "error": "another job has its key"}
    return {**left, **ended, "rev": job.get("rev", 0) + 1, "expire_at": to_datetime(at_ms + kept_ms)}


class CopyStore(Protocol):
    """What people define (definitions, lanes, calendars, tenants, pauses), as it is stored in one shard: whole
    documents, whatever they hold. Every write is one compare-and-set on the stored ``rev``."""

    async def get(self, collection: Collection, name: str) -> StoredDocument | None: ...

    async def insert(self, collection: Collection, document: StoredDocument) -> bool:
        """False where there is one by that name."""

    async def replace(self, collection: Collection, before: StoredDocument, document: StoredDocument) -> bool:
        """Put ``document`` in the place of ``before``, of the same name; False when it is no longer that."""

    async def delete(self, collection: Collection, before: StoredDocument) -> bool:
        """False when it is no longer that."""
