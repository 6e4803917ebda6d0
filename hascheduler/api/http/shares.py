"""Pools in which every party has a share, so that no party can exhaust a limited resource.

A *pool* has room for ``total`` units, the last ``reserve`` of them for privileged requests alone. A *party* is a token
or an address. A request is usually charged to both, and both must have some of their share left.

A share is dynamic: a party is admitted while it holds less than a multiple of the free units.

=========  ==========================  ==================================
party      holds less than             alone, it comes to
=========  ==========================  ==================================
token      what is free                half of the pool
address    three times what is free    three quarters: it may be a proxy
=========  ==========================  ==================================

Guarantees:

- No more than ``total`` units are in use, and no ordinary request takes a unit of the reserve.
- Alone, no party gets beyond its share: a token leaves as much free as it takes, but for the last unit.
- A party that holds nothing is admitted while any unit is free. Parties that take all they can, one after the other,
  leave the next one half (or a quarter) of what the last one found; as they release units, the shares even out.
- A slot is returned once, however often it is released.

Not guaranteed: that many parties together can't fill a pool. Only admins create tokens, and the reserve remains.

Source: Choudhury and Hahne, Dynamic Queue Length Thresholds for Shared-Memory Packet Switches, IEEE/ACM ToN 6(2), 1998.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from ipaddress import IPv6Address, ip_address
from typing import Self


class PartyKind(Enum):
    TOKEN = "token"  # noqa: S105  # a word
    ADDRESS = "address"


TIMES_FREE = {PartyKind.TOKEN: 1, PartyKind.ADDRESS: 3}
"""A party of this kind is admitted while it holds less than this multiple of the free units."""
_IPV6_PREFIX_BITS = 64


@dataclass(frozen=True, slots=True)
class Party:
    kind: PartyKind
    name: str


@dataclass(frozen=True, slots=True)
class PoolRequest:
    """The parties to charge, and whether the request may use the reserve."""

    parties: Sequence[Party]
    privileged: bool = False


class RefusalReason(Enum):
    TOKEN_SHARE = "token_share"  # noqa: S105  # a word
    ADDRESS_SHARE = "address_share"
    FULL = "full"


_SHARE_USED = {PartyKind.TOKEN: RefusalReason.TOKEN_SHARE, PartyKind.ADDRESS: RefusalReason.ADDRESS_SHARE}


@dataclass(frozen=True, slots=True)
class PoolRefusal:
    """Not admitted; another try may succeed after ``retry_after_s``."""

    pool: str
    reason: RefusalReason
    retry_after_s: int


class Pool:
    """Owner of the units in use. ``admit`` gives a `Slot`, which its holder releases."""

    def __init__(self, name: str, total: int, reserve: int = 0, *, retry_after_s: int = 1) -> None:
        assert 0 <= reserve <= total
        self.name = name
        self._total = total
        self._reserve = reserve
        self._retry_after_s = retry_after_s
        self._in_use = 0
        self._held: dict[Party, int] = {}

    @property
    def in_use(self) -> int:
        return self._in_use

    def held(self, party: Party) -> int:
        return self._held.get(party, 0)

    def free(self, *, privileged: bool = False) -> int:
        """The units that such a request could still take."""
        return max(0, self._total - self._in_use - (0 if privileged else self._reserve))

    def admit(self, request: PoolRequest, units: int = 1) -> "Slot | PoolRefusal":
        """Charge ``units`` to all parties of ``request``, or to none."""
        free = self.free(privileged=request.privileged)
        for party in request.parties:
            held = self.held(party)
            if held and held >= TIMES_FREE[party.kind] * free:
                return PoolRefusal(self.name, _SHARE_USED[party.kind], self._retry_after_s)
        if units > free:
            return PoolRefusal(self.name, RefusalReason.FULL, self._retry_after_s)
        self._in_use += units
        for party in request.parties:
            self._held[party] = self.held(party) + units
        return Slot(self, request.parties, units)

    def _take_back(self, parties: Sequence[Party], units: int) -> None:
        self._in_use -= units
        for party in parties:
            left = self._held[party] - units
            if left:
                self._held[party] = left
            else:
                del self._held[party]


class Slot:
    """Units of a pool, held until they are released."""

    __slots__ = ("_parties", "_pool", "_units")

    def __init__(self, pool: Pool, parties: Sequence[Party], units: int) -> None:
        self._pool: Pool | None = pool
        self._parties = parties
        self._units = units

    @property
    def is_released(self) -> bool:
        return self._pool is None

    def release(self) -> None:
        """Return the units; repeating it is harmless."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool._take_back(self._parties, self._units)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def token_party(id: str) -> Party:
    return Party(PartyKind.TOKEN, id)


def address_party(host: str) -> Party:
    """One party for a whole /64 of IPv6 addresses, as one host may use all of it."""
    if ":" not in host:
        return Party(PartyKind.ADDRESS, host)
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return Party(PartyKind.ADDRESS, host)
    assert isinstance(address, IPv6Address)
    if address.ipv4_mapped is not None:
        return Party(PartyKind.ADDRESS, str(address.ipv4_mapped))
    prefix = int(address) >> (128 - _IPV6_PREFIX_BITS) << (128 - _IPV6_PREFIX_BITS)
    return Party(PartyKind.ADDRESS, f"{IPv6Address(prefix)}/{_IPV6_PREFIX_BITS}")
