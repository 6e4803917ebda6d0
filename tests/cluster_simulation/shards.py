"""Several shards in trouble: each replica hosts three of them.

One seed, one story, as in `tests.cluster_simulation.run`: jobs of capped definitions come in bursts, now in one shard
and then in another, while replicas die, stand still and are cut off, and the primaries of the shards' databases are
lost. Each shard is judged by the checkers of a single one, and all of them together by the caps: at no commit do more
jobs occupy slots than a cap allows over all shards, be it divided evenly or in one shard at a time (`CapTurns`).

Meanwhile partitions of tenants move to other shards (`PartitionMover`), with their schedules, each shard in a MongoDB
of its own. Requests go through gateways that stand still now and then, so that they write, cancel and delete by an
older layout. What the mover puts and takes happens to nothing: the checkers of jobs and schedules judge all shards as
one, by all other commits, so a copy is no document until its shard does something to it. Some jobs wait for others, and
some schedules skip a time while their last job lives: both must be kept whichever shard has them at the moment.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from heapq import merge
from random import Random
from typing import Any

from hascheduler.errors import StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.documents.schedule import NewSchedule, new_schedule_document
from hascheduler.model.job import LIVE, TERMINAL, JobState, NewJob
from hascheduler.model.partition import partition_of, partition_of_key, with_partition
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import CancelAnswer
from hascheduler.processor import Handlers
from hascheduler.schema.definition import Definition
from hascheduler.schema.noun import document_of
from hascheduler.schema.schedule import CatchUp, JobTemplate, Overlap, SchedulePolicy
from hascheduler.schema.trigger import Interval, Trigger
from hascheduler.shards.layout import LAYOUT_ID, Layout, decode_layout, encode_layout
from hascheduler.testing.memory.database import Document, MemoryConnection
from hascheduler.testing.memory.jobs import MemoryJobStore
from hascheduler.testing.memory.resources import MemoryScheduleStore
from tests.checkers.evidence import Commit, Effect, Evidence, Submitted
from tests.checkers.jobs import cancels_kept, legal_moves, nothing_lost, occupies, one_effect, waited_for
from tests.checkers.leaders import decided_once, journal_fenced, lease_moves
from tests.cluster_simulation.broker import SimBroker
from tests.cluster_simulation.cluster import RETENTION_MS
from tests.cluster_simulation.database import Server, SimDatabase
from tests.cluster_simulation.faults import HOSTS, Faults
from tests.cluster_simulation.loop import EPOCH_MS, SimLoop
from tests.cluster_simulation.network import Link, Network, Remote
from tests.cluster_simulation.run import (
    TROUBLE_S,
    Result,
    Say,
    documents_of,
    obligations_of,
    peace,
    run_story,
    tell_of_lives,
)
from tests.cluster_simulation.shard_cast import CAP, Shard, ShardBugs, ShardedCluster, SimGateway
from tests.factories import make_job

SHARDS = ("default", "0001", "0002")
DEFINITIONS = (
    Definition(name="few", max_concurrency=4),
    Definition(name="single", max_concurrency=1),
    Definition(name="any"),
)
TROUBLES = (
    "kill", "kill_leader", "terminate_leader", "kill_processor", "pause", "pause_leader", "starve", "cut_from_database",
    "lossy_network", "fail_over", "slow_majority", "history_lost", "clock_rate",
)  # fmt: skip
"""The faults of a single cluster that mean something here."""
OF_EACH = (journal_fenced, lease_moves)
OF_ALL = (decided_once, legal_moves, nothing_lost, one_effect, cancels_kept)
"""These judge what may move."""
LAYOUT = Layout.even(SHARDS)
TENANTS = tuple(f"t{number}" for number in range(6))
"""Of all shards."""
SKIPPING = ("every-1", "every-3", "every-5")
"""The schedules that skip a time while an earlier job lives."""
GATEWAYS = ("client-1", "client-2")


def new_job(
    number: int,
    tenant: str,
    now_ms: WallMs,
    definition: str = "any",
    waits_for: tuple[str, ...] = (),
    *,
    batch: str | None = None,
) -> NewJob:
    return make_job(
        with_partition(f"job:{number:06}", tenant),
        definition=definition,
        target="a",
        tenant=tenant,
        submitted_at_ms=now_ms,
        batch=batch,
        depends_on=waits_for,
        waits_for=waits_for,
    )


def run_shards(seed: int, only: Sequence[str] = (), bugs: ShardBugs | None = None) -> Result:
    """As `tests.cluster_simulation.run.run_seed`."""

    def tell(loop: SimLoop, result: Result, say: Say) -> Coroutine[Any, Any, None]:
        story = ShardStory(loop, Random(f"{seed} shards"), result, say, bugs or ShardBugs())
        return story.tell(tuple(only) or TROUBLES)

    return run_story(seed, tell)


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
    candidates = 0

    def __init__(
        self, loop: SimLoop, chance: Random, result: Result, say: Callable[[str], None], bugs: ShardBugs
    ) -> None:
        self._loop = loop
        self._chance = chance
        self._result = result
        self._say = say
        network = self._network = Network(loop, chance)
        self._shards = [self._shard(name) for name in SHARDS]
        self._broker = SimBroker(network)
        home = self._shards[0].server
        self._cluster = ShardedCluster(
            loop, network, home, self._broker, self._handlers, say, bugs, self._shards, self.candidates
        )
        server: Any = _AnyServer(self._shards, chance)
        self._faults = Faults(self._cluster, network, server, self._broker, chance, say, self.hosts)
        self._links = [Link(network, shard.server, "client") for shard in self._shards]
        self._layouts = self._cluster.layouts("client")
        self._gateways = [
            SimGateway(name, LAYOUT, self._layouts, self._links[0], self._cluster.board) for name in GATEWAYS
        ]
        self._submitted = 0
        self._all = Evidence(epoch_ms=EPOCH_MS)
        """What is of all shards together."""
        self._deleted: set[str] = set()
        """The schedules whose delete was acknowledged."""
        self._doubled: list[str] = []

    def _shard(self, name: str) -> Shard:
        evidence = Evidence(epoch_ms=EPOCH_MS)

        def committed(collection: Collection, before: Document | None, after: Document | None) -> None:
            if shard.is_moving:
                what = after or before or {}
                self._say(f"{name} {'lets go' if after is None else 'gets'} {collection} {what['_id']}")
                evidence.copies.append(Commit(self._loop.now_s, collection, before, after))
                return
            evidence.commits.append(Commit(self._loop.now_s, collection, before, after))
            if collection is Collection.JOBS and after is not None:
                self._say(f"{name} commit {after['_id']} {after['state']} attempt {after['attempt']}")
            if collection in (Collection.HOLDS, Collection.ROUTING) and after is not None:
                self._say(f"{name} commit {({**after, 'partitions': '…'}) if 'partitions' in after else after}")
            if collection is Collection.HOLDS and after is not None and not after["held"]:
                self._opened(shard, partition_of_key(after["_id"]))

        shard = Shard(name, Server(self._loop, SimDatabase(committed), self._chance), evidence)
        return shard

    def _opened(self, shard: Shard, partition: int | None) -> None:
        """From now on that shard decides: what lives there must live nowhere else, but as copies of a move to come."""
        if partition is None or partition in self._layout.moving:
            return
        here = set(_live(shard, partition))
        for other in self._shards:
            if other is not shard and (doubled := here.intersection(_live(other, partition))):
                self._doubled.append(f"{sorted(doubled)} live in {shard.name}, which has been opened, and {other.name}")

    @property
    def _layout(self) -> Layout:
        """As the home has it now."""
        stored = self._shards[0].server.database.find(Collection.ROUTING, LAYOUT_ID)
        assert stored is not None
        return decode_layout(stored)

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

        for definition in DEFINITIONS:
            handlers.handler(definition.name)(work)
        return handlers

    async def tell(self, only: tuple[str, ...]) -> None:
        loop = self._loop
        background = [loop.create_task(shard.server.run()) for shard in self._shards]
        background += [loop.create_task(gateway.run()) for gateway in self._gateways]
        for shard in self._shards:
            for definition in DEFINITIONS:
                shard.server.database.insert(
                    Collection.DEFINITIONS, document_of(definition.model_copy(update={"rev": 1}))
                )
        self._shards[0].server.database.insert(Collection.ROUTING, encode_layout(LAYOUT))
        for host in self.hosts:
            self._cluster.start(host)
        for number, tenant in enumerate(TENANTS):
            schedule = self._new_schedule(f"every-{number}", tenant)
            store = MemoryScheduleStore(MemoryConnection(self._shards[LAYOUT.index_of(tenant)].server.database))
            await store.create(new_schedule_document(schedule))
            self._all.schedules[schedule.name] = schedule
        await asyncio.sleep(3)
        end_s = loop.now_s + TROUBLE_S
        await asyncio.gather(
            self._bursts(end_s), self._moves(end_s), self._deletes(end_s), self._faults.run(end_s, only)
        )
        self._faults.heal()
        for tenant in TENANTS:  # whichever shards they are in: each has its turn with the cap
            await self._submit("single", tenant)
        self._all.until_ms = EPOCH_MS + int(loop.now_s * 1_000)
        for shard in self._shards:
            shard.evidence.until_ms = self._all.until_ms
        self._say("the end is set")
        await peace(loop, self._faults, self._result, self._what_is_not_well)
        for task in background:
            task.cancel()
        self._judge()

    # What people do

    async def _bursts(self, until_s: float) -> None:
        while self._loop.now_s < until_s:
            for _ in range(self._chance.choice((1, 3, 12))):
                tenant = self._chance.choice(TENANTS)
                job = await self._submit(self._chance.choice(DEFINITIONS).name, tenant)
                what = self._chance.random()
                if job is not None and what < 0.3:
                    await self._submit("any", tenant, waits_for=(job,))
                elif job is not None and what < 0.4:
                    await self._cancel(job, tenant)
                elif job is not None and self._submitted % 3 == 0:
                    await self._submit_batch(tenant)
            await asyncio.sleep(self._chance.uniform(0.1, 1.5))

    async def _moves(self, until_s: float) -> None:
        """Now and then the partition of some tenant begins to move, and some move on at once."""
        while self._loop.now_s < until_s:
            await asyncio.sleep(self._chance.uniform(0.2, 3))
            partition, to = partition_of(self._chance.choice(TENANTS)), self._chance.randrange(len(SHARDS))
            with suppress(StoreUnavailable):
                layout = await self._layouts.get()
                if layout.is_at_rest(partition) and layout.shard_of[partition] != to:
                    await self._layouts.replace(layout.epoch, layout.beginning({partition: to}))

    async def _deletes(self, until_s: float) -> None:
        """Schedules come and go."""
        number = 0
        while self._loop.now_s < until_s:
            number += 1
            name, tenant = f"brief-{number}", self._chance.choice(TENANTS)
            document = new_schedule_document(self._new_schedule(name, tenant))
            gateway = self._chance.choice(self._gateways)

            async def create(index: int, document: Document = document) -> Any:
                return await self._schedules(index).create(document)

            async def delete(index: int, name: str = name) -> Any:
                return await self._schedules(index).delete(name)

            if await gateway.write(tenant, create):
                await asyncio.sleep(self._chance.uniform(0.1, 3))
                if await gateway.write(tenant, delete) and gateway.is_fresh:
                    self._say(f"{name} is deleted")
                    self._deleted.add(name)
            await asyncio.sleep(self._chance.uniform(0.1, 1))

    async def _submit_batch(self, tenant: str) -> None:
        """And a job that waits for it, if its jobs are where its shard looks for them."""
        batch, gateway = f"batch:{self._submitted}", self._chance.choice(self._gateways)
        if all([await self._submit("any", tenant, gateway, batch=batch) and gateway.is_fresh for _ in range(3)]):
            await self._submit("any", tenant, gateway, waits_for=(batch,))

    async def _submit(
        self, definition: str, tenant: str, gateway: SimGateway | None = None, *, batch: str | None = None,
        waits_for: tuple[str, ...] = (),
    ) -> str | None:  # fmt: skip
        """Return the id of a job that is there."""
        self._submitted += 1
        job = new_job(self._submitted, tenant, self._now(), definition, waits_for, batch=batch)
        submit = Submitted(job.id, self._loop.now_s)

        async def submitted(index: int) -> bool:
            jobs = self._shards[index].documents(Collection.JOBS)
            if not {name for job in jobs for name in (job["_id"], job.get("batch"))}.issuperset(waits_for):
                return False  # refused: by an older layout they are in another shard
            self._all.submits.append(submit)
            await self._jobs(index).submit(job)
            return True

        submit.acknowledged = bool(await (gateway or self._chance.choice(self._gateways)).write(tenant, submitted))
        return job.id if submit.acknowledged else None

    async def _cancel(self, job: str, tenant: str) -> None:
        gateway = self._chance.choice(self._gateways)
        answer = await gateway.write(tenant, lambda index: self._jobs(index).cancel(job, self._now()))
        if answer is CancelAnswer.CANCELLED and gateway.is_fresh:
            self._say(f"{job} is cancelled")
            self._all.cancels.append((job, self._loop.now_s))

    def _jobs(self, index: int) -> Any:
        connection = MemoryConnection(self._shards[index].server.database)
        return Remote(MemoryJobStore(connection, RETENTION_MS), self._links[index])

    def _schedules(self, index: int) -> Any:
        connection = MemoryConnection(self._shards[index].server.database)
        return Remote(MemoryScheduleStore(connection), self._links[index])

    def _new_schedule(self, name: str, tenant: str) -> NewSchedule:
        now = self._now()
        template = JobTemplate("any", "a", tenant, "default", "", 5, "queued")
        overlap = Overlap.SKIP if name in SKIPPING else Overlap.ALLOW
        policy = SchedulePolicy(grace_ms=3_600_000, catch_up=CatchUp.ALL, overlap=overlap)
        return NewSchedule(name, Trigger(Interval(2_000, now)), template, {}, {}, now, policy)

    def _now(self) -> WallMs:
        return WallMs(EPOCH_MS + int(self._loop.now_s * 1_000))

    # The end

    def _what_is_not_well(self) -> str:
        layout = self._layout
        if layout.moving or layout.leaving:
            return f"partitions have not arrived: {layout.moving}, or not wholly: {layout.leaving}"
        schedules = [(shard.name, each) for shard in self._shards for each in shard.documents(Collection.SCHEDULES)]
        late = [each["_id"] for _, each in schedules if (each["cursor_ms"] or 0) < self._all.until_ms]
        if late:
            return f"undecided times of {late}"
        jobs = [(shard.name, each) for shard in self._shards for each in shard.documents(Collection.JOBS)]
        astray = [
            f"{document['_id']} in {shard}"
            for shard, document in (*jobs, *schedules)
            if SHARDS[layout.index_of(document.get("tenant") or document["job"]["tenant"])] != shard
            and document.get("state") != JobState.CANCELLED  # one that came late, and had ended when it was looked for
        ]
        if astray:
            return f"in another shard than their tenants: {astray[:3]}"
        due = [(shard, job) for shard, job in jobs if (job["nominal_ms"] or 0) <= self._all.until_ms]
        live = [f"{job['_id']} of {shard}, {job['state']}" for shard, job in due if job["state"] not in TERMINAL]
        if live:
            return f"{len(live)} jobs have not ended: {live[:3]}"
        lives = self._cluster.up("r")
        led = [name for index, name in enumerate(SHARDS) if any(life.actor.leads_shard(index) for life in lives)]
        return "" if len(led) == len(SHARDS) else f"only {led} have a leader"

    def _judge(self) -> None:
        for shard in self._shards:
            evidence = shard.evidence
            tell_of_lives(evidence, self._cluster)
            evidence.documents = documents_of(shard.server.database)
            for checker in OF_EACH:
                self._found(checker.__name__, [f"{shard.name}: {text}" for text in checker(evidence)])
            lease = shard.server.database.find(Collection.LEASES, shard.name)
            self._result.figures["terms"] += lease["term"] if lease else 0
        self._judge_all()

    def _judge_all(self) -> None:
        """What may move, in all shards as in one."""
        evidence = self._all
        evidence.commits = _merged(shard.evidence.commits for shard in self._shards)
        evidence.pauses, evidence.deaths = self._shards[0].evidence.pauses, self._shards[0].evidence.deaths
        evidence.skew_ms = 1_500
        for collection in Collection:
            evidence.documents[collection] = {
                id: document for shard in self._shards for id, document in shard.evidence.documents[collection].items()
            }
        for checker in OF_ALL:
            self._found(checker.__name__, checker(evidence))
        for judged in (waited_for, skipped_while_live):
            self._found(judged.__name__, judged(evidence.of(Collection.JOBS)))
        self._found("fired_in_one_shard", fired_in_one_shard(evidence.of(Collection.JOURNAL)))
        self._found("caps_over_shards", caps_over_shards([shard.evidence for shard in self._shards]))
        self._found("live_in_one_shard", self._doubled)
        back = self._deleted & {id for id in evidence.documents[Collection.SCHEDULES] if isinstance(id, str)}
        self._found("gone_for_good", [f"{name} was deleted and is there" for name in sorted(back)])
        self._result.figures |= {
            "obligations": obligations_of(evidence),
            "effects": len(evidence.effects),
            "times caps passed on": sum(turn.rev // 2 for turn in self._cluster.turns.stored.values()),
            "changes of the layout": self._layout.epoch,
        }

    def _found(self, checker: str, found: Sequence[str]) -> None:
        if found:
            self._result.violations.setdefault(checker, []).extend(found)


def _live(shard: Shard, partition: int) -> Iterator[str]:
    """The jobs that wait or run, and the schedules."""
    for job in shard.documents(Collection.JOBS):
        if job["state"] in LIVE and partition_of(job["tenant"]) == partition:
            yield job["_id"]
    for schedule in shard.documents(Collection.SCHEDULES):
        if partition_of(schedule["job"]["tenant"]) == partition:
            yield schedule["_id"]


def _merged(commits: Iterable[Sequence[Commit]]) -> list[Commit]:
    return list(merge(*commits, key=lambda commit: commit.at_s))


def caps_over_shards(shards: Sequence[Evidence]) -> list[str]:
    """At no commit of any shard do more jobs occupy slots, in all shards together, than a cap over them allows. What is
    there again after it has ended, by a write that came late, does not run."""
    caps = {definition.name: definition.max_concurrency for definition in DEFINITIONS}
    running: dict[str, str] = {}
    ended: set[str] = set()
    wrong = []
    taken = {id(commit) for shard in shards for commit in shard.copies}
    for commit in _merged(each for shard in shards for each in (shard.commits, shard.copies)):
        if commit.collection is not Collection.JOBS:
            continue
        job = commit.after or commit.before or {}
        if commit.after is not None and commit.after["state"] in TERMINAL:
            ended.add(commit.id)
        if not occupies(commit.after) or commit.id in ended:
            running.pop(commit.id, None)
            continue
        if commit.id in running or id(commit) in taken:
            continue
        running[commit.id] = job["definition"]
        for name, cap in ((job["definition"], caps[job["definition"]]), ("", CAP)):
            count = sum(not name or each == name for each in running.values())
            if cap is not None and count > cap:
                of = f" of {name}" if name else ""
                wrong.append(f"{count} jobs{of} at {commit.at_s:.3f} s, cap {cap}: {commit.id}")
    return wrong


def skipped_while_live(commits: Iterable[Commit]) -> list[str]:
    """No job of a schedule that skips is made while an earlier one lives, in whichever shard. What is there again after
    it has ended, or in another shard too, by a write that came late, is not made: that it does not run is for
    `one_effect`."""
    ended: set[str] = set()
    live: dict[str, set[str]] = {name: set() for name in SKIPPING}
    wrong = []
    for commit in commits:
        job = commit.after or commit.before or {}
        of_schedule = live.get(job.get("schedule") or "")
        if of_schedule is None or commit.id in ended:
            continue
        if commit.before is None and (others := of_schedule - {commit.id}):
            wrong.append(f"{commit.id} was made at {commit.at_s:.3f} s, while {others} lived")
        if commit.after is not None and commit.after["state"] not in TERMINAL:
            of_schedule.add(commit.id)
        else:
            of_schedule.discard(commit.id)
            ended.add(commit.id)
    return wrong


def fired_in_one_shard(entries: Iterable[Commit]) -> list[str]:
    """Each nominal time of a schedule is decided by the leaders of one shard."""
    decided: dict[tuple[str, int], str] = {}
    wrong = []
    for entry in entries:
        if entry.after is None or entry.before is not None:
            continue
        shard = entry.after["_id"]["shard"]
        for kind, *fields in entry.after["decisions"]:
            if kind == "fire" and decided.setdefault((fields[0], fields[1]), shard) != shard:
                wrong.append(f"{fields[0]} at {fields[1]} was decided in {shard} too, at {entry.at_s:.3f} s")
    return wrong
