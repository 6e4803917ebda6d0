"""Partitions: 256 groups of tenants by a hash of the tenant's name.

A partition is the unit that can be held, exported or moved. With several shards each partition is in one of them, and
the id of a submitted job ends in ``~`` and the two hexadecimal digits of its partition.

Holds limit what one shard's leader may decide for now.

A hold on a *partition* keeps the leader from deciding anything for its tenants. A hold on a *cap* keeps it from
starting jobs that count against that cap, if the cap is smaller than the number of shards, so that one shard has all of
it at a time; without a hold the first shard has it. A larger cap is divided evenly, and a hold on it means nothing, as
with a single shard. Running jobs go on; once no job covered by the hold runs or is promised, the leader releases the
hold through its journal (`ReleaseHold`). From then on no leader of this shard, in this term or a later one, decides
anything covered by it until a later revision lifts the hold.

A single shard uses holds too, for a tenant that must pause to be exported or restored.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

from hascheduler.model.job import schedule_of

PARTITION_COUNT = 256
"""The count in every deployment, for ever: stored ids depend on it."""
PARTITION_SUFFIX_LENGTH = 3
SHARDS_MAX = 64
"""More have not been tried; decision 13 names what bounds them."""
_PARTITION_AT_END = re.compile(r"~([0-9a-f]{2})\Z")


@lru_cache(maxsize=65_536)
def partition_of(tenant: str) -> int:
    """Return the partition of a tenant: the same in every process, for ever."""
    return blake2b(tenant.encode("utf-8", "surrogatepass"), digest_size=1).digest()[0]


def with_partition(job_id: str, tenant: str) -> str:
    """Return the id of a job that is submitted for that tenant."""
    return f"{job_id}~{partition_of(tenant):02x}"


def partition_in(job_id: str) -> int | None:
    """Return the partition in the id of a submitted job; None for a job of a schedule or an id without a partition."""
    found = _PARTITION_AT_END.search(job_id)
    return None if found is None or schedule_of(job_id) is not None else int(found[1], 16)


def shard_name(home: str, index: int) -> str:
    """Return the name of a shard; the home's is also the name of the only shard of a deployment."""
    return home if index == 0 else f"{index:04d}"


def shard_database(home: str, index: int) -> str:
    """Return the name of a shard's database, derived from the home's."""
    return home if index == 0 else f"{home}-{index:04d}"


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
        """Return True if nothing covered by it runs or is promised any more."""
        return self.is_held and self.released >= self.rev

    @property
    def is_awaited(self) -> bool:
        """Return True if the leader has yet to release it."""
        return self.is_held and self.released < self.rev
