"""Holds: what one shard's leader must not decide for now.

A hold on a *partition* keeps the leader from deciding anything for its tenants. A hold on a *cap* keeps it from
starting jobs that count against that cap, if the cap is smaller than the number of shards, so that one shard has all of
it at a time; without a hold the first shard has it. A larger cap is divided evenly, and a hold on it means nothing, as
with a single shard. What runs goes on; once nothing covered by the hold runs or is promised, the
leader releases the hold through its journal (`ReleaseHold`). From then on no leader of this shard, in this term or a
later one, decides anything covered by it until a later revision lifts the hold.

A single shard has a use for holds too: a tenant that must stand still to be exported or restored.
"""

from dataclasses import dataclass

ALL_JOBS = "cap/all"
"""The key of the cap on all jobs together."""
_PARTITION = "partition/"
_DEFINITION = "cap/definition/"
_TIER = "cap/tier/"


def partition_key(partition: int) -> str:
    """Return the key of a hold on that partition."""
    return f"{_PARTITION}{partition:02x}"


def partition_of_key(key: str) -> int | None:
    """Return the partition that the key names; None if it names a cap."""
    digits = key.removeprefix(_PARTITION)
    is_partition = key.startswith(_PARTITION) and len(digits) == 2 and set(digits) <= set("0123456789abcdef")
    return int(digits, 16) if is_partition else None


def definition_key(name: str) -> str:
    """Return the key of the cap on the jobs of that definition."""
    return f"{_DEFINITION}{name}"


def definition_of_key(key: str) -> str | None:
    """Return the definition whose jobs the cap limits; None for any other key."""
    return key.removeprefix(_DEFINITION) if key.startswith(_DEFINITION) else None


def tier_key(tier: int) -> str:
    """Return the key of the cap on the jobs of that tier."""
    return f"{_TIER}{tier}"


def tier_of_key(key: str) -> int | None:
    """Return the tier that the cap limits; None for any other key."""
    rank = key.removeprefix(_TIER)
    return int(rank) if key.startswith(_TIER) and rank.isdecimal() and rank.isascii() else None


@dataclass(frozen=True, slots=True)
class Hold:
    """A stored hold. A lifted one stays, with ``is_held`` false.

    ``rev`` grows with every change of ``is_held`` or ``is_silent``. While a partition is held *silently*, changes to
    its documents happened elsewhere and make no events. ``released`` is the newest revision that the leader released.
    """

    key: str
    rev: int
    is_held: bool
    is_silent: bool = False
    released: int = 0

    @property
    def is_released(self) -> bool:
        """Whether nothing covered by it runs or is promised any more."""
        return self.is_held and self.released >= self.rev

    @property
    def is_awaited(self) -> bool:
        """Whether the leader has yet to release it."""
        return self.is_held and self.released < self.rev
