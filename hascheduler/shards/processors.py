"""A processor of a deployment of several shards: it serves up to eight of them at once, and they share its slots.

::

    Processor in shard a ──┐ registration, heartbeat, queue, attempts      SlotOffers: how many slots
    Processor in shard b ──┼─► ProcessSlots: one for each handler          each registration offers
    Processor in shard c ──┘

In each shard there is a whole `Processor` with its own id, which knows of no other. What must hold:

* At most ``slots`` handlers run at once in the process. An attempt without a free slot waits for one, and is given back
  after a few seconds, as in one shard.
* A shard whose database does not answer holds up no other: attempts whose handlers have ended have no slot.
* One leader at a time counts the resources, which jobs share besides the slots: they go round, and the next shard gets
  them once all attempts have ended that came before they were withdrawn.
* Of more than `SERVED_MAX` shards a processor takes those that the fewest others serve. From time to time it also takes
  one that nobody serves. It leaves none until its end.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import structlog

from hascheduler.lifecycle import in_time
from hascheduler.model.processor import id_in_shard
from hascheduler.model.resources import NO_RESOURCES, Resources
from hascheduler.ports import Clock
from hascheduler.processor.attempts import ProcessSlots
from hascheduler.processor.health import DRAINING, NOT_REGISTERED
from hascheduler.processor.processor import Processor
from hascheduler.shards.offers import ResourceRound, ShardLoad, SlotOffers
from hascheduler.telemetry.metrics_processor import ProcessorGauges

log = structlog.get_logger(__name__)

SERVED_MAX = 8
_CHECK_EVERY_S = 1.0
_CHECKS_A_ROUND = 15

BeginInShard = Callable[[str, int, int, Resources, ProcessSlots], Processor]
"""Makes the processor of a shard from (id, shard, slots to offer at first, resources, slots of the process)."""
CountServers = Callable[[int], Awaitable[int | None]]
"""Counts the live processors of that shard that run some of the same definitions; None if it does not answer."""


@dataclass(kw_only=True)
class ManyShardProcessor:
    """Owner of the processors in the shards; `Health` of the whole process.

    ``greet`` gets all their ids with every change. `run` ends after `drain`.
    """

    id: str
    shards: Sequence[str]
    slots: int
    resources: Resources
    begin: BeginInShard
    servers: CountServers
    clock: Clock
    greet: Callable[[Collection[str]], None]

    def __post_init__(self) -> None:
        self._free = ProcessSlots(self.slots)
        self._freed = 0
        self._offers = SlotOffers(self.slots)
        self._round = ResourceRound(self.clock.mono_ms())
        self._served: dict[int, Processor] = {}
        self._draining = asyncio.Event()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            chosen = await self._chosen()
            for shard in chosen:
                self._serve(shard, tasks, offered=max(self.slots // min(len(chosen), 2), 1))
            checks = 0
            while not self._draining.is_set():
                await in_time(self._draining.wait(), _CHECK_EVERY_S)
                self._offer()
                checks += 1
                if checks % _CHECKS_A_ROUND == 0 and len(self._served) < len(self.shards):
                    await self._serve_another(tasks)

    def drain(self) -> None:
        """Begin to end in good order, in all shards."""
        self._draining.set()
        for processor in self._served.values():
            processor.drain()

    # Slots

    def _offer(self) -> None:
        freed, self._freed = self._free.freed - self._freed, self._free.freed
        loads = {
            shard: ShardLoad(processor.heartbeat.slots, processor.load, processor.take_most_load())
            for shard, processor in self._served.items()
        }
        now_ms = self.clock.mono_ms()
        offers = self._offers.next(now_ms, loads, freed=freed)
        holder = self._resource_holder(now_ms)
        for shard, processor in self._served.items():
            processor.heartbeat.offer(offers[shard], self.resources if shard == holder else NO_RESOURCES)

    def _resource_holder(self, now_ms: int) -> int | None:
        """Return the shard that is offered the resources; None while they pass to the next one."""
        shards = list(self._served)
        if not self.resources or len(shards) == 1:
            return shards[0]
        here = self._served[shards[self._round.place]]
        users = here.attempts.keys if here.health.fence.trusted or here.load else ()
        is_registered = here.heartbeat.offer_is_registered or not here.health.fence.trusted
        place = self._round.next(now_ms, len(shards), users=users, is_registered=is_registered)
        return None if place is None else shards[place]

    # Shards

    def _serve(self, shard: int, tasks: asyncio.TaskGroup, *, offered: int) -> None:
        if self._draining.is_set():
            return
        id = id_in_shard(self.id, shard)
        resources = NO_RESOURCES if self._served else self.resources
        processor = self._served[shard] = self.begin(id, shard, offered, resources, self._free)
        tasks.create_task(processor.run(), name=f"processor {id}")
        self.greet([id_in_shard(self.id, served) for served in self._served])
        log.info("serving", processor=id, shard=self.shards[shard], slots=offered)

    async def _chosen(self) -> Sequence[int]:
        shards = sorted(range(len(self.shards)), key=self._rank)
        if len(shards) <= SERVED_MAX:
            return shards
        counts = await self._counts(shards)
        return sorted(shards, key=lambda shard: counts.get(shard, 0))[:SERVED_MAX]

    async def _serve_another(self, tasks: asyncio.TaskGroup) -> None:
        """Serve one more shard, the first by rank that nobody serves."""
        left = set(range(len(self.shards))) - self._served.keys()
        counts = await self._counts(sorted(left, key=self._rank))
        unserved = [shard for shard, count in counts.items() if count == 0]
        for shard in unserved[:1]:
            self._serve(shard, tasks, offered=1)

    async def _counts(self, shards: Sequence[int]) -> dict[int, int]:
        """Return how many others serve each shard that answers."""
        counts = await asyncio.gather(*(self.servers(shard) for shard in shards))
        return {shard: count for shard, count in zip(shards, counts, strict=True) if count is not None}

    def _rank(self, shard: int) -> bytes:
        """Return the place of a shard in an order of this process's own, so that other processes begin elsewhere."""
        return blake2b(f"{self.id}/{shard}".encode("utf-8", "surrogatepass"), digest_size=8).digest()

    # Health and gauges

    @property
    def health(self) -> "ManyShardProcessor":
        return self

    def not_alive(self) -> str:
        return next((reason for each in self._served.values() if (reason := each.health.not_alive())), "")

    def not_ready(self) -> str:
        """Return "" if it is ready in one shard: if one database does not answer, the other shards are left."""
        if self._draining.is_set():
            return DRAINING
        reasons = [each.health.not_ready() for each in self._served.values()]
        return "" if "" in reasons else (reasons or [NOT_REGISTERED])[0]

    def not_leading(self) -> str:
        return "a processor never leads"

    def gauges(self) -> ProcessorGauges:
        """Return the sums over all shards, and the age of the oldest heartbeat."""
        of_all = [each.health.gauges() for each in self._served.values()]
        ages = [each.heartbeat_age_ms for each in of_all if each.heartbeat_age_ms is not None]
        return ProcessorGauges(
            running=sum(each.running for each in of_all),
            slots=self.slots,
            parked=sum(each.parked for each in of_all),
            fence_open=bool(of_all) and all(each.fence_open for each in of_all),
            heartbeat_age_ms=max(ages, default=None),
        )
