"""One replica on a database that holds a great many schedules or jobs: how soon it is ready, and what it costs.

All of it is written straight into the database, in which a replica has made the indexes before. *Ready* is from the
start of its process until it leads. *Memory* is what it keeps for itself (USS), *resident* with what it shares (RSS).

- Schedules: 40 % intervals of 1 to 25 hours, 45 % crons in 13 zones, 5 % lists of times, 5 % one-offs, 5 % crons with
  jitter and a window.
- Pending jobs: 10,000 fairness keys in 4 lanes, 100 targets a key. What a dispatch to 64 slots costs is told by the
  replica itself: the time within the core's steps, by the dispatches of that span.
"""

import asyncio
import os
import random
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import psutil
from pymongo import AsyncMongoClient

from hascheduler.client import AsyncScheduler, Unavailable
from hascheduler.demo.evidence import Effects
from hascheduler.embedded.children import Daemon, free_port, start_daemon
from hascheduler.embedded.servers import start_mongod
from hascheduler.model.documents.job import new_job_document
from hascheduler.model.documents.schedule import NewSchedule, new_schedule_document
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.schedule import JobTemplate
from hascheduler.schema.trigger import Cron, Interval, Once, Times, Trigger, Window
from tests.bench.results import Figures
from tests.bench.stacks import now_ms, own_mb, process_cpu_s, resident_mb, write_documents
from tests.factories import make_job

READY_LIMIT_S = 600
_SETTLE_S = 5
_RESTS_S = _DISPATCHING_S = 20
_ASKED_EVERY_S = 0.2


@dataclass(frozen=True, slots=True)
class LoneReplica:
    child: Daemon
    process: psutil.Process
    url: str
    started_at: float
    settings: dict[str, str]

    async def leads(self) -> float:
        """Once it is ready and leads: the seconds that took since its start."""
        asking = AsyncScheduler(self.url, patience=0, answer_timeout=READY_LIMIT_S)
        async with asking as scheduler, asyncio.timeout(READY_LIMIT_S):
            while True:
                with suppress(Unavailable):
                    cluster = await scheduler.cluster.status()
                    if cluster.ready and cluster.leading:
                        return round(time.monotonic() - self.started_at, 2)
                if not self.child.running:
                    raise RuntimeError(f"the replica has ended:\n{self.child.last_lines()}")
                # Asked fifty times a second, a tenth of what a start costs was to answer that.
                await asyncio.sleep(_ASKED_EVERY_S)

    async def rests(self, seconds: int) -> dict[str, float]:
        """What it takes while nothing happens."""
        await asyncio.sleep(_SETTLE_S)
        before_s = process_cpu_s(self.process)
        await asyncio.sleep(seconds)
        spent_s = process_cpu_s(self.process) - before_s
        return {
            "memory_mb": own_mb(self.process),
            "resident_mb": resident_mb(self.process),
            "idle_cpu_percent": round(100 * spent_s / seconds, 2),
        }

    @asynccontextmanager
    async def processor(self, handlers: Sequence[str], slots: int) -> AsyncIterator[Path]:
        """A processor on the same database, and its handlers' output."""
        arguments = ["processor", *handlers, "--slots", str(slots)]
        output = self.child.log.with_name("processor.log")
        output.unlink(missing_ok=True)
        child = await start_daemon("processor", arguments, output, environment={**os.environ, **self.settings})
        try:
            yield output
        finally:
            await asyncio.shield(child.stop())


@asynccontextmanager
async def start_lone_replica(
    uri: str,
    database: str,
    folder: Path,
    more: Mapping[str, str] | None = None,
    program: Sequence[str] = (sys.executable, "-m", "hascheduler"),
) -> AsyncIterator[LoneReplica]:
    """``more``: settings of its own."""
    port = free_port()
    settings = {
        "HASCHEDULER_MONGODB_URI": uri,
        "HASCHEDULER_DATABASE": database,
        "HASCHEDULER_TRANSPORT": "mongo",
        "HASCHEDULER_HTTP_PORT": str(port),
        "HASCHEDULER_REPLICA_ID": "bench",
        "HASCHEDULER_AUTH": "none",
        **(more or {}),
    }
    started_at = time.monotonic()
    url, log, environment = f"http://127.0.0.1:{port}", folder / f"{database}.log", {**os.environ, **settings}
    child = await start_daemon("replica", ["serve"], log, environment=environment, url=url, program=program)
    try:
        yield LoneReplica(child, psutil.Process(child.pid), url, started_at, settings)
    finally:
        await asyncio.shield(child.stop())


# Schedules that wait

_HOUR_MS = 3_600_000
_ZONES = (
    "UTC", "Europe/London", "Europe/Berlin", "Africa/Cairo", "Africa/Casablanca", "Asia/Kolkata", "Asia/Kathmandu",
    "Asia/Tokyo", "Australia/Lord_Howe", "Pacific/Apia", "America/New_York", "America/Sao_Paulo", "America/St_Johns",
)  # fmt: skip


