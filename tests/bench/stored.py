"""One replica on a database that holds a great many schedules, jobs or shards: how soon it is ready, and what it costs.

All of it is written straight into the database, in which a replica has made the indexes before. *Ready* is from the
start of its process until it leads. *Memory* is what it keeps for itself (USS), *resident* with what it shares (RSS).

- Schedules: 40 % intervals of 1 to 25 hours, 45 % crons in 13 zones, 5 % lists of times, 5 % one-offs, 5 % crons with
  jitter and a window. A *change in force* is a one-off made over HTTP, due ``AHEAD_MS`` later: from the request to the
  leader's journal entry. One that comes too late to be a future time is refused, and counted as such.
- Pending jobs: 10,000 fairness keys in 4 lanes, 100 targets a key. *Stalls* are the longest that the loop was kept from
  turning, while it loads and while it dispatches to 64 slots. What a dispatch costs is told by the replica itself: the
  time within the core's steps, by the dispatches of that span.
- Finished jobs: 50 definitions, 20 tenants, a fifth fired by 200 schedules. A list is a page of 100 from anywhere.
- Shards: one replica is real, the others are modelled by their heartbeats, so it hosts what it would host among them.
"""

import asyncio
import os
import random
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx
import psutil
from pymongo import AsyncMongoClient

from hascheduler.api.routing.queries import place_text
from hascheduler.client import AsyncScheduler, Refused, Unavailable
from hascheduler.clock import SystemClock
from hascheduler.demo.evidence import Effects
from hascheduler.embedded.children import Daemon, free_port, start_daemon
from hascheduler.embedded.servers import start_mongod
from hascheduler.embedded.stack import Stack
from hascheduler.model.documents.job import new_job_document
from hascheduler.model.documents.schedule import NewSchedule, new_schedule_document
from hascheduler.model.job import JobState
from hascheduler.model.partition import shard_database, shard_name, with_partition
from hascheduler.model.values.instants import WallMs, format_instant
from hascheduler.mongo.connection import connect, open_database
from hascheduler.mongo.queries import job_query
from hascheduler.mongo.replicas import MongoReplicaBoard
from hascheduler.ports import JobSelection, ListPosition
from hascheduler.schema.replica import ReplicaStatus
from hascheduler.schema.schedule import JobTemplate
from hascheduler.schema.trigger import Cron, Interval, Once, Times, Trigger, Window
from hascheduler.shards.layout import Layout
from hascheduler.simulate.report import percentile
from tests.bench.http_client import HttpClient, query
from tests.bench.results import Figures
from tests.bench.stacks import now_ms, own_mb, process_cpu_s, resident_mb, write_documents
from tests.factories import make_job, make_replica

READY_LIMIT_S = 600
_SETTLE_S = 5
_ASKED_EVERY_S = 0.2


@dataclass(frozen=True, slots=True)
class LoneReplica:
    """``health_url`` is where its process answers probes, from its first moment."""

    child: Daemon
    process: psutil.Process
    url: str
    health_url: str
    started_at: float
    settings: dict[str, str]

    async def leads(self) -> float:
        """Once it is ready and leads: the seconds that took since its start."""
        asking = AsyncScheduler(self.url, patience=0, answer_timeout=READY_LIMIT_S)
        async with asking as scheduler, asyncio.timeout(READY_LIMIT_S):
            while not await _leads(scheduler):
                if not self.child.running:
                    raise RuntimeError(f"the replica has ended:\n{self.child.last_lines()}")
                # Asked fifty times a second, a tenth of what a start costs was to answer that.
                await asyncio.sleep(_ASKED_EVERY_S)
        return round(time.monotonic() - self.started_at, 2)

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
    port, health_port = free_port(), free_port()
    settings = {
        "HASCHEDULER_MONGODB_URI": uri,
        "HASCHEDULER_DATABASE": database,
        "HASCHEDULER_TRANSPORT": "mongo",
        "HASCHEDULER_HTTP_PORT": str(port),
        "HASCHEDULER_HEALTH_PORT": str(health_port),
        "HASCHEDULER_REPLICA_ID": "bench",
        "HASCHEDULER_AUTH": "none",
        **(more or {}),
    }
    started_at = time.monotonic()
    # The health port is of replicas alone; a processor that is given none of its own has none.
    environment = {**os.environ, **settings}
    child = await start_daemon(
        "replica",
        ["serve"],
        folder / f"{database}.log",
        environment=environment,
        url=f"http://127.0.0.1:{health_port}",
        program=program,
    )
    of_processors = {name: value for name, value in settings.items() if name != "HASCHEDULER_HEALTH_PORT"}
    try:
        yield LoneReplica(
            child,
            psutil.Process(child.pid),
            f"http://127.0.0.1:{port}",
            f"http://127.0.0.1:{health_port}",
            started_at,
            of_processors,
        )
    finally:
        await asyncio.shield(child.stop())


