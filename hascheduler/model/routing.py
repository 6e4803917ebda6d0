"""Which shard a tenant's jobs and schedules are in: 256 slots by a hash of the tenant, and the shard of each slot.

A deployment of several shards has one such document, in the database of its first shard, which is its home. Ids of
submitted jobs end in ``~`` and the two hexadecimal digits of their slot, so that they tell where they are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from hascheduler.errors import InvalidInput
from hascheduler.model.partition import PARTITION_COUNT as SLOT_COUNT
from hascheduler.model.partition import PARTITION_SUFFIX_LENGTH as SLOT_SUFFIX_LENGTH
from hascheduler.model.partition import SHARDS_MAX, shard_database, shard_name
from hascheduler.model.partition import partition_in as slot_in
from hascheduler.model.partition import partition_of as slot_of
from hascheduler.model.partition import with_partition as with_slot

__all__ = [
    "SHARDS_MAX", "SLOT_COUNT", "SLOT_SUFFIX_LENGTH", "Routing", "shard_database", "shard_name", "slot_in", "slot_of",
    "with_slot",
]  # fmt: skip


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
