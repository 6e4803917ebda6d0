"""The stage of a row: everything that it may trouble, and the few things that it may ask for."""

import asyncio
import os
import secrets
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from bson import Timestamp

from hascheduler.schema.failover import Cause, decode_failover
from tests.chaos import zone_data
from tests.chaos.cluster import Cluster, Life, Place
from tests.chaos.evidence import Oplog
from tests.chaos.hosts import HERE, Host, Hosts, open_hosts
from tests.chaos.proxy import DatabaseLine, Line, open_database_line, open_line
from tests.chaos.row import Databases, Row
from tests.chaos.servers import OPLOG_MB, Broker, Client, Database, Mongods
from tests.chaos.shards import tenants_of
from tests.chaos.users import Load
from tests.chaos.waiting import eventually

REPLICAS = ("r1", "r2", "r3")
PROCESSORS = ("p1", "p2", "p3")
FOLLOW_EVERY_S = 0.1


@dataclass
class Servers:
    """What is kept from row to row; a row that leaves one of them in pieces is given a new one."""

    folder: Path
    mongods: Mongods | None = None
    broker: Broker | None = None

    async def one_mongod(self) -> Mongods:
        if self.mongods is None:
            self.mongods = Mongods(self.folder / "mongods")
            await self.mongods.start([HERE])
        return self.mongods

    async def one_broker(self) -> Broker:
        if self.broker is None:
            self.broker = Broker(self.folder / "broker")
            await self.broker.start()
        return self.broker

    async def stop(self) -> None:
        """Those that are asked for after that are new ones."""
        mongods, self.mongods = self.mongods, None
        broker, self.broker = self.broker, None
        if mongods is not None:
            await mongods.stop()
        if broker is not None:
            await broker.remove()


@asynccontextmanager
async def open_servers() -> AsyncIterator[Servers]:
    """In a folder that is removed afterwards, where the broker's own user may go."""
    with tempfile.TemporaryDirectory(prefix="hascheduler-chaos-") as folder:
        os.chmod(folder, 0o755)
        servers = Servers(Path(folder))
        try:
            yield servers
        finally:
            await asyncio.shield(servers.stop())


@dataclass(frozen=True, slots=True)
class Kill:
    """The moment at which the leader of a term, of that shard, was ended or troubled."""

    at_s: float
    term: int
    shard: int = 0


@dataclass
class Stage:
    """``smoke``: be short. ``kills`` are of leaders alone."""

    row: Row
    smoke: bool
    say: Callable[[str], None]
    chance: Random
    cluster: Cluster
    load: Load
    mongods: Mongods
    broker: Broker
    client: Client
    oplog: Oplog
    hosts: Hosts | None = None
    to_mongodb: dict[str, DatabaseLine] = field(default_factory=dict)
    to_rabbitmq: dict[str, Line] = field(default_factory=dict)
    kills: list[Kill] = field(default_factory=list)
    excused: list[tuple[float, float]] = field(default_factory=list)
    """Spans in which nobody could decide, as nobody was there or the store was not."""
    excused_in: dict[int, list[tuple[float, float]]] = field(default_factory=dict)
    """The same in that shard alone."""

    @property
    def database(self) -> Database:
        """That of the only shard, or of the home."""
        return self.client[self.cluster.database]

    def any_processor(self) -> Life:
        return self.cluster.processors[self.chance.choice(PROCESSORS)]

    def now_s(self) -> float:
        return self.cluster.now_s()

    def times(self, smoke: int, full: int) -> int:
        return smoke if self.smoke else full

    async def quiet(self, smoke_s: float, full_s: float) -> None:
        """Let it run."""
        await asyncio.sleep(smoke_s if self.smoke else full_s)

    def excuse(self, from_s: float, *, shard: int | None = None) -> None:
        """From then until now; in all shards, or in that one."""
        spans = self.excused if shard is None else self.excused_in.setdefault(shard, [])
        spans.append((from_s, self.now_s()))

    async def everybody_well(self) -> None:
        """All replicas and processors up, awake, with the right time, on sound lines; as after a repair."""
        for line in [*self.to_mongodb.values(), *self.to_rabbitmq.values()]:
            await line.repair()
        for life in [*self.cluster.replicas.values(), *self.cluster.processors.values()]:
            self.cluster.calm(life.name)
            if life.up and life.stopped_at is not None:
                self.cluster.thaw(life)
        await asyncio.gather(*(self.restart(name) for name in self.cluster.places))

    async def restart(self, name: str) -> None:
        """Start the processes that are down; the others go on."""
        known = self.cluster.replicas if name in REPLICAS else self.cluster.processors
        life = known.get(name)
        if life is not None and life.up:
            return
        if life is not None and life.signature not in self.cluster.deaths:
            self.cluster.died(life)
        if name in REPLICAS:
            await self.cluster.start_replica(name)
        else:
            await self.cluster.start_processor(name)

    async def leader(self, *, after_term: int = 0, shard: int = 0) -> tuple[Life, int]:
        return await self.cluster.leader(after_term=after_term, shard=shard)

    async def failover_cause(self) -> Cause:
        """Return how the lease became free that the next term after the last kill began with, by its report."""
        later = {"_id": {"$gt": {"shard": "default", "term": self.kills[-1].term}}}

        async def find() -> Cause | None:
            document = await self.database["failovers"].find_one(later, sort=[("_id", 1)])
            return None if document is None else decode_failover(document).cause

        return await eventually(find, f"the report of the term after {self.kills[-1].term}")

    async def overtake(self, trouble: Callable[[Life], Awaitable[object] | None], shard: int = 0) -> Life:
        """``trouble`` the leader of that shard until others lead all that it led."""
        leader, term = await self.leader(shard=shard)
        led = {shard: term, **await self.cluster.terms_led_by(leader)} if self.row.shards > 1 else {shard: term}
        at_s = self.now_s()
        troubled = trouble(leader)
        if troubled is not None:
            await troubled
        self.kills += [Kill(at_s, of_term, lost) for lost, of_term in led.items()]
        for lost, of_term in led.items():
            await self.leader(after_term=of_term, shard=lost)
        return leader

    async def lose_leader(self, end: Callable[[Life], Awaitable[object]], shard: int = 0) -> None:
        """``end`` the leader of that shard; it starts again when others lead all that it led."""
        await self.restart((await self.overtake(end, shard)).name)

    async def follow(self) -> None:
        """Read the oplog again and again, before it is gone."""
        while True:
            await self.oplog.read()
            await asyncio.sleep(FOLLOW_EVERY_S)