async def _leads(scheduler: AsyncScheduler) -> bool:
    try:
        cluster = await scheduler.cluster.status()
    except Unavailable:
        return False
    return cluster.ready and cluster.leading


_WATCHED_EVERY_S = 0.01


class Stalls:
    """What has been seen since it was last taken."""

    def __init__(self) -> None:
        self._longest_s = 0.0
        self._asked_at: float | None = None

    def take_ms(self) -> int:
        """The longest, with the one that may be under way; the next call tells of later ones alone."""
        waiting_s = 0.0 if self._asked_at is None else time.monotonic() - self._asked_at
        longest_s, self._longest_s = max(self._longest_s, waiting_s), 0.0
        return round(1_000 * longest_s)

    async def keep_asking(self, http: HttpClient, url: str) -> None:
        to, asked = query(url)
        while True:
            await asyncio.sleep(_WATCHED_EVERY_S)
            # Nobody answers before the process listens.
            with suppress(OSError):
                self._asked_at = time.monotonic()
                await http.send(to, asked)
                self._longest_s = max(self._longest_s, time.monotonic() - self._asked_at)
            self._asked_at = None


@asynccontextmanager
async def watched_stalls(health_url: str) -> AsyncIterator[Stalls]:
    stalls = Stalls()
    async with HttpClient(1, READY_LIMIT_S) as http:
        asking = asyncio.create_task(stalls.keep_asking(http, f"{health_url}/livez"))
        try:
            yield stalls
        finally:
            asking.cancel()
            with suppress(asyncio.CancelledError):
                await asking


# Schedules that wait

_HOUR_MS = 3_600_000
_ZONES = (
    "UTC", "Europe/London", "Europe/Berlin", "Africa/Cairo", "Africa/Casablanca", "Asia/Kolkata", "Asia/Kathmandu",
    "Asia/Tokyo", "Australia/Lord_Howe", "Pacific/Apia", "America/New_York", "America/Sao_Paulo", "America/St_Johns",
)  # fmt: skip
_NEVER_MS = 10_000
AHEAD_MS = 20


async def measure_schedules(counts: Sequence[int], idle_s: int, changes: int, folder: Path) -> dict[str, Figures]:
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
                resting = await replica.rests(idle_s)
                lags, refused = await _changes_in_force(replica, client, database, changes)
            await client.drop_database(database)
            found[f"{count:,} schedules"] = {
                "ready_s": ready_s,
                **resting,
                "change_in_force_p50_ms": AHEAD_MS + percentile(lags, 50),
                "change_in_force_p99_ms": AHEAD_MS + percentile(lags, 99),
                "changes_refused": refused,
            }
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


