"""A processor of a deployment of several shards: it serves one at a time, and moves to where work waits.

::

    ShardDemand ─► next_shard ─► move:  the tenure here leaves   takes nothing new, finishes what runs, deregisters
                                        a tenure there begins    with the slots that are free, and more as they get so

A *tenure* is a whole `Processor` of one shard with an id of its own: registration, heartbeat, fence, queue, attempts.
So nothing of the protocol of one attempt knows that there are several shards. What has begun ends where it began,
however long it takes: an attempt that is stopped for a move might never get to its end. Meanwhile its tenure shows life
and renews its fence, and its slot is not offered in the next shard.

What must hold:

* At most ``slots`` handlers run at once, over all tenures. An attempt whose tenure is fenced runs no handler and takes
  no slot, so that a database that is down holds up its own shard alone.
* The liveness endpoint greets with the ids of all tenures that have not ended, so that no replica takes a tenure for
  dead whose attempts run.
* `drain` ends all tenures within the grace, each as a processor that serves one shard ends.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from random import randrange

import structlog

from hascheduler.model.processor import tenure_id
from hascheduler.ports import Clock
from hascheduler.ports.demand import Demand, ShardDemand
from hascheduler.ports.next_shard import (
    BARREN_MS,
    IDLE_MS,
    JITTER_MS_MAX,
    Standing,
    first_shard,
    is_due,
    is_settling,
    next_shard,
)
from hascheduler.processor.health import DRAINING
from hascheduler.processor.processor import Processor

log = structlog.get_logger(__name__)

_BEAT_S = 0.25
_LOOK_SOON_MS = 1_000
"""One that is idle, or has just started."""
_LOOK_BUSY_EVERY_MS = 5_000
"""A busy one that could go only goes where nobody is, which has waited for ten seconds."""
_SHARDS_A_S = 8
"""It asks so many shards a second; where there are more, they take turns: with their number grows the time until it
sees what waits in each, and not what all processors together ask of MongoDB."""
_LEAVING_MAX = 8
"""So many tenures may be about to end; until one has, it stays where it is."""
MOVING = "it moves to another shard, where it begins when a slot is free"

BeginTenure = Callable[[str, int, int], Processor]
"""(id, shard, slots to offer at first): a processor that serves this shard, not yet running."""


class _Tenure:
    def __init__(self, id: str, shard: int, processor: Processor, task: asyncio.Task[None], now_ms: int) -> None:
        self.id = id
        self.shard = shard
        self.processor = processor
        self.task = task
        self.since_ms = now_ms
        self._worked_at_ms = now_ms
        self._seen = 0

    def idle_since_ms(self, now_ms: int) -> int | None:
        """None: it has work. To be asked often: what came and went in between counts too."""
        taken = self.processor.taken
        if taken != self._seen or self.processor.has_work:
            self._seen, self._worked_at_ms = taken, now_ms
        return None if self.processor.has_work else self._worked_at_ms


class RoamingProcessor:
    """Owner of the tenures; ``id`` is that of the first. ``greet`` gets the ids of all with every change; in
    ``first_look_ms`` a processor that lives shows it. `run` ends after `drain`.

    It is `telemetry.health.Health` and `telemetry.metrics_processor.ProcessorState` of the whole process.
    """

    def __init__(
        self,
        *,
        id: str,
        shards: Sequence[str],
        slots: int,
        definitions: frozenset[str],
        begin: BeginTenure,
        demand: ShardDemand,
        clock: Clock,
        greet: Callable[[Collection[str]], None],
        first_look_ms: int,
        jitter_ms: Callable[[], int] = lambda: randrange(JITTER_MS_MAX),  # noqa: S311  # no secret
    ) -> None:
        self._id = id
        self._begun = 0
        self._shards = shards
        self._slots = slots
        self._definitions = definitions
        self._begin = begin
        self._demand = demand
        self._clock = clock
        self._greet = greet
        self._first_look_ms = first_look_ms
        self._new_jitter_ms = jitter_ms
        self._jitter_ms = jitter_ms()
        self._draining = asyncio.Event()
        self._here: _Tenure | None = None
        self._going_to: int | None = None
        """Where it begins when a slot is free; None where it is somewhere."""
        self._leaving: list[_Tenure] = []
        self._moved = False
        self._left_at_ms: dict[int, int] = {}
        self._barren_until_ms: dict[int, int] = {}
        self._looked_at_ms: int | None = None
        self._demands: dict[int, Demand] = {}
        """By shard, as it was seen last; without those that did not answer."""
        self._turn = self._jitter_ms
        """With which of the other shards a look begins; counted on and on."""
        self._parked_before = 0

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            self._going_to = first_shard(self._id, len(self._shards), await self._first_look())
            self._arrive(tasks)
            while not self._draining.is_set():
                await self._pause(_BEAT_S)
                self._forget_ended()
                if self._here is None:
                    self._arrive(tasks)
                elif len(self._leaving) < _LEAVING_MAX:
                    await self._consider(tasks, self._here)
            for tenure in self._tenures:
                tenure.processor.drain()

    def drain(self) -> None:
        """Begin to end in good order, wherever it is."""
        self._draining.set()
        for tenure in self._tenures:
            tenure.processor.drain()

    @property
    def shard(self) -> str | None:
        """The name of the shard that it serves; None while it moves."""
        return None if self._here is None else self._shards[self._here.shard]

    # Moving

    async def _consider(self, tasks: asyncio.TaskGroup, here: _Tenure) -> None:
        here.processor.offer(self._free)
        now_ms = self._clock.mono_ms()
        standing = self._standing(here, now_ms)
        every_ms = self._look_every_ms(now_ms, standing)
        is_early = self._looked_at_ms is not None and now_ms - self._looked_at_ms < every_ms
        if is_early or not is_due(now_ms, standing, self._jitter_ms):
            return
        asked = self._in_turn(here.shard, _SHARDS_A_S * every_ms // 1_000)
        await self._look(asked)
        to = self._better_shard(here)
        if to is not None and to not in asked:
            # It was seen some time ago, and others may have gone there since.
            asked = {here.shard, to}
            await self._look(asked)
            to = self._better_shard(here)
        if to in asked and not self._draining.is_set():
            self._leave(here, to)
            self._arrive(tasks)

    def _better_shard(self, here: _Tenure) -> int | None:
        # A look takes its time, and what came meanwhile is work too.
        now_ms = self._clock.mono_ms()
        return next_shard(now_ms, self._standing(here, now_ms), list(self._demands.values()), self._jitter_ms)

    def _standing(self, here: _Tenure, now_ms: int) -> Standing:
        return Standing(
            id=here.id,
            at=here.shard,
            since_ms=here.since_ms,
            idle_since_ms=here.idle_since_ms(now_ms),
            moved=self._moved,
            left_at_ms=self._left_at_ms,
            barren_until_ms=self._barren_until_ms,
        )

    def _look_every_ms(self, now_ms: int, standing: Standing) -> int:
        idle = standing.idle_since_ms is not None and now_ms - standing.idle_since_ms >= IDLE_MS
        is_soon = idle or is_settling(now_ms, standing, self._jitter_ms)
        return _LOOK_SOON_MS if is_soon else _LOOK_BUSY_EVERY_MS

    def _in_turn(self, here: int, count: int) -> set[int]:
        """Which shards to ask now: this one, and of the others those whose turn it is."""
        others = [shard for shard in range(len(self._shards)) if shard != here]
        taken = min(count - 1, len(others))
        asked = {others[(self._turn + number) % len(others)] for number in range(taken)}
        self._turn += taken
        return {here, *asked}

    async def _first_look(self) -> Sequence[Demand]:
        """Where processors are registered it takes ``first_look_ms``, to see whether they live."""
        everywhere = range(len(self._shards))
        await self._look(everywhere)
        if any(demand.servers for demand in self._demands.values()):
            await self._pause(self._first_look_ms / 1_000)
            await self._look(everywhere)
        return list(self._demands.values())

    async def _pause(self, seconds: float) -> None:
        """Less where it is to end."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._draining.wait()

    async def _look(self, shards: Collection[int]) -> None:
        found = await self._demand.look(self._definitions, {tenure.id for tenure in self._tenures}, shards)
        self._looked_at_ms = self._clock.mono_ms()
        for shard in shards:
            self._demands.pop(shard, None)
        self._demands |= {demand.shard: demand for demand in found}

    def _leave(self, here: _Tenure, to: int) -> None:
        now_ms = self._clock.mono_ms()
        log.info("moving", processor=here.id, shard=self._shards[here.shard], to=self._shards[to])
        waited = here.shard in self._demands and self._demands[here.shard].waiting
        if waited and not here.processor.taken:
            self._barren_until_ms[here.shard] = now_ms + BARREN_MS
        self._left_at_ms[here.shard] = now_ms
        here.processor.leave()
        self._leaving.append(here)
        self._here, self._going_to, self._moved = None, to, True
        self._jitter_ms = self._new_jitter_ms()

    def _arrive(self, tasks: asyncio.TaskGroup) -> None:
        """Begin where it is going to, if a slot is free and it is not to end."""
        if self._going_to is None or self._free < 1 or self._draining.is_set():
            return
        self._begun += 1
        id = tenure_id(self._id, self._begun)
        processor = self._begin(id, self._going_to, self._free)
        task = tasks.create_task(processor.run(), name=f"tenure {id}")
        self._here = _Tenure(id, self._going_to, processor, task, self._clock.mono_ms())
        self._going_to = None
        self._greet([tenure.id for tenure in self._tenures])
        log.info("serving", processor=id, shard=self.shard, slots=processor.offered)

    def _forget_ended(self) -> None:
        ended = [tenure for tenure in self._leaving if tenure.task.done()]
        if ended:
            self._parked_before += sum(tenure.processor.health.parked for tenure in ended)
            self._leaving = [tenure for tenure in self._leaving if tenure not in ended]
            self._greet([tenure.id for tenure in self._tenures])

    @property
    def _tenures(self) -> Sequence[_Tenure]:
        """The one that serves first."""
        return [*([] if self._here is None else [self._here]), *self._leaving]

    @property
    def _free(self) -> int:
        """The slots that no tenure that leaves has a handler in."""
        return self._slots - sum(tenure.processor.at_work for tenure in self._leaving)

    # Health and gauges

    @property
    def health(self) -> "RoamingProcessor":
        return self

    def not_alive(self) -> str:
        return next((reason for tenure in self._tenures if (reason := tenure.processor.health.not_alive())), "")

    def not_ready(self) -> str:
        if self._draining.is_set():
            return DRAINING
        return MOVING if self._here is None else self._here.processor.health.not_ready()

    def not_leading(self) -> str:
        return "a processor leads nobody"

    @property
    def running(self) -> int:
        return sum(tenure.processor.health.running for tenure in self._tenures)

    @property
    def slots(self) -> int:
        return self._slots

    @property
    def parked(self) -> int:
        return self._parked_before + sum(tenure.processor.health.parked for tenure in self._tenures)

    @property
    def fence_open(self) -> bool:
        return self._here is not None and self._here.processor.health.fence_open

    @property
    def heartbeat_age_ms(self) -> int | None:
        return None if self._here is None else self._here.processor.health.heartbeat_age_ms
