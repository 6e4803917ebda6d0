"""What the API writes and reads besides jobs: schedules, verdicts, named nouns, tokens and the audit log.

No request reads a token here: they are mirrored, see `hascheduler.ports.ClusterView.token`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from hascheduler.model.job import JobState, ScheduleId
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import Verdict, VerdictRun
from hascheduler.schema.audit import AuditRecord
from hascheduler.schema.filters import VerdictFilter
from hascheduler.schema.token import Token

StoredDocument = Mapping[str, Any]
"""A whole stored document, ``_id`` and all, in the form of `hascheduler.model.documents`."""


@dataclass(frozen=True, slots=True)
class ListPosition:
    """A place in a list that has the newest first: right after the document ``id``, of that instant.

    Without an ``id`` it is right before all documents of that instant: such a place names none, as it may be that of
    another tenant.
    """

    at_ms: int
    id: str | None = None


Resource_contra = TypeVar("Resource_contra", contravariant=True)


class ScheduleStore(Protocol):
    async def create(self, document: StoredDocument) -> StoredDocument | None:
        """Insert; None when the name is taken."""

    async def edit(self, name: str, rev: int, fields: Mapping[str, Any]) -> StoredDocument | None:
        """Set ``fields`` and raise ``rev`` by one; None when there is none by that name at that revision.

        What the leader writes meanwhile (the cursor, the tally) is no edit and stays.
        """

    async def get(self, name: str) -> StoredDocument | None: ...

    async def list(
        self, after: str | None, limit: int, labels: Mapping[str, str] | None = None, *, tenant: str | None = None
    ) -> Sequence[StoredDocument]:
        """By name, those after ``after``, that have all ``labels`` and make jobs of that tenant, or of any."""

    async def among(
        self, names: Sequence[str], labels: Mapping[str, str], limit: int, *, tenant: str | None = None
    ) -> Sequence[StoredDocument]:
        """At most ``limit`` of those with these names, by name, that have all ``labels`` and make jobs of that tenant,
        or of any."""

    async def names_among(
        self, names: Sequence[str], labels: Mapping[str, str], *, tenant: str | None = None
    ) -> Sequence[str]:
        """The names of all that `among` gives without a limit, in no order."""

    async def count(self, tenant: str, limit: int) -> int:
        """How many make jobs of that tenant; of more than ``limit`` it says ``limit``."""

    async def delete(self, name: str, rev: int | None = None) -> bool:
        """False when there is none (at that revision)."""


@dataclass(frozen=True, slots=True)
class VerdictRecord:
    """What became of one nominal time, or of a run of them; ``job_state`` tells of the job of a fired one, and
    ``began_at_ms`` when that first began to run, None where it has not."""

    run: VerdictRun
    job_state: JobState | None = None
    began_at_ms: WallMs | None = None


class VerdictSelection(VerdictFilter):
    """The verdicts that a filter means. A schedule that is no more has neither a tenant nor labels."""

    def takes(self, record: StoredDocument, schedule: StoredDocument | None) -> bool:
        """Return whether the stored ``schedule``, the present one of the record's name, has the tenant and the labels.

        A record of an earlier schedule by that name, perhaps of another tenant, is not its own. One of 0.2.0 does not
        say of which it is: it is of the present one if that was there before the time.
        """
        if self.tenant is None and not self.labels:
            return True
        if schedule is None:
            return False
        created_at_ms, said = schedule.get("created_at_ms"), record.get("schedule_created_at_ms")
        if created_at_ms != said and not (said is None and record["first_ms"] > created_at_ms):
            return False
        labels = schedule.get("labels") or {}
        return (
            self.tenant in (None, (schedule.get("job") or {}).get("tenant")) and self.labels.items() <= labels.items()
        )


@dataclass(frozen=True, slots=True)
class DecidedVerdict:
    run: VerdictRun
    decided_at_ms: int


@dataclass(frozen=True, slots=True)
class VerdictPage:
    """``next`` is where to go on; None: this was all. A page may hold few verdicts, or none, and have a next one."""

    verdicts: Sequence[DecidedVerdict]
    next: ListPosition | None


class VerdictStore(Protocol):
    async def list(
        self, schedule: ScheduleId, verdicts: Collection[Verdict], after_ms: WallMs, before_ms: WallMs, limit: int
    ) -> Sequence[VerdictRecord]:
        """The records with one of ``verdicts`` that begin strictly between the instants, the newest first; none of
        another schedule by the same name.

        Fired ones are known by their jobs, the others by their own records; both are kept for the retention time. An
        unstorable one that has a job after all has fired.
        """

    async def of_all(self, which: VerdictSelection, after: ListPosition | None, limit: int) -> VerdictPage:
        """At most ``limit`` of all schedules, the newest decision first, then by descending id; none has fired.

        The work for a page is bounded: where few match, it ends before it is full.
        """


class ResourceStore(Protocol[Resource_contra]):
    """Definitions, lanes or tenants: each is written as a whole, under its name."""

    async def create(self, noun: Resource_contra) -> StoredDocument | None:
        """Insert with rev 1; None when the name is taken."""

    async def replace(self, noun: Resource_contra, rev: int) -> StoredDocument | None:
        """Replace the one at that revision, which grows by one; None when there is none. ``noun.rev`` is ignored."""

    async def get(self, name: str) -> StoredDocument | None: ...

    async def list(self, after: str | None, limit: int) -> Sequence[StoredDocument]: ...

    async def delete(self, name: str, rev: int | None = None) -> bool:
        """False when there is none (at that revision)."""


class TokenStore(Protocol):
    async def create(self, token: Token) -> None:
        """Insert; a repeat after an unknown answer is harmless."""

    async def list(self, tenant: str | None, after: str | None, limit: int) -> Sequence[StoredDocument]:
        """By id, those after ``after``, of that tenant or of all."""

    async def begin_session(self, session: Token, living_max: int, now: WallMs) -> None:
        """Insert; then of the sessions with ids like it delete those that have expired by ``now``, and of its parent's
        the oldest where more than ``living_max`` are left. A repeat after an unknown answer is harmless.

        Where several begin at once, there may be more for a moment; after the last of them there are not.
        """

    async def revoke(self, id: str, tenant: str | None) -> bool:
        """Delete, with all its sessions; False when there is none by that id (and of that tenant, where one is given).

        The sessions go first: after a failure in between another call finds the token, and finishes.
        """


def ended_sessions(stored: Iterable[StoredDocument], parent: str | None, living_max: int, now: WallMs) -> Sequence[str]:
    """The digests of the ``stored`` sessions to be deleted: what has expired by ``now``, and of the
    ``parent`` the oldest of more than ``living_max``."""
    expired: list[StoredDocument] = []
    living: list[StoredDocument] = []
    for each in stored:
        (expired if _instant(each.get("expires_at_ms")) <= now else living).append(each)
    own = [each for each in living if each["session_of"] == parent]
    own.sort(key=lambda each: (_instant(each.get("created_at_ms")), each["id"]), reverse=True)
    return [each["_id"] for each in (*expired, *own[living_max:])]


def _instant(stored: object) -> int:
    """A session that ends at no readable time has ended: none is made so."""
    return stored if isinstance(stored, int) else 0


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """All that is given must hold. ``who`` is the name or the id of a token; ``path`` is what paths begin with."""

    who: str | None = None
    tenant: str | None = None
    path: str | None = None
    since_ms: WallMs | None = None


class AuditStore(Protocol):
    async def append(self, records: Sequence[AuditRecord]) -> None:
        """Insert those that are not there yet, so that a repeat after an unknown answer is harmless."""

    async def list(self, which: AuditFilter, after: str | None, limit: int) -> Sequence[StoredDocument]:
        """The newest first, those before the id ``after``."""

    async def trim(self, records_max: int) -> int:
        """Delete the oldest beyond ``records_max``, some thousands at most; how many. Where several do it at once, a
        few more may go."""
