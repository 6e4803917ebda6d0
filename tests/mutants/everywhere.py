"""Bugs that are planted in stores, in simulated clusters and in real processes alike.

Real processes load this room: it imports nothing that only tests have.
"""

from typing import Any

from hascheduler.errors import HistoryLost
from hascheduler.model.leadership import LeaseRecord
from hascheduler.ports import Batch, LeaseStore


class LeaseUpdateWithoutCompare:
    """Writes whatever it is asked to, over whatever is there."""

    def __init__(self, leases: LeaseStore) -> None:
        self._leases = leases
        self.get = leases.get
        self.create = leases.create

    async def update(self, expected: LeaseRecord, proposed: LeaseRecord) -> bool:
        while (stored := await self._leases.get(expected.name)) is not None:
            if await self._leases.update(stored, proposed):
                return True
        return False


class ResumesFromNow:
    """After lost history the stream goes on with what happens next, as if nothing had been missed."""

    def __init__(self, source: Any) -> None:
        self._source = source

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    async def open(self, resume: Any | None) -> Any:
        try:
            stream = await self._source.open(resume)
        except HistoryLost:
            stream = await self._source.open(None)
        return _NeverLost(self._source, stream)


class _NeverLost:
    def __init__(self, source: Any, stream: Any) -> None:
        self._source = source
        self._stream = stream
        self.snapshot = stream.snapshot

    async def next_batch(self, wait_ms: int) -> Batch:
        try:
            batch: Batch = await self._stream.next_batch(wait_ms)
        except HistoryLost:
            self._stream = await self._source.open(None)
            batch = await self._stream.next_batch(wait_ms)
        return batch

    async def close(self) -> None:
        await self._stream.close()


def never_fences_itself(processor: Any) -> Any:
    """The same processor."""

    class Open(type(processor._fence)):  # type: ignore[misc]  # the same, but for its judgement
        trusted = True

        def check(self) -> bool:
            return True

    processor._fence.__class__ = Open
    return processor
