"""The one ordered stream of what changed in the database."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from hascheduler.mirror.changes import Change
from hascheduler.model.collection import Collection


@dataclass(frozen=True, slots=True)
class Batch:
    """What the stream delivered: changes in order (perhaps none).

    ``resume`` is the token after them, opaque; ``position`` the cluster time of the last event ("" before the first),
    a text that two replicas may compare. ``is_full``: as many as a batch holds, so the next one is there already.
    """

    changes: Sequence[Change]
    resume: Any
    position: str
    is_full: bool = False


class ChangeStream(Protocol):
    """One open stream over all mirrored collections: one total order."""

    async def next_batch(self, wait_ms: int) -> Batch:
        """The next changes, or an empty batch after ``wait_ms``.

        Raises `HistoryLost` when it can't go on (history gone, invalidated, a collection dropped or renamed), and
        `StoreUnavailable` when it may be resumed after the last batch's token.
        """

    def snapshot(self) -> AsyncIterator[Sequence[Change]]:
        """All live documents, as PUTs in slices, read at or after the moment the stream starts from.

        Only for a stream that was opened without a token. Live: every document but finished jobs and all but the
        newest journal entry.
        """

    async def close(self) -> None: ...


class ChangeSource(Protocol):
    async def open(self, resume: Any | None) -> ChangeStream:
        """The stream after that token, or, with None, from now on: follow it with `ChangeStream.snapshot`."""

    async def fetch(self, collection: Collection, ids: Sequence[str]) -> Sequence[Change]:
        """The present state of those documents: a PUT for each that is there, a DELETE for each that is not."""
