"""Bugs that are planted in stores, in simulated clusters and in real processes alike.

Real processes load this room: it imports nothing that only tests have.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from hascheduler.errors import HistoryLost
from hascheduler.mirror.changes import Change
from hascheduler.model.leadership import LeaseRecord
from hascheduler.ports import Batch, LeaseStore


class Around:
    """A sound part, all of it but for what a subclass does in another way."""

    def __init__(self, part: Any) -> None:
        self._part = part

    def __getattr__(self, name: str) -> Any:
        return getattr(self._part, name)


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


class FindThenWatch(Around):
    """Reads the snapshot, and opens the stream after it: what is written in between is in neither."""

    def __init__(self, source: Any) -> None:
        super().__init__(source)
        self.fetch = source.fetch

    async def open(self, resume: Any | None) -> Any:
        if resume is not None:
            return await self._part.open(resume)
        reading = await self._part.open(None)
        snapshot = [changes async for changes in reading.snapshot()]
        await reading.close()
        await asyncio.sleep(0.05)  # reading a large database takes its time
        return _ReadBefore(snapshot, await self._part.open(None))


class _ReadBefore:
    def __init__(self, snapshot: list[Sequence[Change]], stream: Any) -> None:
        self._snapshot = snapshot
        self.next_batch = stream.next_batch
        self.close = stream.close

    async def snapshot(self) -> AsyncIterator[Sequence[Change]]:
        for changes in self._snapshot:
            yield changes


class ResumesFromNow(Around):
    """After lost history the stream goes on with what happens next, as if nothing had been missed."""

    async def open(self, resume: Any | None) -> Any:
        try:
            stream = await self._part.open(resume)
        except HistoryLost:
            stream = await self._part.open(None)
        return _NeverLost(self._part, stream)


class _NeverLost(Around):
    def __init__(self, source: Any, stream: Any) -> None:
        super().__init__(stream)
        self._source = source

    async def next_batch(self, wait_ms: int) -> Batch:
        try:
            batch: Batch = await self._part.next_batch(wait_ms)
        except HistoryLost:
            self._part = await self._source.open(None)
            batch = await self._part.next_batch(wait_ms)
        return batch


def never_fences_itself(processor: Any) -> Any:
    """The same processor."""

    class Open(type(processor._fence)):  # type: ignore[misc]  # the same, but for its judgement
        trusted = True

        def check(self) -> bool:
            return True

    processor._fence.__class__ = Open
    return processor
