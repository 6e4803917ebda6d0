"""Requests that are held open until the stream shows the end of a job, or work for a processor.

A waiter is made before the write whose echo it waits for, so that the echo can't be missed. It exists only while its
request does, and there is room for `WAITERS_MAX`.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain

from hascheduler.errors import Overloaded

WAITERS_MAX = 1_000


class StreamWaiter:
    """`hascheduler.ports.Waiter`."""

    def __init__(self) -> None:
        self._notified = asyncio.Event()
        self._open = True

    def notify(self) -> None:
        self._notified.set()

    def close(self) -> None:
        self._open = False
        self._notified.set()

    async def wait(self) -> bool:
        await self._notified.wait()
        self._notified.clear()
        return self._open


class Waiters:
    """Owner of the waiters, by the name of what each waits for."""

    def __init__(self) -> None:
        self.by_name: dict[str, set[StreamWaiter]] = {}
        self._count = 0
        self._open = True

    @contextmanager
    def waiting(self, name: str) -> Iterator[StreamWaiter]:
        """Open a waiter that `notify` of that name wakes; raise `Overloaded` without room, or if this replica ends."""
        if not self._open:
            raise Overloaded("this replica is shutting down", retry_after_s=1)
        if self._count >= WAITERS_MAX:
            raise Overloaded(f"{WAITERS_MAX} requests are already waiting at this replica", retry_after_s=1)
        waiter = StreamWaiter()
        self._count += 1
        self.by_name.setdefault(name, set()).add(waiter)
        try:
            yield waiter
        finally:
            self._count -= 1
            others = self.by_name[name]
            others.discard(waiter)
            if not others:
                del self.by_name[name]

    def notify(self, name: str) -> None:
        for waiter in self.by_name.get(name, ()):
            waiter.notify()

    def notify_all(self) -> None:
        """Wake every waiter, as the stream has a gap: each request checks for itself."""
        for waiter in chain.from_iterable(self.by_name.values()):
            waiter.notify()

    def close(self) -> None:
        """End every wait, as this replica ends."""
        self._open = False
        for waiter in chain.from_iterable(self.by_name.values()):
            waiter.close()
