"""Which connections there may be at once, and which gives way to a newcomer.

An idle connection is one between requests, or one that never spoke. When the pool is full, the address that holds the
most loses the one that has been idle longest: a flood of idle connections makes room for everybody but itself. An
address has three quarters at most, and makes room for its own newcomers.

Where none is idle, the last few places are for privileged requests alone (`hascheduler.api.middleware.pools`): nobody
knows who a newcomer is before it has spoken, so it comes in, and its request is judged.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from hascheduler.api.http.shares import RefusalReason

One = TypeVar("One", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Admitted(Generic[One]):
    """It may come in; ``gives_way`` has to go at once. A ``reserved`` one is for privileged requests alone."""

    gives_way: One | None = None
    reserved: bool = False


@dataclass(slots=True)
class _OfAddress(Generic[One]):
    count: int = 0
    idle: dict[One, int] = field(default_factory=dict)
    """By how long, longest first: since which turn."""


class ConnectionTable(Generic[One]):
    """Owner of who is here. The caller says when one is busy, idle or gone; a turn is a number, no time."""

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
        """Counts it as idle, unless there is a reason against it; who gives way is counted no longer."""
        own = self._addresses.get(address)
        if own is not None and own.count >= self._of_address_max:
            if not own.idle:
                return RefusalReason.ADDRESS_SHARE
            return self._entered(one, address, gives_way=next(iter(own.idle)))
        if len(self) < self._ordinary:
            return self._entered(one, address)
        idle = [each for each in self._addresses.values() if each.idle]
        if idle:
            most = max(idle, key=lambda each: (each.count, -next(iter(each.idle.values()))))
            return self._entered(one, address, gives_way=next(iter(most.idle)))
        if len(self) < self._total:
            return self._entered(one, address, reserved=True)
        return RefusalReason.FULL

    def _entered(
        self, one: One, address: Hashable, gives_way: One | None = None, *, reserved: bool = False
    ) -> Admitted[One]:
        if gives_way is not None:
            self.leave(gives_way)
        self._address_of[one] = address
        self._addresses.setdefault(address, _OfAddress()).count += 1
        self.rests(one)
        return Admitted(gives_way, reserved)

    def works(self, one: One) -> None:
        """A request of it is under way. Nothing happens for one that is not here."""
        if one in self._address_of:
            self._addresses[self._address_of[one]].idle.pop(one, None)

    def rests(self, one: One) -> None:
        """It is idle from now on, if it was not before."""
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
