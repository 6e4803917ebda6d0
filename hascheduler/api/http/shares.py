"""Pools in which every party has a share: nobody can take all of what there is only so much of.

A *pool* has room for ``total`` units, the last ``reserve`` of them for privileged uses alone. A *party* is a token or
an address; a use is mostly of both at once, and each of them must have something left of its share.

A share is no fixed number: a party is admitted while it holds less than so many times what is free.

=========  ==========================  ==================================
party      holds less than             alone, it comes to
=========  ==========================  ==================================
token      what is free                half of the pool
address    three times what is free    three quarters: it may be a proxy
=========  ==========================  ==================================

What is promised:

- No more than ``total`` is in use, and no ordinary use begins on the reserve.
- Alone, no party gets beyond its part: a token leaves as much free as it takes, but for the last unit.
- Who holds nothing is admitted while anything is free. Parties that take all they can, one after the other, leave the
  next one half (or a quarter) of what the last one found; those that come and go even out.
- A slot is given back once, however often it is released.

What is not: that many parties together can't fill a pool. Tokens are made by admins, and the reserve stays.

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
"""A party of this kind is admitted while it holds less than so many times what is free."""
_IPV6_PREFIX_BITS = 64


@dataclass(frozen=True, slots=True)
class Party:
    kind: PartyKind
    name: str


@dataclass(frozen=True, slots=True)
class PoolRequest:
    """Who uses, and whether that may take of the reserve."""

    parties: Sequence[Party]
    privileged: bool = False


class RefusalReason(Enum):
    TOKEN_SHARE = "token_share"  # noqa: S105  # a word
    ADDRESS_SHARE = "address_share"
    FULL = "full"


_SHARE_USED = {PartyKind.TOKEN: RefusalReason.TOKEN_SHARE, PartyKind.ADDRESS: RefusalReason.ADDRESS_SHARE}


@dataclass(frozen=True, slots=True)
class PoolRefusal:
    """Not admitted; ``retry_after_s`` is when it may be worth another try."""

    pool: str
    reason: RefusalReason
    retry_after_s: int


class Pool:
    """Owner of what is in use. ``admit`` gives a `Slot`, which the user releases."""

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
        """What such a use could still take."""
        return max(0, self._total - self._in_use - (0 if privileged else self._reserve))

    def admit(self, use: PoolRequest, units: int = 1) -> "Slot | PoolRefusal":
        """Charge ``units`` to all parties of ``use``, or to none."""
        free = self.free(privileged=use.privileged)
        for party in use.parties:
            held = self.held(party)
            if held and held >= TIMES_FREE[party.kind] * free:
                return PoolRefusal(self.name, _SHARE_USED[party.kind], self._retry_after_s)
        if units > free:
            return PoolRefusal(self.name, RefusalReason.FULL, self._retry_after_s)
        self._in_use += units
        for party in use.parties:
            self._held[party] = self.held(party) + units
        return Slot(self, use.parties, units)

    def _take_back(self, parties: Sequence[Party], units: int) -> None:
        self._in_use -= units
        for party in parties:
            left = self._held[party] - units
            if left:
                self._held[party] = left
            else:
                del self._held[party]


class Slot:
    """What was admitted to a pool, until it is released."""

    __slots__ = ("_parties", "_pool", "_units")

    def __init__(self, pool: Pool, parties: Sequence[Party], units: int) -> None:
        self._pool: Pool | None = pool
        self._parties = parties
        self._units = units

    def release(self) -> None:
        """Give it back; again is harmless."""
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
    """A host has a whole /64 of IPv6 addresses to speak from, so that is one party."""
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
