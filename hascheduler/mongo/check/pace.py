"""Bounds a scan: batch by batch, with pauses, and within its time limit."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from typing import Any

from hascheduler.mongo.faults import local_faults
from hascheduler.ports.invariant_scan import ScanBounds, ScanProgress

BATCH_LIMIT_S = 30.0


class ScanTimeOver(Exception):  # no error: the next scan reads the rest
    """The time limit of the scan has passed."""


class ScanPace:
    """Owner of the progress of a scan: how many documents of each section it has read."""

    def __init__(self, bounds: ScanBounds, progress: ScanProgress) -> None:
        self._bounds = bounds
        self._progress = progress
        loop = asyncio.get_running_loop()
        self._until_s = None if bounds.limit_s is None else loop.time() + bounds.limit_s
        self.looked_at: Counter[str] = Counter()

    async def pause(self) -> None:
        """Sleep for the pause between batches; `ScanTimeOver` after the time limit."""
        await asyncio.sleep(self._bounds.pause_s)
        if self._until_s is not None and asyncio.get_running_loop().time() > self._until_s:
            raise ScanTimeOver

    def advanced(self, section: str, count: int) -> None:
        self.looked_at[section] += count
        self._progress(section, self.looked_at[section])

    async def batches(
        self, section: str, cursor: Any, size: int | None = None
    ) -> AsyncGenerator[list[dict[str, Any]], None]:
        """The documents of ``cursor`` in batches, with a pause after each."""
        size = size or self._bounds.batch
        cursor = cursor.batch_size(size)
        try:
            while True:
                async with local_faults(f"read {section}", BATCH_LIMIT_S):
                    documents = await cursor.to_list(size)
                if not documents:
                    return
                self.advanced(section, len(documents))
                yield documents
                await self.pause()
        finally:
            await cursor.close()
