"""Partitions: 256 groups of tenants by a hash of the tenant's name.

A partition is what can be held, exported or moved as a whole. With several shards each partition is in one of them, and
the id of a submitted job ends in ``~`` and the two hexadecimal digits of its partition.
"""

import re
from functools import lru_cache
from hashlib import blake2b

from hascheduler.model.job import schedule_of

PARTITION_COUNT = 256
"""Of every deployment, for ever: stored ids rest on it."""
PARTITION_SUFFIX_LENGTH = 3
SHARDS_MAX = 64
"""More have not been tried; decision 13 says what bounds them."""
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
    """Return the name of a shard; the home's is that of the only shard of a deployment."""
    return home if index == 0 else f"{index:04d}"


def shard_database(home: str, index: int) -> str:
    """Return the name of a shard's database, from that of the home."""
    return home if index == 0 else f"{home}-{index:04d}"
