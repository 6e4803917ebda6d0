"""The limits on concurrent use, of all callers together and of each: they refuse instead of letting callers wait.

A request is charged to its token and to its address. A token is admitted while it holds less than is free, an address,
which may be a proxy, while it holds less than three times that: alone, they reach a half and three quarters. So
a caller that holds nothing is admitted while anything is free. 429 ``share-used-up`` means that the caller has its
share, 503 ``too-busy`` that nothing is free. Only privileged callers, which keep the system going, get the reserve.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from http import HTTPStatus
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Self

from starlette.types import Scope

from hascheduler.api.http.problems import ProblemError
from hascheduler.telemetry.metrics_http import HttpMetrics

HOLDING = "holding"
"""The key in ``scope["state"]`` of the units that a request holds."""
FORWARDED_MAX = 512
Party = tuple[str, str]
"""The kind, ``token`` or ``address``, and its id."""
TIMES_FREE = {"token": 1, "address": 3}
_ONE_A_REQUEST = frozenset({"followers", "viewers"})
"""Limits of which a request holds one unit, however many shards answer it."""


class NoRoom(ProblemError):
    """The refusal of a request if a limit has no room or its caller has its share. ``reason`` is the metrics' label."""

    def __init__(self, reason: str, words: str, retry_after_s: int) -> None:
        self.reason = reason
        headers = {"Retry-After": str(retry_after_s)}
        if reason == "full":
            detail = f"the replica has reached its limit of {words}; retry later"
            super().__init__(HTTPStatus.SERVICE_UNAVAILABLE, "too-busy", detail, headers=headers)
        else:
            whose = reason.removesuffix("_share")
            detail = f"too many {words} from this {whose}; end some or retry later"
            super().__init__(HTTPStatus.TOO_MANY_REQUESTS, "share-used-up", detail, headers=headers)


@dataclass(slots=True, eq=False)
class Limit:
    """Owner of the held units of one kind: of ``total`` units, the last ``reserve`` are only for privileged callers."""

    words: str
    total: int
    reserve: int = 0
    retry_after_s: int = 1
    in_use: int = field(default=0, init=False)
    _held: dict[Party, int] = field(default_factory=dict, init=False)

    def held(self, party: Party) -> int:
        return self._held.get(party, 0)

    def free(self, *, privileged: bool = False) -> int:
        """Return the units that a caller could still take."""
        return max(0, self.total - self.in_use - (0 if privileged else self.reserve))

    def take(self, parties: Sequence[Party], units: int = 1, *, privileged: bool = False) -> "Slot":
        """Charge ``units`` to all parties, or raise `NoRoom` and charge none."""
        free = self.free(privileged=privileged)
        for party in parties:
            held = self.held(party)
            if held and held >= TIMES_FREE[party[0]] * free:
                raise NoRoom(f"{party[0]}_share", self.words, self.retry_after_s)
        if units > free:
            raise NoRoom("full", self.words, self.retry_after_s)
        self._add(parties, units)
        return Slot(self, parties, units)

    def _add(self, parties: Sequence[Party], units: int) -> None:
        self.in_use += units
        for party in parties:
            self._held[party] = self.held(party) + units
            if not self._held[party]:
                del self._held[party]


@dataclass(slots=True, eq=False)
class Slot:
    """Units of a limit, held until they are released. Releasing them again does nothing."""

    limit: Limit | None
    parties: Sequence[Party]
    units: int

    def release(self) -> None:
        limit, self.limit = self.limit, None
        if limit is not None:
            limit._add(self.parties, -self.units)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


Limits = Mapping[str, Limit]


def limits() -> dict[str, Limit]:
    """Return the limits of one replica, each with its unit."""
    return {
        "in_flight": Limit("requests in flight", 320, 64),  # from a request's identification to its answer
        "waits": Limit("requests that wait for a job", 1_000),
        "fetches": Limit("fetches that wait for work", 960),
        "followers": Limit("event streams", 100, 10, retry_after_s=5),
        "viewers": Limit("live pages", 200, 20, retry_after_s=5),
        "recordings": Limit("recordings", 4, retry_after_s=5),
        "changes": Limit("bulk operations", 3, 1),
        "forwarded": Limit("forwarded requests", FORWARDED_MAX),
        "large_bodies": Limit("large bodies", 32 * 1024 * 1024),  # bytes, as declared
    }


class Holding:
    """Owner of what one request holds, first of all its place in flight; raises `NoRoom` if there is none."""

    is_held_open = False
    """True if the request waits, with all its writes done."""

    def __init__(self, limits: Limits, parties: Sequence[Party], metrics: HttpMetrics, *, privileged: bool) -> None:
        self._limits = limits
        self._parties = parties
        self._metrics = metrics
        self._privileged = privileged
        self._slots: dict[Slot, str] = {}
        self._place = self.take("in_flight")

    def take(self, kind: str, units: int = 1) -> Slot:
        """Return a slot that holds the units until it is released or the request ends, or count and raise `NoRoom`."""
        if kind in _ONE_A_REQUEST and kind in self._slots.values():
            return Slot(self._limits[kind], (), 0)
        try:
            slot = self._limits[kind].take(self._parties, units, privileged=self._privileged)
        except NoRoom as refused:
            self._metrics.crowded_out(kind, refused.reason)
            raise
        self._slots[slot] = kind
        return slot

    def hold_open(self, kind: str) -> Slot:
        """Take a slot to wait in, and return the place in flight.

        A few hundred waiting requests must not keep out those that would be answered at once.
        """
        slot = self.take(kind)
        self._place.release()
        self.is_held_open = True
        return slot

    def release(self) -> None:
        """Release everything, however the request ends: a response that was to hold something may never have begun."""
        for slot in self._slots:
            slot.release()


def holding_of(scope: Scope) -> Holding:
    """Return what a request that the edge has admitted holds."""
    holding: Holding = scope["state"][HOLDING]
    return holding


@lru_cache(1_024)
def address_party(host: str) -> Party:
    """Return the party of an address: one for a whole /64 of IPv6 addresses, as one host may use all of it."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return "address", host
    if isinstance(address, IPv6Address):
        return "address", str(address.ipv4_mapped or ip_network((address, 64), strict=False))
    return "address", host
