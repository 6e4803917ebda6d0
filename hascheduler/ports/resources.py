"""What the API writes and reads besides jobs: schedules, their verdicts, definitions, lanes and tenants."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from hascheduler.model.instants import WallMs
from hascheduler.model.job import JobState, ScheduleId
from hascheduler.model.verdict import Verdict, VerdictRun

StoredDocument = Mapping[str, Any]
"""A whole stored document, ``_id`` and all, in the form of `hascheduler.model.documents`."""

Resource_contra = TypeVar("Resource_contra", contravariant=True)


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
        self, after: str | None, limit: int, labels: Mapping[str, str] | None = None, *, tenant: str | None = None
    ) -> Sequence[StoredDocument]:
        """By name, those after ``after``, that have all ``labels`` and make jobs of that tenant, or of any."""
        ...

    async def count(self, tenant: str, limit: int) -> int:
        """How many make jobs of that tenant; of more than ``limit`` it says ``limit``."""
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
        self, schedule: ScheduleId, verdicts: Collection[Verdict], after_ms: WallMs, before_ms: WallMs, limit: int
    ) -> Sequence[VerdictRecord]:
        """Those records with one of ``verdicts`` that begin strictly between the instants, the newest first; none of
        another schedule by the same name.

        Fired ones are known by their jobs, the others by their own records; both are kept for the retention time. An
        unstorable one that has a job after all has fired.
        """
        ...


class ResourceStore(Protocol[Resource_contra]):
    """Definitions, lanes or tenants: each is written as a whole, under its name."""

    async def create(self, noun: Resource_contra) -> StoredDocument | None:
        """Insert with rev 1; None when the name is taken."""
        ...

    async def put(self, noun: Resource_contra) -> tuple[StoredDocument, bool]:
        """Create or replace (the stored rev grows, ``noun.rev`` is ignored); the document, and if it is new."""
        ...

    async def replace(self, noun: Resource_contra, rev: int) -> StoredDocument | None:
        """Replace the one at that revision; None when there is none."""
        ...

    async def get(self, name: str) -> StoredDocument | None: ...

    async def list(self, after: str | None, limit: int) -> Sequence[StoredDocument]: ...

    async def delete(self, name: str, rev: int | None = None) -> bool:
        """False when there is none (at that revision)."""
        ...
