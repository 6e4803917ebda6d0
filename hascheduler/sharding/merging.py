"""Merges what the shards have found, each in the order of one list, into one page of that list. Pure.

::

    shard 0   9 8 . 5 |            each shard has looked at its own as far as its bar; what is beyond it, it may have
    shard 1   . 7 6 . 4 3 |        or not. So the page ends at the bar that comes first, and goes on from there: what
    page      9 8 7 6 5 |          was found beyond it is found again.

A list has one order in all shards, and a position means the same place in each, whether or not the shard has the
document that it names. So one position is enough for all shards, whatever their number.

What must hold: whoever goes on at ``until`` until there is none meets everything that stays in the list exactly once,
and each page is further than the one before if those of the shards are.

Two entries of one key are of one id in two shards: of a schedule whose name came back. They are never parted by the end
of a page, unless the page is too short for both: then the ones that don't fit are passed over.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Generic, Protocol, TypeVar

from hascheduler.ports import ListPosition


class Ordered(Protocol):
    def __lt__(self, other: Any, /) -> bool: ...


Key = TypeVar("Key", bound=Ordered)
Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True)
class Part(Generic[Key, Entry]):
    """What was found, with the place of each; everything through ``until`` was looked at, and None: everything."""

    found: Sequence[tuple[Key, Entry]]
    until: Key | None

    @property
    def entries(self) -> list[Entry]:
        return [entry for _, entry in self.found]


def merged(parts: Sequence[Part[Key, Entry]], limit: int, *, newest_first: bool = False) -> Part[Key, Entry]:
    """At most ``limit`` of what all of ``parts`` have, in ascending order of the keys, or in descending order."""
    ends = [part.until for part in parts if part.until is not None]
    bar = (max(ends) if newest_first else min(ends)) if ends else None

    def is_beyond(key: Key) -> bool:
        return bar is not None and (key < bar if newest_first else bar < key)

    found = [one for part in parts for one in part.found if not is_beyond(one[0])]
    found.sort(key=itemgetter(0), reverse=newest_first)
    if len(found) <= limit:
        return Part(found, bar)
    end = limit
    while end and found[end - 1][0] == found[end][0]:
        end -= 1
    end = end or limit
    return Part(found[:end], found[end - 1][0])


PlaceKey = tuple[int, int, str]
"""A place in a list by instant and id. In between, 1; what is before all of an instant has the 0 or 2 that sorts it
so."""


def place_of(at_ms: int, id: str) -> PlaceKey:
    return (at_ms, 1, id)


def key_of(position: ListPosition | None, *, newest_first: bool) -> PlaceKey | None:
    if position is None:
        return None
    if position.id is None:
        return (position.at_ms, 2 if newest_first else 0, "")
    return place_of(position.at_ms, position.id)


def position_of(key: PlaceKey | None) -> ListPosition | None:
    if key is None:
        return None
    at_ms, kind, id = key
    return ListPosition(at_ms, id if kind == 1 else None)