async def measure_schedules(counts: Sequence[int], folder: Path) -> dict[str, Figures]:
    """By how many there are, the least first, and with none."""
    found: dict[str, Figures] = {}
    async with start_mongod() as mongod, AsyncMongoClient[dict[str, Any]](mongod.uri) as client:
        for count in (0, *counts):
            database = f"bench-{count}"
            async with start_lone_replica(mongod.uri, database, folder) as replica:
                await replica.leads()
            await write_documents(client[database]["schedules"], _schedule_documents(count))
            async with start_lone_replica(mongod.uri, database, folder) as replica:
                ready_s = await replica.leads()
                found[f"{count:,} schedules"] = {"ready_s": ready_s, **await replica.rests(_RESTS_S)}
            await client.drop_database(database)
    return found


def _schedule_documents(count: int) -> Iterator[dict[str, Any]]:
    chance = random.Random(1)
    now = WallMs(now_ms())
    later = now + 48 * _HOUR_MS
    crons = [_cron(chance) for _ in range(2_000)]
    for number in range(count):
        match number % 20:
            case 0:
                trigger = Trigger(Times(tuple(WallMs(later + chance.randrange(10**9) + n * 10**9) for n in range(5))))
            case 1:
                trigger = Trigger(Once(WallMs(later + chance.randrange(10**11))))
            case 2:
                window = (Window(WallMs(later), WallMs(later + _HOUR_MS)),)
                trigger = Trigger(chance.choice(crons), jitter_ms=60_000, exclude=window)
            case n if n < 12:
                trigger = Trigger(chance.choice(crons))
            case _:
                every_ms = _HOUR_MS + chance.randrange(24 * _HOUR_MS)
                trigger = Trigger(Interval(every_ms, WallMs(now + chance.randrange(every_ms))))
        name = f"schedule-{number:06d}"
        template = JobTemplate(f"definition-{number % 50}", name, "default", "default", "default", 5, "queued")
        yield new_schedule_document(NewSchedule(name, trigger, template, {"number": number}, {"team": "a"}, now))


def _cron(chance: random.Random) -> Cron:
    day, weekday = chance.choice([("*", "*"), ("*", "mon-fri"), ("1,15", "*"), ("L", "*"), ("*", "1#2")])
    return Cron(f"{chance.randrange(60)} {chance.randrange(24)} {day} * {weekday}", chance.choice(_ZONES))


# Jobs that wait

_KEYS = 10_000
_SLOTS = 64
_FIRST_PATIENCE_S = 60
_PENDING = "bench-pending"


async def measure_pending(count: int, folder: Path) -> Figures:
    async with start_mongod() as mongod:
        async with start_lone_replica(mongod.uri, _PENDING, folder) as replica:
            await replica.leads()
            empty = await replica.rests(1)
        async with AsyncMongoClient[dict[str, Any]](mongod.uri) as client:
            began = time.monotonic()
            await write_documents(client[_PENDING]["jobs"], _pending_documents(count))
            written_s = round(time.monotonic() - began)
        async with start_lone_replica(mongod.uri, _PENDING, folder) as replica:
            ready_s = await replica.leads()
            resting = await replica.rests(_RESTS_S)
            return {
                "pending": count,
                "written_in_s": written_s,
                "ready_s": ready_s,
                **resting,
                "bytes_per_job": round((resting["memory_mb"] - empty["memory_mb"]) * 2**20 / count),
                **await _dispatching(replica),
            }


async def _dispatching(replica: LoneReplica) -> Figures:
    effects = Effects()
    async with (
        httpx2.AsyncClient(base_url=replica.url, timeout=60) as http,
        replica.processor(("tests.bench.handlers",), _SLOTS) as output,
    ):
        async with asyncio.timeout(_FIRST_PATIENCE_S):
            while not effects.read([output]):  # noqa: ASYNC110  # a file does not tell
                await asyncio.sleep(0.02)
        before, began = await _read_metrics(http), time.monotonic()
        effects.all.clear()
        await asyncio.sleep(_DISPATCHING_S)
        started = len(effects.read([output]))
        after, took_s = await _read_metrics(http), time.monotonic() - began
    steps_s = after["hascheduler_core_step_seconds_sum"] - before["hascheduler_core_step_seconds_sum"]
    dispatches = 'hascheduler_decisions_total{kind="dispatch"}'
    decided = after[dispatches] - before[dispatches]
    return {
        "started_per_s": round(started / took_s),
        "decision_us": round(1e6 * steps_s / decided, 1) if decided else 0,
    }


async def _read_metrics(http: httpx2.AsyncClient) -> dict[str, float]:
    """Return each sample that the replica tells of itself by its name, with its labels as they stand in the text."""
    text = (await http.get("/metrics")).raise_for_status().text
    rows = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, _, value in rows}


def _pending_documents(count: int) -> Iterator[dict[str, Any]]:
    chance = random.Random(1)
    now = now_ms()
    for number in range(count):
        key = number % _KEYS
        yield new_job_document(
            make_job(
                f"job:{number:017x}bench",
                definition="noop",
                target=f"target-{key}-{chance.randrange(100)}",
                payload=None,
                tenant="default",
                lane=f"lane-{key % 4}",
                fairness_key=f"key-{key}",
                priority=5 if chance.random() < 0.9 else chance.randrange(11),
                labels={},
                submitted_at_ms=WallMs(now - (count - number) // 10),
            )
        )
