"""Several shards in trouble: each replica serves three of them.

One seed, one story, as in `tests.cluster_simulation.run`: jobs of capped definitions come in bursts, now in one shard
and then in another, while replicas die, stand still and are cut off, and the primaries of the shards' databases are
lost. Each shard is judged by the checkers of a single one, and all of them together by the caps: at no commit do more
jobs occupy slots than a cap allows over all shards. A cap that is too small to be divided goes from shard to shard, by
holds (`ShardStory._pass_on`). Meanwhile slots of tenants move to other shards, with their
schedules; requests go by a routing that may be an older one. A document that moves is the same document: the checkers
of jobs and schedules judge all shards as one. Some jobs wait for others, and some schedules skip a time while their
last job lives: both must be kept whichever shard has which of them at the moment.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import merge
from itertools import count
from random import Random
from typing import Any

from hascheduler.daemon.replica import Replica
from hascheduler.dispatch.config import PolicyConfig
from hascheduler.dispatch.decisions import Decision, Fire, Settlement
from hascheduler.dispatch.settlements import freeing, riding
from hascheduler.errors import StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.definition import Definition
from hascheduler.model.documents.definition import encode_definition
from hascheduler.model.documents.routing import ROUTING_ID, decode_routing, encode_routing
from hascheduler.model.documents.schedule import NewSchedule, new_schedule_document
from hascheduler.model.hold import Hold, definition_key
from hascheduler.model.job import TERMINAL, NewJob
from hascheduler.model.routing import Routing, slot_of, with_slot
from hascheduler.model.schedule import CatchUp, JobTemplate, Overlap, SchedulePolicy
from hascheduler.model.trigger import Interval, Trigger
from hascheduler.model.values.instants import WallMs
from hascheduler.ports.sharding import MovedDocuments, Passage
from hascheduler.processor import Handlers
from hascheduler.sharding.moves import SlotMover
from hascheduler.shards.placement import LeaderPlacement
from hascheduler.testing.memory.claims import apply_time_outcomes
from hascheduler.testing.memory.database import Document, MemoryConnection, MemoryDatabase
from hascheduler.testing.memory.jobs import MemoryJobStore
from hascheduler.testing.memory.resources import MemoryScheduleStore
from hascheduler.testing.memory.state_updates import dispatched
from tests.checkers.caps_kept import caps_kept, occupies
from tests.checkers.decided_once import decided_once
from tests.checkers.dependencies_kept import waited_for
from tests.checkers.evidence import Commit, Effect, Evidence, Submitted
from tests.checkers.journal_fenced import journal_fenced
from tests.checkers.lease_moves import lease_moves
from tests.checkers.legal_moves import legal_moves
from tests.checkers.nothing_lost import nothing_lost
from tests.checkers.one_effect import one_effect
from tests.cluster_simulation.broker import SimBroker
from tests.cluster_simulation.cluster import RETENTION_MS, Bugs, Cluster, Life
from tests.cluster_simulation.database import Server, SimDatabase
from tests.cluster_simulation.faults import HOSTS, Faults
from tests.cluster_simulation.loop import EPOCH_MS, Process, SimClock, SimLoop
from tests.cluster_simulation.network import Link, Network, Remote
from tests.cluster_simulation.parcels import ParcelBugs, SimParcels
from tests.cluster_simulation.run import PEACE_S, TROUBLE_S, Result, Say, documents_of, run_story
from tests.doubles.shards import MemoryHoldStore, MemoryRoutingStore, MemorySlotStore

SHARDS = ("default", "0001", "0002")
CAP = 7
"""On all jobs together."""
DEFINITIONS = (Definition("few", max_concurrency=4), Definition("single", max_concurrency=1), Definition("any"))
TROUBLES = (
    "kill", "kill_leader", "terminate_leader", "kill_processor", "pause", "pause_leader", "starve", "cut_from_database",
    "lossy_network", "fail_over", "slow_majority", "history_lost", "clock_rate",
)  # fmt: skip
"""The faults of a single cluster that mean something here."""
CHECKERS = {each.__name__: each for each in (caps_kept, journal_fenced, lease_moves)}
REBALANCED_MS = 3_000
ROUTING = Routing.even(SHARDS)
TENANTS = tuple(f"t{number}" for number in range(6))
"""Of all shards."""
SKIPPING = ("every-1", "every-3", "every-5")
"""The schedules that skip a time while an earlier job lives."""
OF_ALL = (decided_once, legal_moves, nothing_lost, one_effect)
"""These judge what may move."""


def new_job(
    number: int,
    tenant: str,
    now_ms: WallMs,
    definition: str = "any",
    waits_for: tuple[str, ...] = (),
    *,
    batch: str | None = None,
) -> NewJob:
    return NewJob(
        id=with_slot(f"job:{number:06}", tenant),
        definition=definition,
        target="a",
        payload={},
        tenant=tenant,
        lane="default",
        fairness_key="",
        priority=5,
        mode="queued",
        labels={},
        submitted_at_ms=now_ms,
        batch=batch,
        depends_on=waits_for,
        waits_for=waits_for,
    )


class FiresInSteps:
    """Claims whose fires are carried out as in MongoDB: slots are given back, the schedules are read, then the jobs
    inserted, as dispatched where that was decided too, and last the cursors advance. In between a slot may move."""

    def __init__(self, claims: Any) -> None:
        self._claims = claims

    async def apply(self, decisions: Sequence[Decision], at_ms: WallMs, *, majority: bool) -> list[Settlement]:
        fires = [decision for decision in decisions if isinstance(decision, Fire)]
        connection, link = self._claims._claims._connection, self._claims._link
        riders = riding(decisions)

        async def read() -> Mapping[str, Document | None]:
            async with connection.exchange("fires.read") as database:
                return {fire.schedule: database.find(Collection.SCHEDULES, fire.schedule) for fire in fires}

        async def insert(schedules: Mapping[str, Document | None]) -> None:
            aside = MemoryDatabase()
            for schedule in schedules.values():
                if schedule is not None:
                    aside.insert(Collection.SCHEDULES, schedule)
            apply_time_outcomes(aside, fires, at_ms, RETENTION_MS)
            async with connection.exchange("fires.insert") as database:
                for job in aside.documents(Collection.JOBS):
                    rider = riders.get(job["_id"])
                    claim = {} if rider is None else dispatched(job, rider.attempt, rider.processor, at_ms)
                    database.insert(Collection.JOBS, {**job, **claim, "rev": 1})

        freed = freeing(decisions)
        try:
            if fires:
                if freed:
                    first = partial(self._claims._claims.apply, freed, at_ms, majority=majority)
                    await link.call("slots.free", first, majority=False)
                schedules = await link.call("fires.read", read, majority=False)
                await link.call("fires.insert", lambda: insert(schedules), majority=False)
        except StoreUnavailable:
            return [Settlement.UNKNOWN] * len(decisions)
        settlements: list[Settlement] = await self._claims.apply(decisions, at_ms, majority=majority)
        return settlements


@dataclass
class ShardBugs(Bugs):
    """What a run has planted where slots move."""

    claims: Callable[[Any], Any] = FiresInSteps

    slots: Callable[[Any], Any] = lambda store: store
    elsewhere: frozenset[int] = frozenset()
    """The shards that are in another MongoDB."""
    parcels: ParcelBugs = field(default_factory=ParcelBugs)
    mover: Callable[[SlotMover], None] = lambda mover: None


def run_shards(seed: int, only: Sequence[str] = (), bugs: ShardBugs | None = None) -> Result:
    """As `tests.cluster_simulation.run.run_seed`. By the seed one of the shards is in another MongoDB."""

    def tell(loop: SimLoop, result: Result, say: Say) -> Coroutine[Any, Any, None]:
        sound = ShardBugs(elsewhere=frozenset({2} if seed % 3 == 2 else ()))
        story = ShardStory(loop, Random(f"{seed} shards"), result, say, bugs or sound)
        return story.tell(tuple(only) or TROUBLES)

    return run_story(seed, tell)


@dataclass
class Shard:
    """The database of a shard, and what really happened there."""

    name: str
    server: Server
    evidence: Evidence
    is_moving: bool = False
    """What is committed now goes to another shard, or comes from one: nothing happens to it."""

    @property
    def documents(self) -> Callable[[Collection], Iterator[Document]]:
        return self.server.database.documents


class SimSlots:
    """`hascheduler.ports.sharding.SlotStore`: a transaction over two databases, which a majority has or nobody."""

    def __init__(self, shards: Sequence[Shard], network: Network, host: str) -> None:
        self._shards = shards
        self._store = MemorySlotStore([MemoryConnection(shard.server.database) for shard in shards], RETENTION_MS)
        self._links = [Link(network, shard.server, host) for shard in shards]
        self._chance = network.chance

    async def move_first(self, passage: Passage, limit: int, at_ms: WallMs) -> MovedDocuments:
        return await self._moved(passage, lambda: self._store.move_first(passage, self._limit(limit), at_ms))

    async def move_rest(self, passage: Passage, limit: int, at_ms: WallMs) -> MovedDocuments:
        return await self._moved(passage, lambda: self._store.move_rest(passage, self._limit(limit), at_ms))

    async def _moved(self, passage: Passage, move: Callable[[], Coroutine[Any, Any, MovedDocuments]]) -> MovedDocuments:
        both = [self._shards[passage.source], self._shards[passage.target]]
        if self._chance.random() < 0.03:
            await asyncio.sleep(self._chance.uniform(0.5, 4))  # it was asleep, and others went on

        async def transaction() -> MovedDocuments:
            if not all(shard.server.is_up for shard in both):
                raise StoreUnavailable("there is no primary")
            for shard in both:
                shard.server.database.commit(shard.server.database.version)
            moved = await move()
            for shard in both:
                shard.is_moving = True
                shard.server.database.commit(shard.server.database.version)
                shard.is_moving = False
            return moved

        return await self._links[passage.source].call("slots", transaction)

    def _limit(self, limit: int) -> int:
        """Some at a time, so that it breaks off in between."""
        return min(limit, 3)


class _Shards:
    """One process of several replicas, each of one shard, and what runs beside them."""

    def __init__(self, replicas: Sequence[Replica], *beside: SlotMover | LeaderPlacement) -> None:
        self.replicas = replicas
        self._beside = beside

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            beside = [tasks.create_task(each.run()) for each in self._beside]
            async with asyncio.TaskGroup() as serving:
                for replica in self.replicas:
                    serving.create_task(replica.run())
            for task in beside:
                task.cancel()

    def stop(self) -> None:
        for replica in self.replicas:
            replica.stop()

    def is_out_of_touch(self) -> bool:
        return any(replica.is_out_of_touch() for replica in self.replicas)

    def leads(self) -> int:
        return sum(replica._leader.leads() for replica in self.replicas)

    def leads_shard(self, index: int) -> bool:
        return self.replicas[index]._leader.leads()

    def follows(self, index: int) -> bool:
        return index < len(self.replicas)

    @property
    def _leader(self) -> "_Shards":
        """As a life asks who leads."""
        return self


class ShardedCluster(Cluster):
    """Replicas of all shards, and a processor for each."""

    cap: int | None = CAP

    def __init__(  # noqa: PLR0917  # each is of its own type
        self,
        loop: SimLoop,
        network: Network,
        shards: Sequence[Shard],
        broker: SimBroker,
        handlers: Callable[[str], Handlers],
        say: Callable[[str], None],
        bugs: ShardBugs,
    ) -> None:
        super().__init__(loop, network, shards[0].server, broker, handlers, say, bugs)
        self._shards = shards
        self._planted = bugs

    def leader(self) -> Life | None:
        """One of those that believe that they lead some shard."""
        leading = [life for life in self.up("r") if life.actor.leads()]
        return self._network.chance.choice(leading) if leading else None

    def _replica(self, host: str, id: str, process: Process) -> Life:
        lives = [self._replica_of(index, host, id, process) for index in range(len(self._shards))]
        replicas = [life.actor for life in lives]
        clock = SimClock(self._loop, process)
        mover = self._mover(id, host, clock, replicas)
        placement = LeaderPlacement(
            [each.shard for each in replicas], lambda: replicas, name=host, clock=clock, after_ms=REBALANCED_MS
        )
        actor = _Shards(replicas, mover, placement)
        return Life(host, id, process, actor, lives[-1].source)

    def _replica_of(self, index: int, host: str, id: str, process: Process) -> Life:
        """The replica of one shard in that process."""
        shard, policy = self._shards[index], PolicyConfig(max_concurrency=self.cap)
        self._server, self._shard = shard.server, shard.name
        self._dispatch = replace(self._dispatch, part=(index, len(self._shards)), policy=policy)
        return super()._replica(host, id, process)

    def _holds(self, host: str) -> list[Any]:
        """The holds of all shards, as that host reaches them."""
        return [
            Remote(MemoryHoldStore(MemoryConnection(shard.server.database)), Link(self._network, shard.server, host))
            for shard in self._shards
        ]

    def _mover(self, id: str, host: str, clock: SimClock, known: Sequence[Any]) -> SlotMover:
        """What moves slots between the shards as they are ``known``."""
        home = MemoryConnection(self._shards[0].server.database)
        link = Link(self._network, self._shards[0].server, host)
        mover = SlotMover(
            Remote(MemoryRoutingStore(home), link),
            self._holds(host),
            known,
            SimParcels(
                self._planted.slots(SimSlots(self._shards, self._network, host)),
                self._shards,
                self._network,
                id,
                elsewhere=self._planted.elsewhere,
                retention_ms=RETENTION_MS,
                bugs=self._planted.parcels,
            ),
            clock,
        )
        self._planted.mover(mover)
        return mover

    def _processor(self, host: str, id: str, process: Process) -> Life:
        shard = self._shards[int(host[1:]) - 1]
        self._server, self._shard = shard.server, shard.name
        return super()._processor(host, id, process)


@dataclass
class _AnyServer:
    """Of the servers of all shards the one that chance hits, as the faults know a single one."""

    shards: Sequence[Shard]
    chance: Random
    _hit: Server | None = field(default=None, init=False)

    @property
    def hit(self) -> Server:
        return self._hit or self.shards[0].server

    @property
    def database(self) -> SimDatabase:
        return self.hit.database

    @property
    def lag_s(self) -> float:
        return self.hit.lag_s

    @lag_s.setter
    def lag_s(self, lag_s: float) -> None:
        self._hit = self.chance.choice(self.shards).server
        self._hit.lag_s = lag_s

    async def fail_over(self, for_s: float) -> int:
        self._hit = self.chance.choice(self.shards).server
        return await self._hit.fail_over(for_s)

    @property
    def is_up(self) -> bool:
        return self.hit.is_up

    @is_up.setter
    def is_up(self, is_up: bool) -> None:
        for shard in self.shards:
            shard.server.is_up = is_up
            shard.server.lag_s = 0.001


class ShardStory:
    """Of several shards, from the start of their ``hosts`` to the verdict."""

    hosts: Sequence[str] = HOSTS
    definitions: Sequence[Definition] = DEFINITIONS
    peace_s: float = PEACE_S

    def __init__(
        self, loop: SimLoop, chance: Random, result: Result, say: Callable[[str], None], bugs: ShardBugs
    ) -> None:
        self._loop = loop
        self._chance = chance
        self._turns = Random(chance.random())
        self._result = result
        self._say = say
        network = self._network = Network(loop, chance)
        self._shards = [self._shard(name) for name in SHARDS]
        self._broker = SimBroker(network)
        self._cluster = self._cluster_with(bugs)
        server: Any = _AnyServer(self._shards, chance)
        home = self._shards[0].evidence
        self._faults = Faults(self._cluster, network, server, self._broker, home, chance, say, hosts=self.hosts)
        self._links = [Link(network, shard.server, "client") for shard in self._shards]
        self._submitted = 0
        self._all = Evidence(epoch_ms=EPOCH_MS)
        """What is of all shards together."""
        self._old = ROUTING

    def _cluster_with(self, bugs: ShardBugs) -> "ShardedCluster":
        return ShardedCluster(self._loop, self._network, self._shards, self._broker, self._handlers, self._say, bugs)

    def _shard(self, name: str) -> Shard:
        evidence = Evidence(epoch_ms=EPOCH_MS)

        def committed(collection: Collection, before: Document | None, after: Document | None) -> None:
            if shard.is_moving:
                what = after or before or {}
                self._say(f"{name} {'lets go' if after is None else 'gets'} {collection} {what['_id']}")
                return
            evidence.commits.append(Commit(self._loop.now_s, collection, before, after))
            if collection is Collection.JOBS and after is not None:
                self._say(f"{name} commit {after['_id']} {after['state']} attempt {after['attempt']}")
            if collection is Collection.HOLDS and after is not None:
                self._say(f"{name} commit {after}")

        shard = Shard(name, Server(self._loop, SimDatabase(committed), self._chance), evidence)
        return shard

    def _handlers(self, processor: str) -> Handlers:
        handlers = Handlers()
        evidence = self._all

        async def work(job: Any) -> str:
            effect = Effect(job.id, job.attempt, processor, self._loop.now_s)
            evidence.effects.append(effect)
            try:
                took_s = self._chance.choice((0.02, 0.1, 0.3, 1.5))
                await asyncio.sleep(min(took_s, 0.1) if evidence.until_ms else took_s)
            finally:
                effect.ended_s = self._loop.now_s
            return "done"

        for definition in self.definitions:
            handlers.handler(definition.name)(work)
        return handlers

    async def tell(self, only: tuple[str, ...]) -> None:
        loop = self._loop
        background = [loop.create_task(shard.server.run()) for shard in self._shards]
        for shard in self._shards:
            for definition in self.definitions:
                shard.server.database.insert(Collection.DEFINITIONS, encode_definition(replace(definition, rev=1)))
        home = self._shards[0].server.database
        home.insert(Collection.ROUTING, encode_routing(ROUTING))
        small = [each.name for each in self.definitions if (each.max_concurrency or len(SHARDS)) < len(SHARDS)]
        background += [loop.create_task(self._pass_on(definition_key(name))) for name in small]
        for host in self.hosts:
            self._cluster.start(host)
        for number, tenant in enumerate(TENANTS):
            await self._schedule(f"every-{number}", tenant)
        await asyncio.sleep(3)
        end_s = loop.now_s + TROUBLE_S
        await asyncio.gather(self._bursts(end_s), self._moves(end_s), self._faults.run(end_s, only))
        self._faults.heal()
        self._all.until_ms = EPOCH_MS + int(loop.now_s * 1_000)
        for shard in self._shards:
            shard.evidence.until_ms = EPOCH_MS + int(loop.now_s * 1_000)
        self._say("the end is set")
        await self._peace()
        for task in background:
            task.cancel()
        self._judge()

    async def _bursts(self, until_s: float) -> None:
        while self._loop.now_s < until_s:
            await self._burst()
            await asyncio.sleep(self._chance.uniform(0.1, 1.5))

    async def _burst(self) -> None:
        for _ in range(self._chance.choice((1, 3, 12))):
            submitted = await self._submit(self._chance.choice(self.definitions).name, self._chance.choice(TENANTS))
            if submitted is not None and self._chance.random() < 0.3:
                tenant, first = submitted
                await self._submit("any", tenant, waits_for=(first,))
            elif submitted is not None and self._submitted % 3 == 0:
                await self._submit_batch(submitted[0])

    @property
    def _routing(self) -> Routing:
        """As the home has it now."""
        stored = self._shards[0].server.database.find(Collection.ROUTING, ROUTING_ID)
        assert stored is not None
        return decode_routing(stored)

    async def _moves(self, until_s: float) -> None:
        """Now and then the slot of some tenant begins to move."""
        store = Remote(MemoryRoutingStore(MemoryConnection(self._shards[0].server.database)), self._links[0])
        while self._loop.now_s < until_s:
            await asyncio.sleep(self._chance.uniform(0.5, 4))
            self._old = self._routing
            slot, to = slot_of(self._chance.choice(TENANTS)), self._chance.randrange(len(SHARDS))
            if self._old.is_at_rest(slot) and self._old.shard_of_slot[slot] != to:
                with suppress(StoreUnavailable):
                    if await store.replace(self._old.epoch, self._old.beginning({slot: to})):
                        self._say(f"slot {slot} is to move to {SHARDS[to]}")

    async def _pass_on(self, key: str) -> None:
        """Give the cap of that key, which is too small to be divided, to one shard after the other."""
        stores = [
            Remote(MemoryHoldStore(MemoryConnection(shard.server.database)), link)
            for shard, link in zip(self._shards, self._links, strict=True)
        ]
        here = 0
        for rev in count(1):
            await asyncio.sleep(self._turns.uniform(0.3, 2))
            await _insisted(partial(stores[here].put, Hold(key, rev, is_held=True)))
            await _insisted(partial(_released, stores[here], key))
            here = (here + 1) % len(stores)
            await _insisted(partial(stores[here].put, Hold(key, rev, is_held=False)))
            self._say(f"{SHARDS[here]} has the cap {key}")
            self._result.moves += 1

    async def _schedule(self, name: str, tenant: str) -> None:
        now = WallMs(EPOCH_MS + int(self._loop.now_s * 1_000))
        template = JobTemplate("any", "a", tenant, "default", "", 5, "queued")
        overlap = Overlap.SKIP if name in SKIPPING else Overlap.ALLOW
        policy = SchedulePolicy(grace_ms=3_600_000, catch_up=CatchUp.ALL, overlap=overlap)
        schedule = NewSchedule(name, Trigger(Interval(2_000, now)), template, {}, {}, now, policy)
        index = ROUTING.index_of(tenant)
        store = MemoryScheduleStore(MemoryConnection(self._shards[index].server.database))
        await store.create(new_schedule_document(schedule))
        self._all.schedules[name] = schedule

    async def _submit_batch(self, tenant: str) -> None:
        """And a job that waits for it, where its jobs are there."""
        batch = f"batch:{self._submitted}"
        members = [await self._submit("any", tenant, batch=batch) for _ in range(3)]
        if all(members):
            await self._submit("any", tenant, waits_for=(batch,))

    async def _submit(
        self, definition: str, tenant: str, waits_for: tuple[str, ...] = (), batch: str | None = None
    ) -> tuple[str, str] | None:
        """By the routing as it is, or as it was; the tenant and the id of a job that is there."""
        self._submitted += 1
        by_old = not (waits_for or batch) and self._chance.random() < 0.1
        routing = self._old if by_old else self._routing
        if not routing.is_at_rest(slot_of(tenant)):
            return None
        index = routing.index_of(tenant)
        shard, link = self._shards[index], self._links[index]
        jobs = shard.server.database.documents(Collection.JOBS)
        if not {name for job in jobs for name in (job["_id"], job.get("batch"))}.issuperset(waits_for):
            return None  # refused: they are in another shard, as one of them came by an older routing
        now_ms = WallMs(EPOCH_MS + int(self._loop.now_s * 1_000))
        job = new_job(self._submitted, tenant, now_ms, definition, waits_for, batch=batch)
        submit = Submitted(job.id, self._loop.now_s)
        self._all.submits.append(submit)
        store = Remote(MemoryJobStore(MemoryConnection(shard.server.database), RETENTION_MS), link)
        try:
            await store.submit(job)
        except StoreUnavailable as error:
            self._say(f"submit of {job.id}: {error}")
            return None
        submit.acknowledged = True
        return tenant, job.id

    async def _peace(self) -> None:
        limit_s = self._loop.now_s + self.peace_s
        trouble = ""
        while self._loop.now_s < limit_s:
            self._faults.start_missing()
            await asyncio.sleep(1.0)
            trouble = self._what_is_not_well()
            if not trouble:
                return
        self._result.violations["it_recovers"] = [f"{self.peace_s:.0f} s after everything was mended: {trouble}"]

    def _what_is_not_well(self) -> str:
        until_ms = self._all.until_ms
        live = [
            f"{job['_id']} of {shard.name}, {job['state']}"
            for shard in self._shards
            for job in shard.documents(Collection.JOBS)
            if job["state"] not in TERMINAL and (job["nominal_ms"] or 0) <= until_ms
        ]
        routing = self._routing
        underway = [each for shard in self._shards for each in shard.documents(Collection.DEPARTURES)]
        if underway:
            return f"{len(underway)} documents are still on their way: {underway[0]['_id']}"
        if routing.moving or routing.leaving:
            return f"slots have not arrived: {routing.moving}, or not wholly: {routing.leaving}"
        late = [
            schedule["_id"]
            for shard in self._shards
            for schedule in shard.documents(Collection.SCHEDULES)
            if (schedule["cursor_ms"] or 0) < until_ms
        ]
        if late:
            return f"undecided times of {late}"
        astray = [
            f"{document['_id']} in {shard.name}"
            for index, shard in enumerate(self._shards)
            for collection in (Collection.JOBS, Collection.SCHEDULES)
            for document in shard.documents(collection)
            if routing.index_of(document.get("tenant") or document["job"]["tenant"]) != index
        ]
        if astray:
            return f"in another shard than their tenants: {astray[:3]}"
        if live:
            return f"{len(live)} jobs have not ended: {live[:3]}"
        led = [
            shard.name
            for index, shard in enumerate(self._shards)
            if any(life.actor.leads_shard(index) for life in self._cluster.up("r"))
        ]
        return "" if len(led) == len(SHARDS) else f"only {led} have a leader"

    def _judge(self) -> None:
        result = self._result
        for shard in self._shards:
            evidence = shard.evidence
            for life in self._cluster.lives:
                evidence.pauses[life.id] = life.pauses
                if life.died_s is not None:
                    evidence.deaths[life.id] = life.died_s
            evidence.documents = documents_of(shard.server.database)
            for name, checker in CHECKERS.items():
                found = checker(evidence)
                if found:
                    result.violations.setdefault(name, []).extend(f"{shard.name}: {text}" for text in found)
            lease = shard.server.database.find(Collection.LEASES, shard.name)
            result.terms += lease["term"] if lease else 0
        self._judge_all()
        wrong = caps_over_shards([shard.evidence for shard in self._shards], self.definitions)
        if wrong:
            result.violations["caps_over_shards"] = wrong

    def _judge_all(self) -> None:
        """What may move, in all shards as in one."""
        evidence = self._all
        evidence.commits = list(
            merge(*(shard.evidence.commits for shard in self._shards), key=lambda commit: commit.at_s)
        )
        evidence.pauses, evidence.deaths = self._shards[0].evidence.pauses, self._shards[0].evidence.deaths
        evidence.skew_ms = 1_500
        for collection in Collection:
            evidence.documents[collection] = {
                id: document for shard in self._shards for id, document in shard.evidence.documents[collection].items()
            }
        for checker in OF_ALL:
            found = checker(evidence)
            if found:
                self._result.violations[checker.__name__] = found
        for judged in (waited_for, skipped_while_live):
            wrong = judged(evidence.of(Collection.JOBS))
            if wrong:
                self._result.violations[judged.__name__] = wrong
        self._result.obligations = len(evidence.submits) + sum(
            commit.before is None and commit.after is not None and commit.after.get("nominal_ms") is not None
            for commit in evidence.of(Collection.JOBS)
        )
        self._result.effects = len(evidence.effects)
        self._result.slots_moved = self._routing.epoch


async def _released(holds: Any, key: str) -> None:
    """Raise `StoreUnavailable` if the hold has not been released yet."""
    if not (await holds.get(key)).is_released:
        raise StoreUnavailable("not released yet")


async def _insisted(call: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """The answer, however often it takes."""
    while True:
        with suppress(StoreUnavailable):
            return await call()
        await asyncio.sleep(0.1)


def caps_over_shards(shards: Sequence[Evidence], definitions: Sequence[Definition]) -> list[str]:
    """At no commit of any shard do more jobs occupy slots, in all shards together, than a cap over them allows."""
    caps = {definition.name: definition.max_concurrency for definition in definitions}
    running: Counter[str] = Counter()
    wrong = []
    for commit in merge(*(evidence.of(Collection.JOBS) for evidence in shards), key=lambda commit: commit.at_s):
        job = commit.after or commit.before or {}
        change = occupies(commit.after) - occupies(commit.before)
        for key, cap in ((job["definition"], caps[job["definition"]]), ("", CAP)):
            running[key] += change
            if change > 0 and cap is not None and running[key] > cap:
                of = f" of {key}" if key else ""
                wrong.append(f"{running[key]} jobs{of} at {commit.at_s:.3f} s, cap {cap}: {commit.id}")
    return wrong


def skipped_while_live(commits: Iterable[Commit]) -> list[str]:
    """No job of a schedule that skips is made while an earlier one lives, in whichever shard. What is there again after
    it has ended, by a write that came late, is not made: that it does not run is for `one_effect`."""
    ended: set[str] = set()
    live: dict[str, set[str]] = {name: set() for name in SKIPPING}
    wrong = []
    for commit in commits:
        job = commit.after or commit.before or {}
        of_schedule = live.get(job.get("schedule") or "")
        if of_schedule is None or commit.id in ended:
            continue
        if commit.before is None and of_schedule:
            wrong.append(f"{commit.id} was made at {commit.at_s:.3f} s, while {of_schedule} lived")
        if commit.after is not None and commit.after["state"] not in TERMINAL:
            of_schedule.add(commit.id)
        else:
            of_schedule.discard(commit.id)
            ended.add(commit.id)
    return wrong