async def _changes_in_force(
    replica: LoneReplica, client: AsyncMongoClient[dict[str, Any]], database: str, changes: int
) -> tuple[list[int], int]:
    """From each one-off's nominal time to the entry that decided it, and how many were refused; what was accepted and
    never decided counts as ten seconds."""
    nominal_ms: dict[str, int] = {}
    async with AsyncScheduler(replica.url) as scheduler:
        for number in range(changes):
            name, at_ms = f"soon-{number}", now_ms() + AHEAD_MS
            try:
                await scheduler.schedules.create(
                    name, {"type": "once", "at": format_instant(at_ms)}, {"definition": "log"}
                )
                nominal_ms[name] = at_ms
            except Refused as refused:
                if refused.status != HTTPStatus.UNPROCESSABLE_ENTITY:
                    raise
            await asyncio.sleep(0.05)
    await asyncio.sleep(2)
    lags = dict.fromkeys(nominal_ms, _NEVER_MS)
    async for entry in client[database]["journal"].find({"kind": "decisions"}, ["at_ms", "decisions"]):
        for row in entry["decisions"]:
            if row[0] == "fire" and row[1] in nominal_ms:
                lags[row[1]] = max(0, entry["at_ms"] - nominal_ms[row[1]])
    return list(lags.values()), changes - len(nominal_ms)


# Jobs that wait

_KEYS = 10_000
_SLOTS = 64
_FIRST_PATIENCE_S = 60
_PENDING = "bench-pending"


async def measure_pending(count: int, seconds: int, folder: Path) -> Figures:
    """``seconds`` each at rest and dispatching."""
    async with start_mongod() as mongod:
        async with start_lone_replica(mongod.uri, _PENDING, folder) as replica:
            await replica.leads()
            empty = await replica.rests(1)
        async with AsyncMongoClient[dict[str, Any]](mongod.uri) as client:
            began = time.monotonic()
            await write_documents(client[_PENDING]["jobs"], _pending_documents(count))
            written_s = round(time.monotonic() - began)
        async with start_lone_replica(mongod.uri, _PENDING, folder) as replica:
            async with watched_stalls(replica.health_url) as stalls:
                ready_s = await replica.leads()
                loading_ms = stalls.take_ms()
            # Unwatched: to be asked a hundred times a second is no rest.
            resting = await replica.rests(seconds)
            return {
                "pending": count,
                "written_in_s": written_s,
                "ready_s": ready_s,
                **resting,
                "bytes_per_job": round((resting["memory_mb"] - empty["memory_mb"]) * 2**20 / count),
                "stall_loading_ms": loading_ms,
                **await _dispatching(replica, seconds),
            }


async def _dispatching(replica: LoneReplica, seconds: int) -> Figures:
    effects = Effects()
    async with (
        httpx.AsyncClient(base_url=replica.url, timeout=60) as http,
        replica.processor(("tests.bench.handlers",), _SLOTS) as output,
        watched_stalls(replica.health_url) as stalls,
    ):
        async with asyncio.timeout(_FIRST_PATIENCE_S):
            while not effects.read([output]):  # noqa: ASYNC110  # a file does not tell
                await asyncio.sleep(0.02)
        before, began = await _read_metrics(http), time.monotonic()
        effects.all.clear()
        await asyncio.sleep(seconds)
        started = len(effects.read([output]))
        after, took_s = await _read_metrics(http), time.monotonic() - began
    steps_s = after["hascheduler_core_step_seconds_sum"] - before["hascheduler_core_step_seconds_sum"]
    dispatches = 'hascheduler_decisions_total{kind="dispatch"}'
    decided = after[dispatches] - before[dispatches]
    return {
        "started_per_s": round(started / took_s),
        "decision_us": round(1e6 * steps_s / decided, 1) if decided else 0,
        "stall_dispatching_ms": stalls.take_ms(),
    }


async def _read_metrics(http: httpx.AsyncClient) -> dict[str, float]:
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


# Jobs that have ended

_AGE_MS = 6 * 86_400_000
_FILTERS: dict[str, JobSelection] = {
    "all": JobSelection(),
    "state": JobSelection(states=(JobState.FAILED,)),
    "schedule": JobSelection(schedule="schedule-7"),
    "tenant_and_state": JobSelection(states=(JobState.FAILED,), tenant="tenant-7"),
    "target": JobSelection(target="target-7"),
    "batch": JobSelection(batch="batch:7"),
}


