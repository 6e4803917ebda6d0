"""What happens when. Takeovers are measured from the signal to the first decision that the next term wrote down."""

import asyncio
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from hascheduler.clock import SystemClock
from hascheduler.demo.cast import schedule_bodies
from hascheduler.demo.evidence import Expectation
from hascheduler.embedded.children import Child
from hascheduler.embedded.stack import Stack
from hascheduler.errors import StoreUnavailable
from hascheduler.mongo.connection import Database
from hascheduler.mongo.faults import faults, translated

_PATIENCE_S = 30.0
_BUSY_PATIENCE_S = 5.0
_LIVE = ["pending", "dispatched", "running"]


@dataclass(frozen=True, slots=True)
class Kill:
    """One process that was ended, and how long it took until the next term decided (None: not a leader)."""

    what: str
    at_ms: int
    takeover_ms: int | None = None


@dataclass(slots=True)
class Told:
    """What has been told so far; the story fills it, the view and the report read it."""

    expectations: list[Expectation] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)
    killed_processors: set[str] = field(default_factory=set)
    """Their ids, which are unique per process start."""
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    until_ms: int | None = None
    """Set at the end: what is due by then is held against what happened."""


class Story:
    def __init__(self, stack: Stack, database: Database, say: Callable[[str], None], told: Told) -> None:
        self._stack = stack
        self._say = say
        self._clock = SystemClock()
        self._database = database
        self._told = told

    async def tell(self) -> None:
        """About a minute: quiet, kill -9 the leader, SIGTERM the leader, kill -9 a processor, quiet, the end."""
        with translated("telling the story"):
            await self._entry({"kind": "term_began"})
            await self._create_schedules()
            await asyncio.sleep(8)
            await self._end_leader(signal.SIGKILL)
            await asyncio.sleep(8)
            await self._end_leader(signal.SIGTERM)
            await asyncio.sleep(7)
            await self._kill_processor()
            await asyncio.sleep(9)
            await self._finish()

    async def _create_schedules(self) -> None:
        async with httpx.AsyncClient(timeout=5) as http:
            for body in schedule_bodies(self._clock.wall_ms()):
                url = f"{self._any_url()}/v1/schedules"
                try:
                    answer = await http.post(url, json=body)
                except httpx.TransportError as error:
                    raise StoreUnavailable(f"POST {url}: {type(error).__name__}") from error
                if answer.status_code != httpx.codes.CREATED:
                    raise StoreUnavailable(f"POST {url} was answered {answer.status_code}: {answer.text[:200]}")
                self._told.expectations.append(Expectation.of(answer.json()))
        self._say(f"created {len(self._told.expectations)} schedules over HTTP")

    async def _end_leader(self, number: signal.Signals) -> None:
        name, term = await self._leader()
        how = "kill -9" if number is signal.SIGKILL else "SIGTERM to"
        self._say(f"{how} the leader, {name} (term {term})")
        at_ms = self._clock.wall_ms()
        self._stack.replicas[name].signal(number)
        entry = await self._entry({"term": {"$gt": term}, "kind": "decisions"})
        successor, next_term = await self._leader()
        took_ms = int(entry["at_ms"]) - at_ms
        self._told.kills.append(Kill(f"{how} {name} (leader)", at_ms, took_ms))
        self._say(f"{successor} leads (term {next_term}): first decision after {took_ms} ms")
        await _ended(self._stack.replicas[name])
        await self._stack.start_replica(name)
        await self._stack.ready(name)
        self._say(f"{name} is back and follows")

    async def _kill_processor(self) -> None:
        id = await self._busiest_processor()
        name = id.rpartition(".")[0]
        child = self._stack.processors[name]
        self._say(f"kill -9 {name}, which is at work")
        self._told.kills.append(Kill(f"kill -9 {name}", self._clock.wall_ms()))
        self._told.killed_processors.add(id)
        child.signal(signal.SIGKILL)
        await _ended(child)
        await self._stack.start_processor(name)
        self._say(f"{name} starts again; what it was running moves on with the next attempt")

    async def _finish(self) -> None:
        """Fix the end, let everything due by then end, and read the jobs."""
        until_ms = self._clock.wall_ms()
        self._told.until_ms = until_ms
        self._say("the end is set; waiting for everything that was due by now")
        expected = sorted({job for one in self._told.expectations for job in one.jobs_until(until_ms)})
        ours = {"_id": {"$in": expected}}
        try:
            async with asyncio.timeout(_PATIENCE_S):
                while True:
                    there = await self._database["jobs"].count_documents(ours)
                    live = await self._database["jobs"].count_documents({**ours, "state": {"$in": _LIVE}})
                    if there == len(expected) and not live:
                        break
                    await asyncio.sleep(0.1)
        except TimeoutError:
            self._say("not everything ended in time")
        with faults("reading the jobs"):
            async for job in self._database["jobs"].find(ours, {"state": True, "attempt": True, "attempts": True}):
                self._told.jobs[job["_id"]] = job

    # Asking

    def _any_url(self) -> str:
        return next(self._stack.urls[name] for name, child in self._stack.replicas.items() if child.running)

    async def _leader(self) -> tuple[str, int]:
        """The leader's name and term, once there is one."""
        async with asyncio.timeout(_PATIENCE_S):
            while True:
                lease = await self._database["leases"].find_one({"_id": "default"})
                name = lease["holder"].rpartition(".")[0] if lease else ""
                if lease and name in self._stack.replicas:
                    return name, lease["term"]
                await asyncio.sleep(0.01)

    async def _entry(self, which: dict[str, Any]) -> dict[str, Any]:
        """The first of those journal entries, once it is written."""
        async with asyncio.timeout(_PATIENCE_S):
            while True:
                entry = await self._database["journal"].find_one(which, sort=[("_id", 1)])
                if entry is not None:
                    return entry
                await asyncio.sleep(0.01)

    async def _busiest_processor(self) -> str:
        """The id of the processor that runs most, once one runs something; any, if none does for a while."""
        running: list[dict[str, Any]] = [{"$match": {"state": "running"}}, {"$sortByCount": "$processor"}]
        try:
            async with asyncio.timeout(_BUSY_PATIENCE_S):
                while True:
                    async for group in await self._database["jobs"].aggregate(running):
                        return str(group["_id"])
                    await asyncio.sleep(0.01)
        except TimeoutError:
            any_one = await self._database["processors"].find_one({})
            if any_one is None:
                raise StoreUnavailable("there is no processor left to kill") from None
            return str(any_one["_id"])


async def _ended(child: Child) -> None:
    async with asyncio.timeout(_PATIENCE_S):
        await child.wait()
