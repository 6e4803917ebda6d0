"""Which jobs share which slots: the pools of definitions that live processors have in common, and caps in them.

A *flow* is what one queue serves: the jobs of a definition with a cap of its own, or of all others of a pool, or of all
that no live processor takes. Of more than `CAPPED_MAX` definitions the largest caps are left out.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hascheduler.dispatch.forecast.inputs import OpenSlots
from hascheduler.model.definition import Definition
from hascheduler.model.processor import ANY_DEFINITION

CAPPED_MAX = 100


@dataclass(frozen=True, slots=True)
class Flow:
    """``definition`` None: all definitions of the pool that have no cap. ``pool`` None: no live processor takes its
    jobs."""

    number: int
    pool: int | None
    cap: int = 0
    definition: str | None = None


class SlotPools:
    """The flows: one for each pool, one for what no live processor takes, and those with a cap, in order of names."""

    def __init__(
        self, slots: Sequence[OpenSlots], definitions: Mapping[str, Definition], slots_max: int | None
    ) -> None:
        pools = _components([offer.definitions for offer in slots])
        self.slots = [0] * len(set(pools))
        """By pool."""
        self._any = 0
        self._named: dict[str, int] = {}
        self._pool_of: dict[str, int] = {}
        for pool, offer in zip(pools, slots, strict=True):
            self.slots[pool] += offer.slots
            if ANY_DEFINITION in offer.definitions:
                self._any += offer.slots
                continue
            for name in offer.definitions:
                self._named[name] = self._named.get(name, 0) + offer.slots
                self._pool_of[name] = pool
        if slots_max is not None and len(self.slots) == 1:
            self.slots[0] = min(self.slots[0], slots_max)
        self.flows: list[Flow] = [Flow(number, number) for number in range(len(self.slots))]
        self.nowhere = Flow(len(self.slots), None)
        self.flows.append(self.nowhere)
        self._of_definition: dict[str, Flow] = {}
        for _, name, pool, cap in sorted(sorted(self._caps(definitions))[:CAPPED_MAX], key=_by_name):
            flow = self._of_definition[name] = Flow(len(self.flows), pool, cap, name)
            self.flows.append(flow)

    @property
    def capped(self) -> list[Flow]:
        return self.flows[len(self.slots) + 1 :]

    def flow(self, definition: str) -> Flow:
        known = self._of_definition.get(definition)
        if known is None:
            pool, _ = self._place(definition)
            known = self._of_definition[definition] = self.nowhere if pool is None else self.flows[pool]
        return known

    def _caps(self, definitions: Mapping[str, Definition]) -> list[tuple[int, str, int, int]]:
        """Cap, name, pool, and the cap again of each definition that may not have all slots of its pool."""
        found: list[tuple[int, str, int, int]] = []
        for name in {*definitions, *self._named}:
            definition = definitions.get(name)
            most = None if definition is None else definition.max_concurrency
            pool, own = self._place(name)
            if pool is not None:
                cap = own if most is None else min(own, most)
                if cap < self.slots[pool]:
                    found.append((cap, name, pool, cap))
        return found

    def _place(self, name: str) -> tuple[int | None, int]:
        """The pool of the definition of that name, and how many of its slots take its jobs."""
        own = self._any + self._named.get(name, 0)
        if not own:
            return None, 0
        return 0 if self._any else self._pool_of[name], own


def _by_name(capped: tuple[int, str, int, int]) -> str:
    return capped[1]


def _components(offered: Sequence[frozenset[str]]) -> list[int]:
    """For each of ``offered`` the number of its pool: sets with a name in common are of one, and where one has any
    definition, there is one pool."""
    if any(ANY_DEFINITION in names for names in offered):
        return [0] * len(offered)
    parents = list(range(len(offered)))

    def root(place: int) -> int:
        while parents[place] != place:
            parents[place] = parents[parents[place]]
            place = parents[place]
        return place

    first: dict[str, int] = {}
    for place, names in enumerate(offered):
        for name in names:
            other, own = root(first.setdefault(name, place)), root(place)
            parents[max(other, own)] = min(other, own)
    numbers: dict[int, int] = {}
    return [numbers.setdefault(root(place), len(numbers)) for place in range(len(offered))]


def offered_slots(offers: Iterable[OpenSlots]) -> list[OpenSlots]:
    """``offers``, those of equal definitions as one, in the order of their names."""
    slots: dict[frozenset[str], int] = {}
    for offer in offers:
        slots[offer.definitions] = slots.get(offer.definitions, 0) + offer.slots
    return [OpenSlots(definitions, slots[definitions]) for definitions in sorted(slots, key=sorted)]
