"""Many schedules that mostly wait: how soon a replica is ready with them, and what they cost while they wait.

The mix: 40 % intervals of 1 to 25 hours with anchors of their own, 45 % crons (about 2,000 pairs of an expression and
one of 24 zones), 5 % lists of times, 5 % one-offs, 5 % crons with jitter and a window. They are written straight into
the database. One replica is started with none and one with all of them, one after the other; memory is what it keeps
for itself (USS), CPU its own seconds in a quiet span. *Ready* is from the start of the process until it is ready and
leads: its term begins behind all the schedules in the core's inbox, so nothing is decided before all timers are set.
With ``repeats`` the figures of the full replica are medians, and ``best_`` the best of them; ``…_of_target`` is the
median divided by the target, so 1 or less is within it.

A *change in force*: a one-off is made over HTTP, due ``AHEAD_MS`` after the request is sent; the lag is from its
nominal time to the leader's journal entry. A change that takes longer than ``AHEAD_MS`` to be in force shows as lag; so
what is reported is ``AHEAD_MS + lag``, from the request to the decision, an upper bound of the time to be in force.
"""

import asyncio
import os
import random
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import psutil
from pymongo import AsyncMongoClient

from hascheduler.embedded.children import free_port
from hascheduler.embedded.mongod import start_mongod
from hascheduler.model.instants import WallMs, format_instant
from hascheduler.model.percentiles import percentile
from hascheduler.model.schedule import JobTemplate
from hascheduler.model.schedule_documents import NewSchedule, new_schedule_document
from hascheduler.model.trigger import Cron, Interval, Once, Times, Trigger, Window

_HOUR_MS = 3_600_000
_ZONES = (
    "UTC", "Europe/London", "Europe/Paris", "Europe/Berlin", "Europe/Madrid", "Europe/Athens", "Africa/Cairo",
    "Africa/Lagos", "Africa/Casablanca", "Asia/Dubai", "Asia/Kolkata", "Asia/Kathmandu", "Asia/Shanghai", "Asia/Tokyo",
    "Australia/Sydney", "Australia/Lord_Howe", "Pacific/Auckland", "Pacific/Apia", "America/New_York",
    "America/Chicago", "America/Denver", "America/Los_Angeles", "America/Sao_Paulo", "America/St_Johns",
)  # fmt: skip
_BATCH = 5_000
_SETTLE_S = 5
_READY_LIMIT_S = 120
_NEVER_MS = 10_000
AHEAD_MS = 20
_TARGETS = {"ready_s": 6, "memory_above_empty_mb": 120, "idle_cpu_percent": 2, "change_in_force_p99_ms": 50}


async def measure_schedules(count: int, idle_s: int, changes: int, repeats: int, folder: Path) -> dict[str, Any]:
    async with start_mongod() as mongod:
        client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(mongod.uri)
        async with _replica(mongod.uri, "bench-empty", folder) as replica:
            empty = await _resting(replica, idle_s)
        schedules = client["bench-full"]["schedules"]
        documents = list(_documents(count))
        for start in range(0, count, _BATCH):
            await schedules.insert_many(documents[start : start + _BATCH], ordered=False)
        del documents
        rounds: list[dict[str, float]] = []
        for number in range(repeats):
            async with _replica(mongod.uri, "bench-full", folder) as replica:
                resting = await _resting(replica, idle_s)
                lags = await _changes(replica, client, f"soon-{number}", changes)
            rounds.append(_figures(resting, empty, lags))
        await client.close()
    medians = {name: round(median(one[name] for one in rounds), 2) for name in rounds[0]}
    return {
        "schedules": count,
        "repeats": repeats,
        "ready_empty_s": empty["ready_s"],
        "idle_cpu_empty_percent": empty["cpu_percent"],
        **medians,
        **{f"best_{name}": min(one[name] for one in rounds) for name in _TARGETS},
        **{f"{name}_of_target": round(medians[name] / target, 2) for name, target in _TARGETS.items()},
    }