async def measure_finished(stack: Stack, database: str, count: int, requests: int) -> dict[str, Any]:
    chance = random.Random(1)
    url = next(iter(stack.urls.values()))
    figures: dict[str, Any] = {"jobs": count, "requests_each": requests}
    async with (
        AsyncMongoClient[dict[str, Any]](stack.mongodb_uri) as client,
        httpx.AsyncClient(base_url=url, timeout=60) as http,
    ):
        jobs, began, now = client[database]["jobs"], time.monotonic(), now_ms()
        await write_documents(jobs, _finished_documents(count, chance, now))
        figures["written_in_s"] = round(time.monotonic() - began)

        def anywhere() -> int:
            return chance.randrange(count)

        figures |= await _timed("get", http, requests, lambda: f"/v1/jobs/{_id(anywhere())}")
        figures |= await _timed("why", http, requests, lambda: f"/v1/jobs/{_id(anywhere())}/why")
        for name, which in _FILTERS.items():
            asked = "&".join(f"{field}={value}" for field, value in job_query(which).items())
            figures |= await _timed(
                f"list_by_{name}", http, requests, partial(_page, asked, lambda: _place(now, anywhere(), count))
            )
    lists = [value for name, value in figures.items() if name.startswith("list_") and name.endswith("_p99_ms")]
    return {**figures, "slowest_list_p99_ms": max(lists)}


