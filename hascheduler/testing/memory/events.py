"""The exchange of events in memory: the published events in order, and a switch for its faults."""

import asyncio
from collections.abc import Sequence

from hascheduler.model.event import Event


class MemoryEventExchange:
    """`hascheduler.ports.EventExchange`. While it is not ``accepting``, it takes no event."""

    def __init__(self) -> None:
        self.accepting = True
        self.published: list[Event] = []
        self._news = asyncio.Event()

    async def run(self) -> None:
        # There is no connection to keep.
        await asyncio.Event().wait()

    async def publish(self, events: Sequence[Event]) -> bool:
        await asyncio.sleep(0)  # other tasks run meanwhile, as with a real broker
        if self.accepting:
            self.published += events
        self._news.set()
        return self.accepting

    async def asked(self) -> None:
        """Waits for the next call of `publish`."""
        self._news.clear()
        await self._news.wait()
