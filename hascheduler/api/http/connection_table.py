"""How many connections may be open, and which one is evicted for a new one.

A connection is idle between requests and before its first one. When the table is full, the address with the most
connections loses the one that has been idle longest: a flood of idle connections makes room for all other addresses.
An address may hold three quarters of the table, and beyond that evicts its own connections.

Where no connection is idle, the last few places are for privileged requests alone (`hascheduler.api.middleware.pools`).
The caller is unknown before the request, so the connection is admitted, and its request is refused if need be.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from hascheduler.api.http.shares import RefusalReason

One = TypeVar("One", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Admitted(Generic[One]):
    """``evicts`` must be closed at once. A ``reserved`` connection serves privileged requests alone."""

    evicts: One | None = None
    reserved: bool = False


@dataclass(slots=True)
class _OfAddress(Generic[One]):
    count: int = 0
    idle: dict[One, int] = field(default_factory=dict)
    """The turn since which each is idle, the longest idle first."""


class ConnectionTable(Generic[One]):
    """Owner of the set of open connections. The caller reports each change of state; a turn is a counter, no time."""

    def __init__(self, total: int, reserve: int) -> None:
        self._total = total
        self._ordinary = max(1, total - reserve)
        self._of_address_max = max(1, self._ordinary * 3 // 4)
        self._addresses: dict[Hashable, _OfAddress[One]] = {}
        self._address_of: dict[One, Hashable] = {}
        self._turn = 0

    def __len__(self) -> int:
        return len(self._address_of)

    def enter(self, one: One, address: Hashable) -> Admitted[One] | RefusalReason:
        """Admit ``one`` as idle, or say why not; the evicted connection has left the table."""
        own = self._addresses.get(address)
        if own is not None and own.count >= self._of_address_max:
            if not own.idle:
                return RefusalReason.ADDRESS_SHARE
            return self._admitted(one, address, evicts=next(iter(own.idle)))
        if len(self) < self._ordinary:
            return self._admitted(one, address)
        idle = [each for each in self._addresses.values() if each.idle]
        if idle:
            most = max(idle, key=lambda each: (each.count, -next(iter(each.idle.values()))))
            return self._admitted(one, address, evicts=next(iter(most.idle)))
        if len(self) < self._total:
            return self._admitted(one, address, reserved=True)
        return RefusalReason.FULL

    def _admitted(
        self, one: One, address: Hashable, evicts: One | None = None, *, reserved: bool = False
    ) -> Admitted[One]:
        if evicts is not None:
            self.leave(evicts)
        self._address_of[one] = address
        self._addresses.setdefault(address, _OfAddress()).count += 1
        self.set_idle(one)
        return Admitted(evicts, reserved)

    def set_busy(self, one: One) -> None:
        """A request is in progress. A connection that is not in the table is ignored."""
        if one in self._address_of:
            self._addresses[self._address_of[one]].idle.pop(one, None)

    def set_idle(self, one: One) -> None:
        """It is idle from now on; one that was idle before stays so."""
        if one in self._address_of:
            self._turn += 1
            self._addresses[self._address_of[one]].idle.setdefault(one, self._turn)

    def leave(self, one: One) -> None:
        address = self._address_of.pop(one, None)
        if address is None:
            return
        of_address = self._addresses[address]
        of_address.count -= 1
        of_address.idle.pop(one, None)
        if not of_address.count:
            del self._addresses[address]
