"""The load ahead that was computed last: all who ask share it for a minute."""

import asyncio
from collections.abc import Callable, Generator

from hascheduler.api.routing.time_slicing import run_in_slices
from hascheduler.dispatch.schedules.load_ahead import LoadAhead

_FRESH_MS = 60_000


class SharedLoad:
    """Owner of the newest load ahead."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._kept: tuple[int, LoadAhead] | None = None

    async def get(self, now_ms: int, compute: Callable[[], Generator[None, None, LoadAhead]]) -> LoadAhead:
        async with self._turn:
            if self._kept is None or now_ms - self._kept[0] >= _FRESH_MS:
                self._kept = now_ms, await run_in_slices(compute())
            return self._kept[1]
