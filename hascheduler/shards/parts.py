"""Whether every shard keeps to its part of each cap, which a shard without partitions waits for before it gets any.

A deployment that grows ran with larger parts until now. What runs is not stopped, so a new shard could start jobs while
the others still run the whole cap. The new parts hold in every core as soon as all replicas know all shards, so what
runs too much only ends.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hascheduler.model.collection import Collection
from hascheduler.model.definition import Definition
from hascheduler.model.job import OCCUPYING
from hascheduler.mongo.connection import Database, awaited
from hascheduler.mongo.faults import faults


async def keeps_to_parts(
    shards: Sequence[Database], definitions: Mapping[str, Definition], max_concurrency: int | None
) -> bool:
    """Return whether no shard runs more jobs than its part of any cap that is divided evenly.

    A smaller cap is whole in one shard at a time, so a new shard does not have it yet.
    """
    for index, shard in enumerate(shards):
        for running, cap in _counts(await _running(shard), definitions, max_concurrency):
            part = cap // len(shards) + (index < cap % len(shards))
            if cap >= len(shards) and running > part:
                return False
    return True


def _counts(
    running: Mapping[str, int], definitions: Mapping[str, Definition], max_concurrency: int | None
) -> Iterator[tuple[int, int]]:
    """Yield how many jobs run that count against each cap, and the cap."""
    of_tier = Counter[int]()
    for name, count in running.items():
        definition = definitions.get(name, Definition(name))
        if definition.max_concurrency is not None:
            yield count, definition.max_concurrency
        if definition.tier is not None:
            of_tier[definition.tier] += count
    yield from ((count, tier) for tier, count in of_tier.items())
    if max_concurrency is not None:
        yield sum(running.values()), max_concurrency


async def _running(shard: Database) -> Mapping[str, int]:
    """Return how many jobs of each definition have a slot."""
    having_one: list[dict[str, Any]] = [
        {"$match": {"state": {"$in": sorted(OCCUPYING)}}},
        {"$sortByCount": "$definition"},
    ]
    with faults("count what runs"):
        cursor = await awaited(shard[Collection.JOBS.value].aggregate(having_one))
        return {str(each["_id"]): int(each["count"]) for each in await cursor.to_list(None)}
