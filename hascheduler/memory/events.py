"""The exchange of events in memory: what was published, in its order, and a switch for its troubles."""

import asyncio
from collections.abc import Sequence

from hascheduler.model.event import Event


class MemoryEventExchange:
    """`hascheduler.ports.EventExchange`. While it is not ``accepting`` nothing is taken."""

    def __init__(self) -> None:
        self.accepting = True
        self.published: list[Event] = []
        self._news = asyncio.Event()

    async def run(self) -> None:
        # There is no connection to keep.
        await asyncio.Event().wait()

    async def publish(self, events: Sequence[Event]) -> bool:
        await asyncio.sleep(0)  # others get their turn on the way, as with a real broker
        if self.accepting:
            self.published += events
        self._news.set()
        return self.accepting

    async def asked(self) -> None:
        """Until it is asked to publish the next time."""
        self._news.clear()
        await self._news.wait()
