"""Everything that belongs to the tenants of one partition in one database: to be compared, copied and taken away.

All writes demand the hold that the caller saw: each batch is one transaction that also writes that hold, so a caller
that was asleep while another hold was put is refused.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from hascheduler.model.hold import Hold
from hascheduler.model.values.instants import WallMs


class Key(NamedTuple):
    """A document: its collection (``jobs``, ``schedules``, ``verdicts``, ``buckets``) and its id."""

    collection: str
    id: str


class Version(NamedTuple):
    """How new a document is: by ``rev``, then by the cursor of a schedule. ``mark`` names the copy that put it there;
    0 if it was not copied."""

    rev: int
    cursor_ms: int
    is_live: bool
    mark: int = 0

    def is_after(self, other: "Version | None") -> bool:
        return other is None or self[:2] > other[:2]

    def is_same(self, other: "Version | None") -> bool:
        return other is not None and self[:2] == other[:2]


class TenantStore(Protocol):
    async def tenants(self, partition: int) -> Sequence[str]:
        """Return the tenants of that partition that have any document here."""
        ...

    async def strays(self) -> Collection[int]:
        """Return the partitions that are held here although live documents of theirs are here."""
        ...

    async def versions(
        self, tenants: Sequence[str], since: WallMs | None, known: Collection[Key], *, live_only: bool = False
    ) -> dict[Key, Version]:
        """Return the versions of all documents of these tenants; with ``since`` only of those that are live, were
        submitted or decided since, or are among ``known``."""
        ...

    async def versions_of(self, keys: Collection[Key]) -> dict[Key, Version]:
        """Return the versions of those documents that exist."""
        ...

    async def read(self, keys: Sequence[Key]) -> Mapping[Key, Mapping[str, Any]]:
        """Return the stored documents."""
        ...

    async def put(
        self, hold: Hold, documents: Mapping[Key, Mapping[str, Any]], *, mark: int = 0, late: bool = False
    ) -> None:
        """Insert the documents or replace earlier versions of them, marked as copies by ``mark``.

        With ``late``, a job whose idempotency or unique key another job has arrives cancelled, without its key.
        `StoreUnavailable` if that hold is not stored any more.
        """
        ...

    async def take(self, hold: Hold, versions: Mapping[Key, Version]) -> int:
        """Delete the documents that still have these versions; return how many. `StoreUnavailable` if that hold is not
        stored any more."""
        ...
