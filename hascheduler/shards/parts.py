"""Whether every shard keeps to its part of each cap: a shard without partitions gets the first one only then.

A deployment that has just grown may still run the whole cap in the old shards, and nothing that runs is stopped. Every
core has the new parts once all replicas know all shards, so the excess only ends.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hascheduler.model.collection import Collection
from hascheduler.model.job import OCCUPYING
from hascheduler.mongo.connection import Database, awaited
from hascheduler.mongo.faults import faults
from hascheduler.schema.definition import Definition


async def keeps_to_parts(
    shards: Sequence[Database], definitions: Mapping[str, Definition], max_concurrency: int | None
) -> bool:
    """Return whether no shard runs more jobs than its part of any cap that is divided evenly. One shard at a time has a
    smaller cap, so a new one does not have it yet."""
    for index, shard in enumerate(shards):
        for running, cap in _counted(await _running(shard), definitions, max_concurrency):
            part = cap // len(shards) + (index < cap % len(shards))
            if cap >= len(shards) and running > part:
                return False
    return True


def _counted(
    running: Mapping[str, int], definitions: Mapping[str, Definition], max_concurrency: int | None
) -> Iterator[tuple[int, int]]:
    """Yield, for each cap, how many jobs run that count against it, and the cap."""
    of_tier = Counter[int]()
    for name, count in running.items():
        definition = definitions.get(name, Definition(name=name))
        if definition.max_concurrency is not None:
            yield count, definition.max_concurrency
        if definition.tier is not None:
            of_tier[definition.tier] += count
    yield from ((count, tier) for tier, count in of_tier.items())
    if max_concurrency is not None:
        yield sum(running.values()), max_concurrency


async def _running(shard: Database) -> Mapping[str, int]:
    """Return how many jobs of each definition have a slot."""
    with_slot: list[Any] = [{"$match": {"state": {"$in": sorted(OCCUPYING)}}}, {"$sortByCount": "$definition"}]
    with faults("count what runs"):
        cursor = await awaited(shard[Collection.JOBS.value].aggregate(with_slot))
        return {str(each["_id"]): int(each["count"]) for each in await cursor.to_list(None)}
