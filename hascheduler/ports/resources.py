"""What the API writes and reads besides jobs: schedules, verdicts, named nouns, tokens and the audit log.

Requests are authenticated by the mirror, see `hascheduler.ports.ClusterView.token`, not by a read here.
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
    """A place in a list with the newest first: right after the document ``id`` of that instant.

    Without an ``id`` it is right before all documents of that instant; such a place names no document, as it could be
    another tenant's.
    """

    at_ms: int
    id: str | None = None


Resource_contra = TypeVar("Resource_contra", contravariant=True)


class ScheduleStore(Protocol):
    async def create(self, document: StoredDocument) -> StoredDocument | None:
        """Insert the schedule; None if the name is taken."""

    async def edit(self, name: str, rev: int, fields: Mapping[str, Any]) -> StoredDocument | None:
        """Set ``fields`` and raise ``rev`` by one; None if there is no such name at that revision.

        What the leader writes meanwhile (the cursor, the tally) is no edit and stays.
        """

    async def get(self, name: str) -> StoredDocument | None: ...

    async def list(
        self, after: str | None, limit: int, labels: Mapping[str, str] | None = None, *, tenant: str | None = None
    ) -> Sequence[StoredDocument]:
        """Return schedules after the name ``after``, by name, with all ``labels``, of that tenant or of any."""

    async def among(
        self, names: Sequence[str], labels: Mapping[str, str], limit: int, *, tenant: str | None = None
    ) -> Sequence[StoredDocument]:
        """Return at most ``limit`` of those with these names, by name, filtered as by `list`."""

    async def names_among(
        self, names: Sequence[str], labels: Mapping[str, str], *, tenant: str | None = None
    ) -> Sequence[str]:
        """Return the names of all that `among` would return without a limit, in no order."""

    async def count(self, tenant: str, limit: int) -> int:
        """Return how many make jobs of that tenant, at most ``limit``."""

    async def delete(self, name: str, rev: int | None = None) -> bool:
        """Delete it; False if there is none (at that revision)."""


@dataclass(frozen=True, slots=True)
class VerdictRecord:
    """The verdict on one nominal time, or on a run of them.

    ``job_state`` is the state of a fired time's job, ``began_at_ms`` when that first began to run, None if it has not,
    ``error`` its last error.
    """

    run: VerdictRun
    job_state: JobState | None = None
    began_at_ms: WallMs | None = None
    error: str | None = None


class VerdictSelection(VerdictFilter):
    """The verdicts that a filter selects. A deleted schedule has neither a tenant nor labels."""

    def takes(self, record: StoredDocument, schedule: StoredDocument | None) -> bool:
        """Return True if the present ``schedule`` of the record's name has the tenant and the labels.

        A record of an earlier schedule by that name, perhaps of another tenant, does not count. A record of 0.2.0 does
        not name its schedule: it belongs to the present one if that existed before the time.
        """
        if self.tenant is None and not self.labels:
            return True
        if schedule is None:
            return False
        created_at_ms, recorded_at_ms = schedule.get("created_at_ms"), record.get("schedule_created_at_ms")
        if created_at_ms != recorded_at_ms and not (recorded_at_ms is None and record["first_ms"] > created_at_ms):
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
    """A page and where the next one begins, None after the last. A page may be empty and have a next one."""

    verdicts: Sequence[DecidedVerdict]
    next: ListPosition | None


class VerdictStore(Protocol):
    async def list(
        self, schedule: ScheduleId, verdicts: Collection[Verdict], after_ms: WallMs, before_ms: WallMs, limit: int
    ) -> Sequence[VerdictRecord]:
        """Return the records with one of ``verdicts`` that begin strictly between the instants, newest first.

        Records of another schedule by the same name are left out. Fired times are known by their jobs, the others by
        their own records; both are kept for the retention time. An unstorable time that has a job after all has fired.
        """

    async def first_fired(self, schedule: ScheduleId, after_ms: WallMs) -> WallMs | None:
        """Return the first nominal time after the instant that fired and has its job; None if there is none."""

    async def of_all(self, which: VerdictSelection, after: ListPosition | None, limit: int) -> VerdictPage:
        """Return at most ``limit`` that did not fire, of all schedules, newest decision first, then by descending id.

        The work for a page is bounded: if few match, the page ends before it is full.
        """


class ResourceStore(Protocol[Resource_contra]):
    """Definitions, lanes or tenants; each is written as a whole, under its name."""

    async def create(self, noun: Resource_contra) -> StoredDocument | None:
        """Insert with rev 1; None if the name is taken."""

    async def replace(self, noun: Resource_contra, rev: int) -> StoredDocument | None:
        """Replace the one at that revision and raise it by one; None if there is none. Ignore ``noun.rev``."""

    async def get(self, name: str) -> StoredDocument | None: ...

    async def list(self, after: str | None, limit: int) -> Sequence[StoredDocument]: ...

    async def delete(self, name: str, rev: int | None = None) -> bool:
        """Delete it; False if there is none (at that revision)."""


class TokenStore(Protocol):
    async def create(self, token: Token) -> None:
        """Insert; a repeat after an unknown answer is harmless."""

    async def list(self, tenant: str | None, after: str | None, limit: int) -> Sequence[StoredDocument]:
        """Return those after the id ``after``, by id, of that tenant or of all."""

    async def begin_session(self, session: Token, living_max: int, now: WallMs) -> None:
        """Insert the session, and delete those that `ended_sessions` names of all with ids like it.

        A repeat after an unknown answer is harmless. If several begin at once, there may be more than ``living_max``
        for a moment, but not after the last of them.
        """

    async def revoke(self, id: str, tenant: str | None) -> bool:
        """Delete the token with all its sessions; False if there is none by that id (and of ``tenant``, if given).

        The sessions go first: after a failure in between, another call finds the token and finishes.
        """


def ended_sessions(stored: Iterable[StoredDocument], parent: str | None, living_max: int, now: WallMs) -> Sequence[str]:
    """Return the digests of the ``stored`` sessions to delete.

    These are the ones expired by ``now``, and of ``parent`` the oldest beyond ``living_max``.
    """
    expired: list[StoredDocument] = []
    living: list[StoredDocument] = []
    for each in stored:
        (expired if _instant(each.get("expires_at_ms")) <= now else living).append(each)
    own = [each for each in living if each["session_of"] == parent]
    own.sort(key=lambda each: (_instant(each.get("created_at_ms")), each["id"]), reverse=True)
    return [each["_id"] for each in (*expired, *own[living_max:])]


def _instant(stored: object) -> int:
    """Return the instant, or 0 if it can't be read: such a session was not made by us and has ended."""
    return stored if isinstance(stored, int) else 0


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Every given field must match. ``who`` is the name or the id of a token; ``path`` is a prefix of paths."""

    who: str | None = None
    tenant: str | None = None
    path: str | None = None
    since_ms: WallMs | None = None


class AuditStore(Protocol):
    async def append(self, records: Sequence[AuditRecord]) -> None:
        """Insert the records that are not stored yet, so that a repeat after an unknown answer is harmless."""

    async def list(self, which: AuditFilter, after: str | None, limit: int) -> Sequence[StoredDocument]:
        """Return the records before the id ``after``, newest first."""

    async def trim(self, records_max: int) -> int:
        """Delete the oldest beyond ``records_max``, some thousands at most, and return how many.

        If several do it at once, a few more may go.
        """
