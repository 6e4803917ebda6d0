"""A machine whose clock is wrong, or MongoDB's, from a moment on and for as long as the test asks for it."""

import json
import time
from pathlib import Path
from typing import Any

from hascheduler.clock import SystemClock
from hascheduler.model.values.instants import MonoMs, WallMs
from hascheduler.schema.replica import ReplicaStatus
from tests.mutants.everywhere import Around

FILE = "clock"
_LOOK_EVERY_S = 0.05


class SkewedClock:
    """`hascheduler.ports.Clock`. The file holds ``{"offset_ms": …, "rate": …}``: so much is added to the wall clock,
    and both clocks run at that rate from the moment on when it is first read. Without a file the wall clock is right,
    as one that has been set; the monotonic one, which can't be, keeps what it has gained."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._true = SystemClock()
        self._looked_at_s = 0.0
        self._text = ""
        self._offset_ms = 0
        self._rate = 1.0
        self._gained_ms = self._wall_gained_ms = 0.0
        self._since_ms = self._true.mono_ms()

    def wall_ms(self) -> WallMs:
        self._look()
        return WallMs(self._true.wall_ms() + self._offset_ms + round(self._wall_gained_ms + self._ahead_ms()))

    def mono_ms(self) -> MonoMs:
        self._look()
        return MonoMs(self._true.mono_ms() + round(self._gained_ms + self._ahead_ms()))

    def _ahead_ms(self) -> float:
        """Since the file last changed."""
        return (self._true.mono_ms() - self._since_ms) * (self._rate - 1)

    def _look(self) -> None:
        now_s = time.monotonic()
        if now_s - self._looked_at_s < _LOOK_EVERY_S:
            return
        self._looked_at_s = now_s
        try:
            text = self._file.read_text()
        except FileNotFoundError:
            text = "{}"
        if text == self._text:
            return
        said = json.loads(text)
        # A monotonic clock never goes back.
        self._gained_ms += self._ahead_ms()
        self._wall_gained_ms = self._wall_gained_ms + self._ahead_ms() if said else 0.0
        self._since_ms = self._true.mono_ms()
        self._text, self._offset_ms, self._rate = text, said.get("offset_ms", 0), said.get("rate", 1.0)


class SkewedBoard(Around):
    """`hascheduler.ports.ReplicaBoard`: MongoDB's clock is ahead by the file's ``database_ms``."""

    def __init__(self, board: Any, file: Path) -> None:
        super().__init__(board)
        self._file = file

    async def beat(self, status: ReplicaStatus) -> WallMs | None:
        database_ms: WallMs | None = await self._part.beat(status)
        text = self._file.read_text() if self._file.exists() else "{}"
        return None if database_ms is None else WallMs(database_ms + json.loads(text).get("database_ms", 0))
