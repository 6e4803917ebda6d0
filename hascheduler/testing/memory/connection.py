"""One client's connection to the database: the place where answers get lost.

Each store has a connection and makes one exchange per call. Tests request faults; none happens by chance. A fault
hits one connection, that of one replica or processor, while the others go on.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from hascheduler.errors import StoreUnavailable
from hascheduler.testing.memory.database import MemoryDatabase


@dataclass(slots=True)
class _Fault:
    of: str
    calls_left: int
    carried_out: bool


class MemoryConnection:
    """Owner of its faults. ``database`` itself has none: look at it directly to see what is stored."""

    def __init__(self, database: MemoryDatabase) -> None:
        self.database = database
        self._faults: list[_Fault] = []
        self._is_cut = False
        self._breaks = 0

    # Faults

    def fail_next(self, calls: int = 1, *, of: str = "", carried_out: bool = False) -> None:
        """The next ``calls`` exchanges raise `StoreUnavailable`: before anything is done, or, when ``carried_out``,
        with the answer lost after all of it is.

        ``of`` picks those whose name begins with it: ``"work.finish"``, or ``"work"`` for all of that store.
        """
        self._faults.append(_Fault(of, calls, carried_out))

    def cut(self) -> None:
        """No exchange gets through until `mend`, and open streams break."""
        self._is_cut = True
        self.break_streams()

    def mend(self) -> None:
        self._is_cut = False

    def break_streams(self) -> None:
        """Every stream that is open now ends; each may be resumed."""
        self._breaks += 1
        self.database.history.wake()

    # Use

    @property
    def breaks(self) -> int:
        """How often the streams of this connection were broken."""
        return self._breaks

    @asynccontextmanager
    async def exchange(self, name: str) -> AsyncIterator[MemoryDatabase]:
        """One transaction called ``name``. The body must not await: nothing else happens while it lasts."""
        fault = self._take_fault(name)
        # Other tasks run meanwhile, as with a real server.
        await asyncio.sleep(0)
        if self._is_cut or (fault and not fault.carried_out):
            raise StoreUnavailable(f"{name}: no answer")
        yield self.database
        if fault:
            raise StoreUnavailable(f"{name}: the answer got lost")

    def _take_fault(self, name: str) -> _Fault | None:
        for fault in self._faults:
            if name.startswith(fault.of):
                fault.calls_left -= 1
                if fault.calls_left == 0:
                    self._faults.remove(fault)
                return fault
        return None
