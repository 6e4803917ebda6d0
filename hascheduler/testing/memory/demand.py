"""Where jobs wait, in shards that are databases in memory."""

from collections import Counter
from collections.abc import Collection, Sequence

from hascheduler.errors import WorldError
from hascheduler.model.collection import Collection as Stored
from hascheduler.model.job import OCCUPYING, JobState
from hascheduler.ports import Clock
from hascheduler.ports.demand import BeatLimits, BeatWatch, Demand, Server, demand_of, readable_processors
from hascheduler.testing.memory.connection import MemoryConnection
from hascheduler.testing.memory.database import Document, MemoryDatabase


class MemoryShardDemand:
    """`hascheduler.ports.demand.ShardDemand`."""

    def __init__(self, connections: Sequence[MemoryConnection], clock: Clock, limits: BeatLimits) -> None:
        self._shards = [(connection, BeatWatch(limits)) for connection in connections]
        self._clock = clock

    async def look(
        self, definitions: frozenset[str], own: Collection[str], shards: Collection[int] | None = None
    ) -> Sequence[Demand]:
        found = []
        for index in range(len(self._shards)) if shards is None else sorted(shards):
            connection, beats = self._shards[index]
            try:
                async with connection.exchange("demand.look") as database:
                    waiting = Counter(
                        str(job["definition"])
                        for job in database.documents(Stored.JOBS)
                        if job.get("state") == JobState.PENDING and self._waits_for_a_slot(job)
                    )
                    found.append(demand_of(index, definitions, waiting, self._servers(database, beats), own))
            except WorldError:
                continue
        return found

    def _waits_for_a_slot(self, job: Document) -> bool:
        now_ms = self._clock.wall_ms()
        is_due = all((job.get(name) or 0) <= now_ms for name in ("not_before_ms", "retry_at_ms"))
        return is_due and not job.get("waits_for")

    def _servers(self, database: MemoryDatabase, beats: BeatWatch) -> Sequence[Server]:
        processors = readable_processors(database.documents(Stored.PROCESSORS))
        living = beats.living({each.id: each.beat for each in processors}, self._clock.mono_ms())
        jobs = database.documents(Stored.JOBS)
        taken = Counter(job.get("processor") for job in jobs if job.get("state") in OCCUPYING)
        return [
            Server(each.id, each.definitions, each.slots, each.slots - taken[each.id])
            for each in processors
            if each.id in living and not each.draining
        ]
