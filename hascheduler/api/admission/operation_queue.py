"""The operations that this replica holds: routes put them in, the one runner takes them out, each in its turn."""

import asyncio
from collections import deque

from hascheduler.ports import BulkOperation

HELD_MAX = 64


class OperationQueue:
    """Owner of the operations that wait for their next slice here; at most `HELD_MAX`."""

    def __init__(self) -> None:
        self._waiting: deque[BulkOperation] = deque()
        self._arrived = asyncio.Event()

    @property
    def has_room(self) -> bool:
        return len(self._waiting) < HELD_MAX

    def put(self, operation: BulkOperation) -> None:
        """Append the operation."""
        self._waiting.append(operation)
        self._arrived.set()

    def holds(self, id: str) -> bool:
        return any(operation.id == id for operation in self._waiting)

    def take(self, delayed: frozenset[str] = frozenset()) -> BulkOperation | None:
        """The first whose id is not among the ``delayed`` ones; the caller puts it back, or has done with it."""
        for operation in self._waiting:
            if operation.id not in delayed:
                self._waiting.remove(operation)
                return operation
        return None

    async def wait(self, for_s: float) -> None:
        """Returns once an operation is put in, at the latest after ``for_s``."""
        self._arrived.clear()
        try:
            async with asyncio.timeout(for_s):
                await self._arrived.wait()
        except TimeoutError:
            pass
