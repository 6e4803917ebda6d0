"""Who waits for news of a job or of a processor: requests that are held open until the stream tells.

Owner of the bells. A bell is made before the write whose echo it waits for, so that the echo can't be missed; it hangs
only while somebody waits, and there is room for `WAITERS_MAX`.
"""

import asyncio
from collections.abc import Iterator, Set
from contextlib import contextmanager

from hascheduler.errors import Overloaded

WAITERS_MAX = 1_000


class StreamWaiter:
    """`hascheduler.ports.Bell`."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()
        self._open = True

    def ring(self) -> None:
        self._rung.set()

    def close(self) -> None:
        self._open = False
        self._rung.set()

    async def wait(self) -> bool:
        await self._rung.wait()
        self._rung.clear()
        return self._open


class Waiters:
    def __init__(self) -> None:
        self._of: dict[str, set[StreamWaiter]] = {}
        self._count = 0
        self._open = True

    @contextmanager
    def hang(self, name: str) -> Iterator[StreamWaiter]:
        """A bell that `ring` of that name rings; `Overloaded` where there is no room, or no more ringing."""
        if not self._open:
            raise Overloaded("this replica is about to end", retry_after_s=1)
        if self._count >= WAITERS_MAX:
            raise Overloaded(f"{WAITERS_MAX} requests wait at this replica already", retry_after_s=1)
        bell = StreamWaiter()
        self._count += 1
        self._of.setdefault(name, set()).add(bell)
        try:
            yield bell
        finally:
            self._count -= 1
            others = self._of[name]
            others.discard(bell)
            if not others:
                del self._of[name]

    @property
    def names(self) -> Set[str]:
        """Those that somebody waits for."""
        return self._of.keys()

    def ring(self, name: str) -> None:
        for bell in self._of.get(name, ()):
            bell.ring()

    def ring_all(self) -> None:
        """What was told meanwhile is unknown: everybody looks for himself."""
        for bells in self._of.values():
            for bell in bells:
                bell.ring()

    def close(self) -> None:
        """This replica ends: nobody waits any longer."""
        self._open = False
        for bells in self._of.values():
            for bell in bells:
                bell.close()
