"""A change stream that is late: its events come so much later, in order, as long as the test asks for it."""

import asyncio
from collections import deque
from pathlib import Path
from typing import Any

from hascheduler.ports import Batch

FILE = "stream"
_LOOK_EVERY_S = 0.05


class SlowSource:
    """`hascheduler.ports.ChangeSource`; the file holds the delay in milliseconds. Without one nothing is late."""

    def __init__(self, source: Any, file: Path) -> None:
        self._source = source
        self._file = file
        self.fetch = source.fetch

    async def open(self, resume: Any | None) -> "_SlowStream":
        return _SlowStream(await self._source.open(resume), self._file)


class _SlowStream:
    def __init__(self, stream: Any, file: Path) -> None:
        self._stream = stream
        self._file = file
        self._late: deque[tuple[float, Batch]] = deque()
        self._told: Batch | None = None
        self.snapshot = stream.snapshot
        self.close = stream.close

    async def next_batch(self, wait_ms: int) -> Batch:
        loop = asyncio.get_running_loop()
        until_s = loop.time() + wait_ms / 1_000
        while True:
            delay_s = self._delay_s()
            if self._late and self._late[0][0] + delay_s <= loop.time():
                self._told = self._late.popleft()[1]
                return self._told
            if not self._late and not delay_s:
                self._told = await self._stream.next_batch(max(0, round((until_s - loop.time()) * 1_000)))
                return self._told
            if loop.time() >= until_s and self._told is not None:
                return Batch([], self._told.resume, self._told.position)
            batch: Batch = await self._stream.next_batch(round(_LOOK_EVERY_S * 1_000))
            if batch.changes:
                self._late.append((loop.time(), batch))
            elif self._told is None:
                self._told = batch

    def _delay_s(self) -> float:
        try:
            return float(self._file.read_text()) / 1_000
        except FileNotFoundError:
            return 0.0