def _figures(full: dict[str, float], empty: dict[str, float], lags: list[int]) -> dict[str, float]:
    return {
        "ready_s": full["ready_s"],
        "memory_mb": full["memory_mb"],
        "memory_above_empty_mb": round(full["memory_mb"] - empty["memory_mb"], 1),
        "idle_cpu_percent": full["cpu_percent"],
        "idle_cpu_above_empty_percent": round(full["cpu_percent"] - empty["cpu_percent"], 2),
        "change_in_force_p50_ms": AHEAD_MS + percentile(lags, 50),
        "change_in_force_p99_ms": AHEAD_MS + percentile(lags, 99),
    }


def _documents(count: int) -> Iterator[dict[str, Any]]:
    chance = random.Random(1)
    now = WallMs(int(time.time() * 1_000))
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


@dataclass(frozen=True, slots=True)
class _Replica:
    process: psutil.Process
    url: str
    started_at: float
    database: str


@asynccontextmanager
async def _replica(uri: str, database: str, folder: Path) -> AsyncIterator[_Replica]:
    port = free_port()
    settings = {
        "MONGODB_URI": uri, "DATABASE": database, "TRANSPORT": "mongo", "HTTP_PORT": str(port), "REPLICA_ID": "bench",
        "LIVENESS_PORT": "0",
    }  # fmt: skip
    environment = {**os.environ, **{f"HASCHEDULER_{name}": value for name, value in settings.items()}}
    with (folder / f"{database}.log").open("wb") as log:
        started_at = time.monotonic()
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "hascheduler", "serve", env=environment, stdout=log, stderr=log
        )
        try:
            yield _Replica(psutil.Process(child.pid), f"http://127.0.0.1:{port}", started_at, database)
        finally:
            child.terminate()
            await child.wait()


async def _resting(replica: _Replica, idle_s: int) -> dict[str, float]:
    """Once it is ready and leads: how long that took, and what it costs while nothing happens."""
    async with httpx.AsyncClient(base_url=replica.url, timeout=5) as http, asyncio.timeout(_READY_LIMIT_S):
        while not await _leads(http):  # noqa: ASYNC110  # another process can't tell
            await asyncio.sleep(0.02)
    ready_s = time.monotonic() - replica.started_at
    await asyncio.sleep(_SETTLE_S)
    before = replica.process.cpu_times()
    await asyncio.sleep(idle_s)
    after = replica.process.cpu_times()
    spent_s = after.user + after.system - before.user - before.system
    return {
        "ready_s": round(ready_s, 2),
        "memory_mb": round(replica.process.memory_full_info().uss / 2**20, 1),
        "cpu_percent": round(100 * spent_s / idle_s, 2),
    }


async def _leads(http: httpx.AsyncClient) -> bool:
    try:
        if (await http.get("/readyz")).status_code != 200:
            return False
        return bool((await http.get("/v1/cluster")).json()["leading"])
    except httpx.TransportError:
        return False


async def _changes(replica: _Replica, client: AsyncMongoClient[dict[str, Any]], prefix: str, changes: int) -> list[int]:
    """From each one-off's nominal time to the entry that decided it; what was never decided counts as ten seconds."""
    nominal_ms: dict[str, int] = {}
    async with httpx.AsyncClient(base_url=replica.url, timeout=5) as http:
        for number in range(changes):
            name, at_ms = f"{prefix}-{number}", int(time.time() * 1_000) + AHEAD_MS
            trigger = {"type": "once", "at": format_instant(at_ms)}
            await http.post("/v1/schedules", json={"name": name, "trigger": trigger, "job": {"definition": "log"}})
            nominal_ms[name] = at_ms
            await asyncio.sleep(0.05)
    await asyncio.sleep(2)
    lags = dict.fromkeys(nominal_ms, _NEVER_MS)
    async for entry in client[replica.database]["journal"].find({"kind": "decisions"}, ["at_ms", "decisions"]):
        for row in entry["decisions"]:
            if row[0] == "fire" and row[1] in nominal_ms:
                lags[row[1]] = max(0, entry["at_ms"] - nominal_ms[row[1]])
    return list(lags.values())
