"""Replicas and processors as processes, and who of them leads.

Each has a control folder: there a failpoint is armed and a clock is set wrong. What happened to them (when they stood
still, when they died) is written down for the evidence, under the name that their handlers sign with.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import orjson
from bson import MaxKey
from pymongo import DESCENDING
from pymongo.errors import PyMongoError

from hascheduler.embedded.children import Daemon, free_port, start_daemon
from hascheduler.model.leadership import EntryKind
from hascheduler.model.partition import shard_database, shard_name
from hascheduler.mongo.connection import Client
from tests.chaos.hosts import HERE, Host
from tests.chaos.strings import (
    BUG,
    CLOCK,
    CONTROL,
    FAILPOINT,
    FAKETIME,
    FAKETIME_OFF,
    HANG,
    LOG_TASKS,
    NAME,
    SINK,
    STREAM,
    WENT_OFF,
    Failpoint,
    faketime_environment,
)
from tests.chaos.waiting import eventually

ROOT = Path(__file__).parents[2]
HANDLERS = "tests.chaos.handlers"
ANSWER_S = 4.0
"""How long a user waits for one replica."""
_NEWEST = 100
_LOGGED_WITHIN_S = 1.0
_HOME = "default"


@dataclass(eq=False)
class Life:
    """One process, from its start to its end."""

    child: Daemon
    stopped_at: float | None = None

    @property
    def name(self) -> str:
        return self.child.name

    @property
    def url(self) -> str:
        return self.child.url

    @property
    def signature(self) -> str:
        return f"{self.name}/{self.child.pid}"

    @property
    def up(self) -> bool:
        return self.child.running


@dataclass(frozen=True)
class Place:
    """How a process reaches everything, and what is special about it."""

    mongodb_uri: str
    amqp_url: str
    host: Host = HERE
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Cluster:
    """Owner of the processes of one row. ``client`` is the harness' own way to the database, past all trouble."""

    folder: Path
    database: str
    client: Client
    settings: Mapping[str, str]
    epoch_ms: int
    bug: str = ""
    faketime: bool = False
    shards: int = 1
    """Each a database; ``database`` is the first one's, the home."""
    replicas: dict[str, Life] = field(default_factory=dict)
    processors: dict[str, Life] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)
    pauses: dict[str, list[list[float]]] = field(default_factory=dict)
    deaths: dict[str, float] = field(default_factory=dict)
    out_of_reach: set[str] = field(default_factory=set)
    """Replicas that users do not get to."""

    def __post_init__(self) -> None:
        self.http = httpx2.AsyncClient(timeout=ANSWER_S, limits=httpx2.Limits(max_connections=200))
        self.folder.mkdir(parents=True, exist_ok=True)
        self.sink = self.folder / "effects"
        self._ports: dict[str, int] = {}

    def now_s(self) -> float:
        return (time.time_ns() // 1_000_000 - self.epoch_ms) / 1_000

    @property
    def databases(self) -> list[str]:
        return [shard_database(self.database, index) for index in range(self.shards)]

    # Starting

    async def start_replica(self, name: str, *, ready: bool = True) -> Life:
        """Start it, under its old port if it ran before."""
        host = self.places[name].host
        port = self._ports.setdefault(name, free_port())
        settings = {"HASCHEDULER_REPLICA_ID": name, "HASCHEDULER_HTTP_PORT": str(port)}
        if host is not HERE:
            settings |= {
                "HASCHEDULER_HTTP_HOST": host.ip,
                "HASCHEDULER_LIVENESS_HOST": host.ip,
                "HASCHEDULER_ALLOW_UNAUTHENTICATED": "true",
            }
        if self.faketime:
            self.calm(name)
            settings |= faketime_environment(self.control(name) / FAKETIME)
        child = await self._start(name, ["serve"], settings, f"http://{host.ip}:{port}")
        life = self.replicas[name] = Life(child)
        if ready:
            await child.ready()
        return life

    async def start_processor(self, name: str, *, slots: int = 8) -> Life:
        child = await self._start(name, ["processor", HANDLERS, "--name", name, "--slots", str(slots)], {})
        life = self.processors[name] = Life(child)
        return life

    async def registered(self) -> None:
        """Wait until every processor that is up has registered."""

        async def find() -> bool:
            with suppress(PyMongoError):
                found = [
                    each["name"]
                    for database in self.databases
                    for each in await self.client[database]["processors"].find({}, {"name": True}).to_list(None)
                ]
                return set(found) >= {life.name for life in self.processors.values() if life.up}
            return False

        await eventually(find, "all processors are registered")

    async def _start(self, name: str, arguments: list[str], settings: Mapping[str, str], url: str = "") -> Daemon:
        place = self.places[name]
        self.control(name).mkdir(parents=True, exist_ok=True)
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("HASCHEDULER_")},
            "PYTHONPATH": str(ROOT),
            "HASCHEDULER_MONGODB_URI": place.mongodb_uri,
            "HASCHEDULER_DATABASE": self.database,
            "HASCHEDULER_SHARDS": str(self.shards),
            "HASCHEDULER_AMQP_URL": place.amqp_url,
            "HASCHEDULER_LOG_FORMAT": "json",
            "HASCHEDULER_DRAIN_GRACE": "5s",
            **self.settings,
            **settings,
            **place.settings,
            CONTROL: str(self.control(name)),
            SINK: str(self.sink),
            NAME: name,
        }
        if self.bug:
            environment[BUG] = self.bug
        program = [*place.host.prefix, sys.executable, "-m", "tests.chaos.serve"]
        return await start_daemon(name, arguments, self.log_of(name), environment=environment, url=url, program=program)

    def log_of(self, name: str) -> Path:
        return self.folder / "logs" / f"{name}.log"

    def control(self, name: str) -> Path:
        return self.folder / "control" / name

    # Troubling

    async def kill(self, life: Life) -> None:
        await life.child.kill()
        self.died(life)

    async def terminate(self, life: Life, limit_s: float = 20) -> None:
        await life.child.terminate(limit_s)
        self.died(life)

    def died(self, life: Life) -> None:
        self._awake(life)
        self.deaths[life.signature] = self.now_s()

    def freeze(self, life: Life) -> None:
        self.frozen(life, since_s=0)
        life.child.signal(signal.SIGSTOP)

    def frozen(self, life: Life, since_s: float = 0.5) -> None:
        """It has stopped by itself, a moment ago."""
        life.stopped_at = self.now_s()
        self.pauses.setdefault(life.signature, []).append([life.stopped_at - since_s, float("inf")])

    def thaw(self, life: Life) -> None:
        life.child.signal(signal.SIGCONT)
        self._awake(life)

    def _awake(self, life: Life) -> None:
        if life.stopped_at is not None:
            life.stopped_at = None
            self.pauses[life.signature][-1][1] = self.now_s()

    def arm(self, life: Life, failpoint: Failpoint) -> None:
        self.write_control(life.name, FAILPOINT, str(failpoint))

    def armed(self, life: Life) -> bool:
        return (self.control(life.name) / FAILPOINT).exists()

    def went_off_about(self, life: Life) -> str:
        return (self.control(life.name) / WENT_OFF).read_text()

    def set_clock(self, name: str, *, offset_ms: int = 0, rate: float = 1.0, database_ms: int = 0) -> None:
        """Its own, and by how much MongoDB's is ahead for it."""
        wrong = {"offset_ms": offset_ms, "rate": rate, "database_ms": database_ms}
        self.write_control(name, CLOCK, orjson.dumps(wrong).decode())

    def set_process_clock(self, name: str, *, offset_s: int) -> None:
        self.write_control(name, FAKETIME, f"{offset_s:+d}")

    def delay_stream(self, name: str, delay_ms: int) -> None:
        self.write_control(name, STREAM, str(delay_ms))

    def hang(self, name: str) -> None:
        self.write_control(name, HANG, "")

    def calm(self, name: str) -> None:
        """No failpoint, the right time, a stream and a loop that run."""
        for file in (FAILPOINT, CLOCK, STREAM, HANG):
            (self.control(name) / file).unlink(missing_ok=True)
        if self.faketime:
            self.write_control(name, FAKETIME, FAKETIME_OFF)

    def write_control(self, name: str, what: str, text: str) -> None:
        """At once, so that nobody reads half of it."""
        file = self.control(name) / what
        file.parent.mkdir(parents=True, exist_ok=True)
        (file.parent / f"{what}.new").write_text(text)
        (file.parent / f"{what}.new").rename(file)

    async def log_tasks(self) -> None:
        """Each process that is up and awake writes to its log where its tasks wait."""
        for life in [*self.replicas.values(), *self.processors.values()]:
            if life.up and life.stopped_at is None:
                life.child.signal(LOG_TASKS)
        await asyncio.sleep(_LOGGED_WITHIN_S)

    # Asking

    async def lease(self, shard: int = 0) -> Mapping[str, Any] | None:
        leases = self.client[self.databases[shard]]["leases"]
        with suppress(PyMongoError):
            found: Mapping[str, Any] | None = await leases.find_one({"_id": shard_name(_HOME, shard)})
            return found
        return None

    async def terms_led_by(self, life: Life) -> Mapping[int, int]:
        """The shards whose leases it holds, with their terms."""
        led = {}
        for shard in range(self.shards):
            lease = await self.lease(shard)
            if lease is not None and lease["holder"] and await self._life_of(lease["holder"], shard) is life:
                led[shard] = int(lease["term"])
        return led

    async def leader(self, *, after_term: int = 0, shard: int = 0) -> tuple[Life, int]:
        """Who leads a later term of that shard, once it has decided something in it, and the term."""

        async def find() -> tuple[Life, int] | None:
            lease = await self.lease(shard)
            if lease is None or lease["term"] <= after_term or not lease["holder"]:
                return None
            life = await self._life_of(lease["holder"], shard)
            if life is None or not life.up or life.stopped_at is not None:
                return None
            return (life, lease["term"]) if await self._has_decided(lease["term"], shard) else None

        return await eventually(find, f"a leader of shard {shard} after term {after_term}")

    async def _has_decided(self, term: int, shard: int) -> bool:
        """Whether the end of the journal has a decision of it; to search all of it would keep MongoDB from its work."""
        with suppress(PyMongoError):
            name = shard_name(_HOME, shard)
            ours = {"_id": {"$gte": {"shard": name, "seq": 0}, "$lt": {"shard": name, "seq": MaxKey()}}}
            newest = self.client[self.databases[shard]]["journal"].find(ours, {"term": True, "kind": True})
            entries = await newest.sort("_id", DESCENDING).limit(_NEWEST).to_list(None)
            return any((entry["term"], entry["kind"]) == (term, EntryKind.DECISIONS) for entry in entries)
        return False

    async def _life_of(self, replica_id: str, shard: int) -> Life | None:
        """By where it says it serves, as two may have one name."""
        with suppress(PyMongoError):
            status = await self.client[self.databases[shard]]["replicas"].find_one({"_id": replica_id})
            for life in self.replicas.values():
                if status is not None and life.url == f"http://{status['http_endpoint']}":
                    return life
        return self.replicas.get(replica_id.rpartition(".")[0])

    async def stop(self) -> None:
        """Nobody is left."""
        for life in [*self.replicas.values(), *self.processors.values()]:
            if life.up:
                await self.kill(life)
        await self.http.aclose()