@asynccontextmanager
async def open_stage(
    row: Row, servers: Servers, folder: Path, *, smoke: bool, seed: int, bug: str, say: Callable[[str], None]
) -> AsyncIterator[Stage]:
    """A running system for ``row``: its servers, three replicas, three processors, and users that submit."""
    chance = Random(f"{seed} {row.name}")
    async with AsyncExitStack() as open_things:
        broker = await servers.one_broker()
        hosts = await open_things.enter_async_context(open_hosts(3)) if row.hosts else None
        if row.databases is Databases.ONE:
            mongods = await servers.one_mongod()
        else:
            mongods = Mongods(
                folder / "mongods",
                oplog_mb=1 if row.databases is Databases.TINY else OPLOG_MB,
                small_disk=row.databases is Databases.SMALL_DISK,
            )
            open_things.push_async_callback(mongods.stop)
            count = 3 if row.databases is Databases.THREE else 1
            await mongods.start(hosts.all if hosts else [HERE] * count)
        client = mongods.client()
        open_things.push_async_callback(client.close)
        database = f"chaos-{secrets.token_hex(4)}"
        since: Timestamp = (await client.admin.command("ping"))["operationTime"]
        epoch_ms = time.time_ns() // 1_000_000
        cluster = Cluster(
            folder, database, client, row.settings, epoch_ms, bug, faketime=row.faketime, shards=row.shards
        )
        open_things.push_async_callback(cluster.stop)
        load = Load(cluster, row.load, chance, tenants_of(row.shards))
        oplog = Oplog(client, database, since, epoch_ms, cluster.databases[1:])
        stage = Stage(row, smoke, say, chance, cluster, load, mongods, broker, client, oplog, hosts)
        await _give_places(stage, open_things)
        await asyncio.gather(*(cluster.start_replica(name) for name in REPLICAS))
        await asyncio.gather(*(cluster.start_processor(name) for name in PROCESSORS))
        await cluster.registered()
        try:
            yield stage
        finally:
            await asyncio.shield(_leave(stage))


async def _give_places(stage: Stage, open_things: AsyncExitStack) -> None:
    broker, mongods, hosts = stage.broker, stage.mongods, stage.hosts
    at = "127.0.0.1" if hosts is None else hosts.gateway
    for number, name in enumerate(REPLICAS + PROCESSORS):
        host: Host = HERE if hosts is None else hosts.all[number % 3]
        mongodb_uri, amqp_url = mongods.uri, broker.url
        if stage.row.lines:
            member = mongods.members[0]
            mongodb_line = stage.to_mongodb[name] = await open_database_line(member.host.ip, member.port)
            open_things.push_async_callback(mongodb_line.close)
            # Past what the member says of its own address, which would lead round the line.
            mongodb_uri = f"mongodb://127.0.0.1:{mongodb_line.port}/?directConnection=true"
        if stage.row.lines or hosts is not None:
            line = stage.to_rabbitmq[name] = await open_line("127.0.0.1", broker.port, at=at)
            open_things.push_async_callback(line.close)
            amqp_url = f"amqp://guest:guest@{at}:{line.port}/"
        settings = zone_data.settings_of(name, stage.cluster.folder) if stage.row.zone_data else {}
        stage.cluster.places[name] = Place(mongodb_uri, amqp_url, host, settings)


async def _leave(stage: Stage) -> None:
    await stage.cluster.stop()
    with suppress(Exception):
        async with asyncio.timeout(10):
            for database in stage.cluster.databases:
                await stage.client.drop_database(database)
