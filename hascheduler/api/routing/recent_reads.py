"""What a replica read lately for everybody who asks: by default each thing at most every 10 s, and within 2 s."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hascheduler.errors import StoreUnavailable
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import Clock

EVERY_MS = 10_000
READ_LIMIT_S = 2.0
KEPT_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Unread:
    """The reason why something could not be read."""

    reason: str


@dataclass(slots=True)
class _Read:
    at_ms: int | None = None
    found: Any = None
    reading: asyncio.Lock = field(default_factory=asyncio.Lock)


class RecentReads:
    """Owner of what was read last, and of when each of the things that are so now was first seen."""

    def __init__(self) -> None:
        self._reads: OrderedDict[Hashable, _Read] = OrderedDict()
        self._since: OrderedDict[str | None, dict[str, WallMs]] = OrderedDict()

    async def get(
        self,
        key: Hashable,
        clock: Clock,
        read: Callable[[], Awaitable[Any]],
        *,
        every_ms: int = EVERY_MS,
        is_limited: bool = True,
    ) -> Any:
        """Return what ``read`` returned for that key within ``every_ms``, or `Unread` if it failed then.

        Unless it ``is_limited``, it may take longer than `READ_LIMIT_S`.
        """
        kept = self._reads.setdefault(key, _Read())
        _keep_last(self._reads, key)
        async with kept.reading:
            if kept.at_ms is None or clock.mono_ms() - kept.at_ms >= every_ms:
                try:
                    async with asyncio.timeout(READ_LIMIT_S if is_limited else None):
                        kept.found = await read()
                except TimeoutError:
                    kept.found = Unread(f"no answer in {READ_LIMIT_S:g} s")
                except StoreUnavailable as error:
                    kept.found = Unread(str(error))
                kept.at_ms = clock.mono_ms()
            return kept.found

    def first_seen(self, tenant: str | None, things: Collection[str], now: WallMs) -> Mapping[str, WallMs]:
        """Return since when that tenant's callers have been told of each of the things; forget all others."""
        before = self._since.get(tenant, {})
        self._since[tenant] = {thing: before.get(thing, now) for thing in things}
        _keep_last(self._since, tenant)
        return self._since[tenant]


def _keep_last(kept: OrderedDict[Any, Any], key: Hashable) -> None:
    """Drop what was asked for longest ago, if that is too much."""
    kept.move_to_end(key)
    if len(kept) > KEPT_MAX:
        kept.popitem(last=False)
