"""Which shard a tenant's jobs and schedules are in: 256 slots by a hash of the tenant, and the shard of each slot.

A deployment of several shards has one such document, in the database of its first shard, which is its home. Ids of
submitted jobs end in ``~`` and the two hexadecimal digits of their slot, so that they tell where they are.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import blake2b

from hascheduler.errors import InvalidInput
from hascheduler.model.job import schedule_of

SLOT_COUNT = 256
"""Of every deployment, for ever: what a slot has moves as a whole."""
SHARDS_MAX = 64
"""More have not been tried; see decision 13 for what bounds them."""
SLOT_SUFFIX_LENGTH = 3
"""Of the end of an id that tells a slot."""
_SLOT_AT_END = re.compile(r"~([0-9a-f]{2})\Z")


@lru_cache(maxsize=65_536)
def slot_of(tenant: str) -> int:
    """The same in every process, for ever: what is stored rests on it."""
    return blake2b(tenant.encode("utf-8", "surrogatepass"), digest_size=1).digest()[0]


def with_slot(job_id: str, tenant: str) -> str:
    """The id of a job that is submitted for that tenant."""
    return f"{job_id}~{slot_of(tenant):02x}"


def slot_in(job_id: str) -> int | None:
    """The slot that the id of a submitted job tells; None for one that a schedule made, or of a single shard."""
    found = _SLOT_AT_END.search(job_id)
    return None if found is None or schedule_of(job_id) is not None else int(found[1], 16)


def shard_name(home: str, index: int) -> str:
    """The first shard, the home, has the name that the only shard of a deployment has."""
    return home if index == 0 else f"{index:04d}"


def shard_database(home: str, index: int) -> str:
    """The database of a shard, from that of the home."""
    return home if index == 0 else f"{home}-{index:04d}"


@dataclass(frozen=True, slots=True)
class Routing:
    """``shards`` are the names of the shards, the home first; ``shard_of_slot`` has an index into them for each slot.
    ``moving`` are the slots that are on their way to another shard, with the index of that: until they are there, they
    are where they were. ``leaving`` are those that are there, and decided there, while the rest of their documents is
    still in another shard, with the index of that. ``epoch`` grows with every change."""

    epoch: int
    shards: tuple[str, ...]
    shard_of_slot: tuple[int, ...]
    moving: Mapping[int, int] = field(default_factory=dict, hash=False)
    leaving: Mapping[int, int] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not 1 <= len(self.shards) <= SHARDS_MAX:
            raise InvalidInput(("shards",), f"{len(self.shards)} shards", f"1 to {SHARDS_MAX}")
        if len(set(self.shards)) < len(self.shards):
            raise InvalidInput(("shards",), "a name stands there twice", "different names")
        if len(self.shard_of_slot) != SLOT_COUNT:
            raise InvalidInput(("slots",), f"{len(self.shard_of_slot)} slots", f"{SLOT_COUNT}")
        for slot, index in enumerate(self.shard_of_slot):
            if not 0 <= index < len(self.shards):
                raise InvalidInput(("slots", slot), f"shard {index}", f"0 to {len(self.shards) - 1}")
        for path, slots in (("moving", self.moving), ("leaving", self.leaving)):
            for slot, index in slots.items():
                if not (0 <= slot < SLOT_COUNT and 0 <= index < len(self.shards)):
                    raise InvalidInput((path,), f"slot {slot}, shard {index}", f"one of {len(self.shards)} shards")

    @classmethod
    def even(cls, shards: Sequence[str]) -> "Routing":
        """The first one of a deployment: neighbouring slots go to different shards, and each has about as many."""
        return cls(1, tuple(shards), tuple(slot % len(shards) for slot in range(SLOT_COUNT)))

    @classmethod
    def all_at_home(cls, shards: Sequence[str]) -> "Routing":
        """The first one of a deployment that had one shard until then."""
        return cls(1, tuple(shards), (0,) * SLOT_COUNT)

    def beginning(self, moves: Mapping[int, int]) -> "Routing":
        """The next one, in which those slots begin to move; `InvalidInput` for one that moves already."""
        for slot in moves:
            if not self.is_at_rest(slot):
                raise InvalidInput(("slots", slot), f"it moves to {self.shards[self.goal_of(slot)]}", "one that rests")
        there = {slot: to for slot, to in moves.items() if self.shard_of_slot[slot] != to}
        return replace(self, epoch=self.epoch + 1, moving={**self.moving, **there})

    def arrived(self, slot: int) -> "Routing":
        """The next one, in which that slot is where it was moving to, and the rest of it leaves the shard before."""
        placed = list(self.shard_of_slot)
        placed[slot] = self.moving[slot]
        left = {each: to for each, to in self.moving.items() if each != slot}
        leaving = {**self.leaving, slot: self.shard_of_slot[slot]}
        return replace(self, epoch=self.epoch + 1, shard_of_slot=tuple(placed), moving=left, leaving=leaving)

    def emptied(self, slot: int) -> "Routing":
        """The next one, in which nothing of that slot is left in the shard that it came from."""
        left = {each: source for each, source in self.leaving.items() if each != slot}
        return replace(self, epoch=self.epoch + 1, leaving=left)

    def extended(self, shards: Sequence[str]) -> "Routing":
        """The next one, with more shards, which have no slot yet."""
        return replace(self, epoch=self.epoch + 1, shards=tuple(shards))

    def is_at_rest(self, slot: int) -> bool:
        """Whether all that is of that slot is in one shard."""
        return slot not in self.moving and slot not in self.leaving

    def goal_of(self, slot: int) -> int:
        """The index of the shard that the slot is in, or moves to."""
        return self.moving.get(slot, self.shard_of_slot[slot])

    def other_of(self, slot: int) -> int | None:
        """The index of the other shard that something of the slot may be in; None: it is at rest."""
        return self.moving.get(slot, self.leaving.get(slot))

    def index_of(self, tenant: str) -> int:
        """The index of the shard that has what is of that tenant."""
        return self.shard_of_slot[slot_of(tenant)]
