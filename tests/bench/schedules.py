"""Many schedules that mostly wait: how soon a replica is ready with them, and what they cost while they wait.

The mix: 40 % intervals of 1 to 25 hours with anchors of their own, 45 % crons (about 2,000 pairs of an expression and
one of 24 zones), 5 % lists of times, 5 % one-offs, 5 % crons with jitter and a window. They are written straight into
the database, in which a replica has made the indexes before. One replica is started with none and one with all of them,
one after the other. *Memory* is what it keeps for itself (USS), *resident* with what it shares (RSS), CPU its own
seconds in a quiet span.

A *change in force*: a one-off is made over HTTP, due ``AHEAD_MS`` after the request is sent; the lag is from its
nominal time to the leader's journal entry. A change that takes longer than ``AHEAD_MS`` to be in force shows as lag; so
what is reported is ``AHEAD_MS + lag``, from the request to the decision, an upper bound of the time to be in force.
One that comes too late to be a future time is refused, and counted as such.
"""

import asyncio
import random
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

from pymongo import AsyncMongoClient

from hascheduler.client import AsyncScheduler, Refused
from hascheduler.embedded.servers import start_mongod
from hascheduler.model.documents.schedule import NewSchedule, new_schedule_document
from hascheduler.model.values.instants import WallMs, format_instant
from hascheduler.schema.schedule import JobTemplate
from hascheduler.schema.trigger import Cron, Interval, Once, Times, Trigger, Window
from hascheduler.simulate.report import percentile
from tests.bench.figures import Figures
from tests.bench.lone_replica import LoneReplica, start_lone_replica
from tests.bench.stacks import now_ms, write_documents

_HOUR_MS = 3_600_000
_ZONES = (
    "UTC", "Europe/London", "Europe/Paris", "Europe/Berlin", "Europe/Madrid", "Europe/Athens", "Africa/Cairo",
    "Africa/Lagos", "Africa/Casablanca", "Asia/Dubai", "Asia/Kolkata", "Asia/Kathmandu", "Asia/Shanghai", "Asia/Tokyo",
    "Australia/Sydney", "Australia/Lord_Howe", "Pacific/Auckland", "Pacific/Apia", "America/New_York",
    "America/Chicago", "America/Denver", "America/Los_Angeles", "America/Sao_Paulo", "America/St_Johns",
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
            await write_documents(client[database]["schedules"], _documents(count))
            async with start_lone_replica(mongod.uri, database, folder) as replica:
                ready_s = await replica.leads()
                resting = await replica.rests(idle_s)
                lags, refused = await _changes(replica, client, database, changes)
            await client.drop_database(database)
            found[f"{count:,} schedules"] = {
                "ready_s": ready_s,
                **resting,
                "change_in_force_p50_ms": AHEAD_MS + percentile(lags, 50),
                "change_in_force_p99_ms": AHEAD_MS + percentile(lags, 99),
                "changes_refused": refused,
            }
    return found


def _documents(count: int) -> Iterator[dict[str, Any]]:
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


async def _changes(
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
