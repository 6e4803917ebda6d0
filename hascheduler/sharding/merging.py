"""Pages of several shards as one, in the order that they have in each. Pure.

A shard's page may end before it is full, and then says how far it has looked (``reached``). What lies beyond that in
another shard can't be given yet: something of the first may come before it. So a merged page ends at the nearest such
place, and the next one begins there in every shard.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Generic, TypeVar

from hascheduler.ports import ListPosition

Item = TypeVar("Item")
Place = tuple[Any, ...]
"""Where an item stands in the order: places are compared as they are."""


@dataclass(frozen=True, slots=True)
class ShardPage(Generic[Item]):
    """``reached``: everything up to there is in ``items``; None: these are all that are left."""

    items: Sequence[Item]
    reached: Place | None


def merged(
    pages: Sequence[ShardPage[Item]], place_of: Callable[[Item], Place], limit: int
) -> tuple[list[Item], Place | None]:
    """At most ``limit`` items, the last in order first, and the place after which to go on; None: there are no more."""
    ends = [page.reached for page in pages if page.reached is not None]
    end = max(ends) if ends else None
    items = sorted(chain.from_iterable(page.items for page in pages), key=place_of, reverse=True)
    known = [item for item in items if end is None or place_of(item) >= end]
    if len(known) > limit:
        return known[:limit], place_of(known[limit - 1])
    return known, end


def newest_first(position: ListPosition | None) -> Place | None:
    """The place of a position in a list that has the newest first: without an id it is before all of its instant."""
    return None if position is None else (position.at_ms, position.id is None, position.id or "")


def position_of(place: Place | None) -> ListPosition | None:
    """The position of such a place."""
    return None if place is None else ListPosition(place[0], place[2] or None)
