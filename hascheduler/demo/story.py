"""What happens when. Kills are measured from the signal to the first decision that the next term wrote down."""

import asyncio
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
from pymongo import AsyncMongoClient

from hascheduler.clock import SystemClock
from hascheduler.demo.evidence import Expectation
from hascheduler.embedded.children import Child
from hascheduler.embedded.stack import Stack
from hascheduler.errors import StoreUnavailable
from hascheduler.model.durations import parse_duration
from hascheduler.model.instants import format_instant

_TAKEOVER_LIMIT_S = 30.0
_SETTLE_LIMIT_S = 30.0
_LIVE = ["pending", "dispatched", "running"]


@dataclass(frozen=True, slots=True)
class Kill:
    """One process that was ended, and how long it took until the next term decided (None: not a leader)."""

    what: str
    at_ms: int
    takeover_ms: int | None = None


@dataclass(slots=True)
class Told:
    """What the story leaves behind for the report."""

    expectations: list[Expectation] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    until_ms: int = 0


class Story:
    def __init__(self, stack: Stack, database: str, say: Callable[[str], None]) -> None:
        self._stack = stack
        self._say = say
        self._clock = SystemClock()
        self._client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(stack.mongodb_uri, timeoutMS=5_000)
        self._database = self._client[database]
        self._told = Told()

    async def tell(self) -> Told:
        """About a minute: quiet, kill -9 the leader, SIGTERM the leader, kill -9 a processor, quiet, the end."""
        async with self._client, httpx.AsyncClient(timeout=5) as http:
            await self._create_schedules(http)
            await asyncio.sleep(8)
            await self._end_leader(signal.SIGKILL)
            await asyncio.sleep(8)
            await self._end_leader(signal.SIGTERM)
            await asyncio.sleep(7)
            await self._kill_processor()
            await asyncio.sleep(9)
            await self._finish()
        return self._told

    async def _create_schedules(self, http: httpx.AsyncClient) -> None:
        for body in _schedules(self._clock.wall_ms()):
            answer = await http.post(f"{self._any_url()}/v1/schedules", json=body)
            if answer.status_code != httpx.codes.CREATED:
                raise StoreUnavailable(f"creating a schedule was answered {answer.status_code}: {answer.text[:200]}")
            self._told.expectations.append(Expectation.of(answer.json()))
        self._say(f"created {len(self._told.expectations)} schedules over HTTP")

    async def _end_leader(self, number: signal.Signals) -> None:
        name, term = await self._leader()
        how = "kill -9" if number is signal.SIGKILL else "SIGTERM to"
        self._say(f"{how} the leader, {name} (term {term})")
        at_ms = self._clock.wall_ms()
        self._stack.replicas[name].signal(number)
        decided_ms = await self._first_decision_after(term)
        successor, next_term = await self._leader()
        took_ms = decided_ms - at_ms
        self._told.kills.append(Kill(f"{how} {name}", at_ms, took_ms))
        self._say(f"{successor} leads (term {next_term}): first decision after {took_ms} ms")
        await self._ended(self._stack.replicas[name])
        await self._stack.start_replica(name)
        await self._stack.ready(name)
        self._say(f"{name} is back and follows")

    async def _kill_processor(self) -> None:
        name, child = next(iter(self._stack.processors.items()))
        self._say(f"kill -9 {name}")
        self._told.kills.append(Kill(f"kill -9 {name}", self._clock.wall_ms()))
        child.signal(signal.SIGKILL)
        await self._ended(child)
        await self._stack.start_processor(name)
        self._say(f"{name} starts again; what it was running moves on with the next attempt")

    async def _finish(self) -> None:
        """Fix the end, let everything due by then end, and read the jobs."""
        self._told.until_ms = self._clock.wall_ms()
        self._say("the end is set; waiting for everything due by now")
        due = {"nominal_ms": {"$lte": self._told.until_ms}, "state": {"$in": _LIVE}}
        expected = {job for one in self._told.expectations for job in one.jobs_until(self._told.until_ms)}
        try:
            async with asyncio.timeout(_SETTLE_LIMIT_S):
                while True:
                    there = await self._database.jobs.count_documents({"_id": {"$in": sorted(expected)}})
                    if there == len(expected) and not await self._database.jobs.count_documents(due):
                        break
                    await asyncio.sleep(0.1)
        except TimeoutError:
            self._say("not everything ended in time")
        fields = {"state": True, "attempt": True, "attempts": True}
        async for job in self._database.jobs.find({"_id": {"$in": sorted(expected)}}, fields):
            self._told.jobs[job["_id"]] = job

    # Asking

    def _any_url(self) -> str:
        return next(self._stack.urls[name] for name, child in self._stack.replicas.items() if child.running)

    async def _leader(self) -> tuple[str, int]:
        """The leader's name and term, once there is one."""
        async with asyncio.timeout(_TAKEOVER_LIMIT_S):
            while True:
                lease = await self._database.leases.find_one({"_id": "default"})
                name = lease["holder"].rpartition(".")[0] if lease else ""
                if lease and name in self._stack.replicas:
                    return name, lease["term"]
                await asyncio.sleep(0.01)

    async def _first_decision_after(self, term: int) -> int:
        """When the first decision of a later term was written down."""
        async with asyncio.timeout(_TAKEOVER_LIMIT_S):
            while True:
                entry = await self._database.journal.find_one(
                    {"term": {"$gt": term}, "kind": "decisions"}, sort=[("_id", 1)]
                )
                if entry is not None:
                    return int(entry["at_ms"])
                await asyncio.sleep(0.01)

    async def _ended(self, child: Child) -> None:
        async with asyncio.timeout(_TAKEOVER_LIMIT_S):
            await child.wait()


def _schedules(now_ms: int) -> list[dict[str, Any]]:
    """Two dozen intervals of many lengths, some jobs that take a while, and a dozen one-offs along the way."""
    bodies: list[dict[str, Any]] = []
    for every, count in (("1s", 16), ("500ms", 4), ("2s", 2), ("3s", 2)):
        for number in range(1, count + 1):
            name = f"every-{every}-{number}"
            job = {"definition": "log", "target": name, "payload": {"message": "tick"}}
            # Spread over the interval, so that there is always something due soon.
            anchor = format_instant(now_ms + parse_duration(every) * number // count)
            bodies.append({"name": name, "trigger": {"type": "interval", "every": every, "anchor": anchor}, "job": job})
    for number in range(1, 4):
        name = f"nap-{number}"
        job = {"definition": "sleep", "target": name, "payload": {"seconds": 1.2}}
        bodies.append({"name": name, "trigger": {"type": "interval", "every": "2s"}, "job": job})
    for number in range(1, 13):
        at = format_instant(now_ms + 3_000 * number)
        bodies.append({"name": f"once-{number}", "trigger": {"type": "once", "at": at}, "job": {"definition": "log"}})
    return bodies
