"""How long a process's loop was kept from turning, seen from outside: how long ``/livez`` took to be answered."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from tests.bench.http_client import HttpClient, query

_EVERY_S = 0.01
_PATIENCE_S = 600
"""No stall that is measured lasts so long."""


class Stalls:
    """What has been seen since it was last taken."""

    def __init__(self) -> None:
        self._longest_s = 0.0
        self._asked_at: float | None = None

    def take_ms(self) -> int:
        """The longest, with the one that may be under way; the next call tells of later ones alone."""
        waiting_s = 0.0 if self._asked_at is None else time.monotonic() - self._asked_at
        longest_s, self._longest_s = max(self._longest_s, waiting_s), 0.0
        return round(1_000 * longest_s)

    async def keep_asking(self, http: HttpClient, url: str) -> None:
        to, asked = query(url)
        while True:
            await asyncio.sleep(_EVERY_S)
            # Nobody answers before the process listens.
            with suppress(OSError):
                self._asked_at = time.monotonic()
                await http.send(to, asked)
                self._longest_s = max(self._longest_s, time.monotonic() - self._asked_at)
            self._asked_at = None


@asynccontextmanager
async def watched_stalls(health_url: str) -> AsyncIterator[Stalls]:
    stalls = Stalls()
    async with HttpClient(1, _PATIENCE_S) as http:
        asking = asyncio.create_task(stalls.keep_asking(http, f"{health_url}/livez"))
        try:
            yield stalls
        finally:
            asking.cancel()
            with suppress(asyncio.CancelledError):
                await asking