async def _timed(name: str, http: httpx.AsyncClient, requests: int, path: Callable[[], str]) -> dict[str, float]:
    took: list[int] = []
    for _ in range(requests):
        began = time.perf_counter_ns()
        (await http.get(path())).raise_for_status()
        took.append((time.perf_counter_ns() - began) // 1_000)
    return {f"{name}_p{part}_ms": round(percentile(took, part) / 1_000, 1) for part in (50, 99)}


def _page(asked: str, anywhere: Callable[[], ListPosition]) -> str:
    return "/v1/jobs?" + "&".join(filter(None, (asked, f"after={place_text(anywhere())}")))


def _id(number: int) -> str:
    return f"job:{number:017x}bench"


def _submitted_at(now: int, number: int, count: int) -> WallMs:
    return WallMs(now - _AGE_MS + number * _AGE_MS // count)


def _place(now: int, number: int, count: int) -> ListPosition:
    return ListPosition(_submitted_at(now, number, count), _id(number))


def _finished_documents(count: int, chance: random.Random, now: int) -> Iterator[dict[str, Any]]:
    keep_until = datetime.now(UTC) + timedelta(days=7)
    for number in range(count):
        at_ms = _submitted_at(now, number, count)
        tenant = f"tenant-{chance.randrange(20)}"
        job = make_job(
            _id(number),
            definition=f"definition-{chance.randrange(50)}",
            target=f"target-{chance.randrange(10_000)}",
            payload={"url": "https://example.org/a/long/enough/path", "number": number},
            tenant=tenant,
            fairness_key=tenant,
            labels={"team": "abcd"[number % 4]},
            submitted_at_ms=at_ms,
        )
        if number % 5 == 0:
            job = replace(job, schedule=f"schedule-{chance.randrange(200)}", nominal_ms=at_ms)
        if number % 10 == 1:
            job = replace(job, batch=f"batch:{chance.randrange(1_000)}")
        succeeded = chance.random() < 0.9
        attempt = {
            "processor": "processor-1.aa",
            "dispatched_at_ms": at_ms + 5,
            "started_at_ms": at_ms + 10,
            "finished_at_ms": at_ms + 1_010,
            "error": None if succeeded else "the other side did not answer",
        }
        yield {
            **new_job_document(job),
            "rev": 4,
            "state": "succeeded" if succeeded else "failed",
            **attempt,
            "attempt": 1,
            "first_started_at_ms": attempt["started_at_ms"],
            "expire_at": keep_until,
            "result": {"bytes": 1_234} if succeeded else None,
            "attempts": [{**attempt, "number": 1, "outcome": "succeeded" if succeeded else "failed"}],
        }


# Many shards

_REPLICAS = 20
_CANDIDATES = 2
_MEMORY = "bench-shards-memory"
_BEAT_S = 1.0


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """So many ``shards`` with ``jobs`` each; the replica is looked at for ``seconds`` while it rests."""

    shards: int
    jobs: int
    seconds: int

    @property
    def names(self) -> Sequence[str]:
        return [shard_name("default", index) for index in range(self.shards)]


async def measure_shards_memory(plan: MemoryPlan, folder: Path) -> dict[str, Figures]:
    few = {"HASCHEDULER_SHARDS": str(plan.shards), "HASCHEDULER_SHARD_CANDIDATES": str(_CANDIDATES)}
    every = {"HASCHEDULER_SHARDS": str(plan.shards)}
    async with start_mongod() as mongod, connect(mongod.uri) as client:
        async with modelled(client, plan), start_lone_replica(mongod.uri, _MEMORY, folder, few) as real:
            await real.leads()  # the databases are there
        await _write_pending(client, plan)
        async with modelled(client, plan), start_lone_replica(mongod.uri, _MEMORY, folder, few) as real:
            some = await _hosting(real, plan)
        async with start_lone_replica(mongod.uri, _MEMORY, folder, every) as real:
            all_of_them = await _hosting(real, plan)
    jobs = f"{plan.shards} shards with {plan.jobs:,} jobs each"
    return {
        f"{jobs}, {_CANDIDATES} candidates of {_REPLICAS} replicas": some,
        f"{jobs}, all hosted": all_of_them,
    }


async def _hosting(real: LoneReplica, plan: MemoryPlan) -> Figures:
    ready_s = await real.leads()
    resting = await real.rests(plan.seconds)
    return {**resting, "ready_s": ready_s, "hosted": await _hosted(real)}


async def _hosted(real: LoneReplica) -> int:
    async with AsyncScheduler(real.url) as scheduler:
        status: Any = await scheduler.cluster.status()
    return sum(shard["followed"] for shard in status["shards"])


@asynccontextmanager
async def modelled(client: AsyncMongoClient[Any], plan: MemoryPlan) -> AsyncIterator[None]:
    """The heartbeats of all replicas but the real one, for as long as this lasts."""
    board = MongoReplicaBoard(open_database(client, _MEMORY))
    beating = asyncio.create_task(_beat(board, modelled_replicas()), name="modelled replicas")
    try:
        yield
    finally:
        beating.cancel()
        await asyncio.wait([beating])


def modelled_replicas() -> Sequence[ReplicaStatus]:
    at_ms = SystemClock().wall_ms()
    names = [f"modelled-{number}" for number in range(1, _REPLICAS)]
    return [make_replica(f"{name}.1", name=name, beat=0, started_at_ms=at_ms) for name in names]


async def _beat(board: MongoReplicaBoard, replicas: Sequence[ReplicaStatus]) -> None:
    beat = 0
    while True:
        beat += 1
        await asyncio.gather(*(board.beat(status.model_copy(update={"beat": beat})) for status in replicas))
        await asyncio.sleep(_BEAT_S)


async def _write_pending(client: AsyncMongoClient[Any], plan: MemoryPlan) -> None:
    layout, at_ms = Layout.even(plan.names), SystemClock().wall_ms()
    for index in range(plan.shards):
        tenant = next(f"t{n}" for n in range(100_000) if layout.index_of(f"t{n}") == index)
        job = make_job(definition="nowhere", tenant=tenant, fairness_key=tenant, submitted_at_ms=at_ms)
        ids = (with_partition(f"job:{index:04d}{number:08d}", tenant) for number in range(plan.jobs))
        documents = (new_job_document(replace(job, id=id)) for id in ids)
        await write_documents(client[shard_database(_MEMORY, index)].jobs, documents)
