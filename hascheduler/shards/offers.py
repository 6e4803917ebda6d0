"""How many slots a processor offers in each of its shards: a pure decision, made once a second.

==================  =============================================================  ==================================
a shard             gets                                                           when
==================  =============================================================  ==================================
that filled its     an even part of all slots but those that the others hold, as   at every check
offer               far as there is room
that did not        what it needed and half of what nobody needed, one at least;   at every check, if there is room
                    what it had if no shard wants more
that holds the      one less, so that its leader does not fill the next free slot  every `TURN_MS` without room, until
most                before others were offered it                                  others had one or two checks
==================  =============================================================  ==================================

*Room* is the free slots plus the slots that became free since the last check. Without room a shard is offered what it
holds; if room is short, it goes to the shards that were without the longest. So a shard nearly always has a free
offered slot, and if jobs wait there, it is filled: nobody has to ask. The offers may exceed the free slots, so that a
burst in one shard finds them at once: attempts that arrive at the same moment in two shards wait, or are given back.

While jobs wait in one shard alone, it gets all slots. While they wait in several, each of these gets slots in the end,
however few slots there are and however long jobs take. Nothing changes while nothing runs.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

TURN_MS = 10_000
_ON_THE_WAY_MS = 2_000
"""By then, attempts that a leader dispatched before it read a new offer have arrived."""


@dataclass(frozen=True, slots=True)
class ShardLoad:
    """A shard's offer, what it holds now, and the most that it held since the last check."""

    offered: int
    held: int
    most: int

    @property
    def wants_more(self) -> bool:
        return self.most >= max(self.offered, 1)


_Loads = Mapping[int, ShardLoad]


class SlotOffers:
    """Owner of whose turn it is to get a free slot."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._yields: int | None = None
        """The shard that must not fill the next free slot."""
        self._checks = 0
        """How often others were offered that slot."""
        self._turned_at_ms: int | None = None
        self._without_since_ms: dict[int, int] = {}
        """When each shard last held an attempt, or was offered a slot that others went without."""
        self._with_since_ms: dict[int, int] = {}
        """When each shard was offered a slot after it had none."""

    def next(self, now_ms: int, loads: _Loads, *, freed: int) -> dict[int, int]:
        """Return the offers; ``freed`` counts the slots that became free since the last check."""
        self._without_since_ms |= {shard: now_ms for shard, load in loads.items() if load.held}
        held = sum(load.held for load in loads.values())
        room = self._slots + freed - held
        if room <= 0:
            offers = self._without_room(now_ms, loads, self._slots + freed)
        elif self._yields is not None and self._checks < 2:
            offers = self._in_turn(now_ms, self._yields, loads)
        else:
            self._yields = None
            offers = self._divided(now_ms, loads, room, for_all=held < self._slots)
        self._with_since_ms |= {shard: now_ms for shard, load in loads.items() if not load.offered and offers[shard]}
        return offers

    def _divided(self, now_ms: int, loads: _Loads, room: int, *, for_all: bool) -> dict[int, int]:
        wanting = [shard for shard, load in loads.items() if load.wants_more]
        spare = self._slots - sum(load.most for load in loads.values())
        if not wanting and for_all:
            return {shard: max(load.offered, 1) for shard, load in loads.items()}
        offers = {}
        for shard in self._longest_without(loads):
            load = loads[shard]
            if load.wants_more and load.held:
                continue
            if for_all or room > 0:
                offers[shard] = 1 if load.wants_more else load.most + max(spare // 2, 1)
                room -= not for_all
                self._without_since_ms[shard] = now_ms
            else:
                offers[shard] = min(load.offered, load.held)
        left = max(self._slots - sum(load.held for load in loads.values() if not load.wants_more), 0)
        # The remainder goes last to the shards that have had an offer for longest.
        wanting.sort(key=lambda each: (loads[each].offered, self._with_since_ms.get(each, -1), each))
        for place, shard in enumerate(wanting):
            part, held = left // (len(wanting) - place), loads[shard].held
            left -= part
            given = max(min(part, held + max(room, 0)), offers.get(shard, 0))
            room -= max(given - held, 0)
            offers[shard] = given
        return offers

    def _without_room(self, now_ms: int, loads: _Loads, most: int) -> dict[int, int]:
        if self._checks:
            self._yields, self._checks = None, 0  # a shard took it
        turned_at_ms = self._turned_at_ms
        if self._yields is None and len(loads) > 1 and (turned_at_ms is None or now_ms - turned_at_ms >= TURN_MS):
            self._turned_at_ms = now_ms
            self._yields = max(loads, key=lambda each: (loads[each].held, -self._with_since_ms.get(each, -1)))
        offers = {shard: min(load.offered, load.held) for shard, load in loads.items()}
        too_many = sum(offers.values()) - most
        for shard in sorted(offers, key=lambda each: (self._with_since_ms.get(each, -1), each)):
            fewer = min(max(too_many, 0), offers[shard])
            offers[shard], too_many = offers[shard] - fewer, too_many - fewer
        if self._yields is not None:
            offers[self._yields] = max(min(offers[self._yields], loads[self._yields].held - 1), 0)
        return offers

    def _in_turn(self, now_ms: int, yields: int, loads: _Loads) -> dict[int, int]:
        """Offer the slot to the shard that was without the longest; at the second check to all but the yielding one."""
        others = [shard for shard in self._longest_without(loads) if shard != yields]
        if self._checks == 0:
            others = others[:1]
            self._without_since_ms[others[0]] = now_ms
        self._checks += 1
        kept = {shard: min(load.offered, load.held) for shard, load in loads.items()}
        return kept | {shard: loads[shard].held + 1 for shard in others}

    def _longest_without(self, loads: _Loads) -> list[int]:
        return sorted(loads, key=lambda each: (self._without_since_ms.get(each, -1), each))


class ResourceRound:
    """Owner of which shard, by its place, is offered the resources.

    After `TURN_MS` they are withdrawn there, and the next shard gets them once all attempts that may use them have
    ended.
    """

    def __init__(self, now_ms: int) -> None:
        self.place = 0
        self._since_ms = now_ms
        self._withdrawn = False
        self._users: set[tuple[str, int]] | None = None
        """The attempts that came before they were withdrawn; None until all of these have come."""

    def next(self, now_ms: int, shards: int, *, users: Collection[tuple[str, int]], is_registered: bool) -> int | None:
        """Return the place of the shard that is offered them; None while none is.

        ``users`` are the attempts at the last place; ``is_registered`` is True if its leader can read the offer, or
        gets no answer from here.
        """
        if not self._withdrawn:
            if now_ms - self._since_ms < TURN_MS:
                return self.place
            self._withdrawn, self._since_ms = True, now_ms
            return None
        if not is_registered:
            self._since_ms = now_ms
        if now_ms - self._since_ms < _ON_THE_WAY_MS:
            return None
        self._users = set(users) if self._users is None else self._users.intersection(users)
        if self._users:
            return None
        self.place, self._since_ms, self._withdrawn, self._users = (self.place + 1) % shards, now_ms, False, None
        return self.place
