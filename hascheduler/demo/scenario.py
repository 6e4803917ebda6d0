"""The steps of a demo on any environment, and the schedules that it runs."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

from hascheduler.demo.environment import DemoEnvironment, until
from hascheduler.demo.evidence import Effects, Expectation
from hascheduler.model.job import LIVE
from hascheduler.model.values.instants import format_instant, parse_duration

_PATIENCE_S = 60.0
"""How long to wait for the last jobs while none of them ends; a shrinking backlog is waited for longer."""
_WAIT_MAX_S = 600.0
_REPORT_EVERY_S = 15.0
_POLL_EVERY_S = 0.2
_LAST_LINES_MS = 10_000
_INTERVALS = (("1s", 16), ("500ms", 4), ("2s", 2), ("3s", 2))
_NAPS = 4
_ONE_OFFS = 12
_ONE_OFF_EVERY_MS = 3_000
_GRACE = "10m"


@dataclass(frozen=True, slots=True)
class Kill:
    """One process that was ended, between two times of the environment's clock.

    ``took_ms`` is how long nothing was decided in each shard that it led, by name; empty if it led none.
    """

    what: str
    at_ms: int
    over_ms: int
    took_ms: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class RunRecord:
    """The events so far. `DemoScenario` fills it; the dashboard and the report read it."""

    expectations: list[Expectation] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)
    killed: dict[str, int | None] = field(default_factory=dict)
    """By processor id, which is new with each start, the time from which its output lines may be lost."""
    jobs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    shards: Sequence[str] = ()
    """The names of several shards."""
    shard_of: dict[str, str] = field(default_factory=dict)
    """The shard of each schedule, by name, if there are several shards."""
    until_ms: int | None = None
    """Set at the end: the nominal times up to it are compared with what happened."""


@dataclass
class DemoScenario:
    environment: DemoEnvironment
    effects: Effects
    say: Callable[[str], None]
    record: RunRecord
    pause_s: float

    async def run(self) -> None:
        """Pause, end the leader in each of the environment's ways, kill a processor, pause, and end."""
        await self.environment.leader()
        await self._report_backlog()
        await self._create_schedules()
        for way in self.environment.ways:
            await asyncio.sleep(self.pause_s)
            await self._end_leader(way)
        await asyncio.sleep(self.pause_s)
        await self._kill_processor()
        await asyncio.sleep(self.pause_s)
        await self._finish()

    async def _report_backlog(self) -> None:
        snapshot = await self.environment.api.snapshot()
        waiting = snapshot.cluster["counts"].get("pending", 0) if snapshot else 0
        if waiting:
            self.say(f"backlog of {jobs_text(waiting)}, so the jobs of the demo will be late")

    async def _wait_for_all(self, jobs: Collection[str]) -> None:
        """Wait until all have ended; give up once they make no progress."""
        loop = asyncio.get_running_loop()
        began_s = progress_s = reported_s = loop.time()
        fewest = len(jobs) + 1
        while True:
            stored = self.record.jobs = await self.environment.read_jobs(jobs)
            unended = sum(job not in stored or stored[job]["state"] in LIVE for job in jobs)
            if not unended:
                return
            now_s = loop.time()
            if unended < fewest:
                fewest, progress_s = unended, now_s
            if now_s - progress_s > _PATIENCE_S or now_s - began_s > _WAIT_MAX_S:
                self.say(f"giving up with {jobs_text(unended)} not ended")
                return
            if now_s - reported_s > _REPORT_EVERY_S:
                self.say(f"{jobs_text(unended)} not ended yet")
                reported_s = now_s
            await asyncio.sleep(_POLL_EVERY_S)

    async def _create_schedules(self) -> None:
        environment, record = self.environment, self.record
        record.shards = environment.shards
        for body in schedule_bodies(environment.wall_ms(), environment.prefix, environment.tenants):
            created = Expectation.of(await environment.create(body))
            record.expectations.append(created)
            if record.shards:
                record.shard_of[created.name] = environment.shard_of(created.tenant)
        spread = f", of {len(environment.tenants)} tenants in {len(record.shards)} shards" if record.shards else ""
        self.say(f"created {len(record.expectations)} schedules over HTTP{spread}")

    async def _end_leader(self, way: str) -> None:
        leader = await self.environment.leader()
        several = bool(self.environment.shards)
        what = f"which leads {', '.join(leader.terms)}" if several else f"the leader (term {leader.term})"
        self.say(f"{way} {leader.name}, {what}")
        at_ms = self.environment.wall_ms()
        took = await self.environment.end_leader(leader, way)
        over_ms = self.environment.wall_ms()
        successor = await self.environment.leader()
        self.record.kills.append(Kill(f"{way} {leader.name} (leader)", at_ms, over_ms, took))
        for shard, took_ms in took.items():
            leads = (
                f"shard {shard} has another leader" if several else f"{successor.name} leads (term {successor.term})"
            )
            self.say(f"{leads}: first decision after {took_ms} ms")
        self.say(f"{await self.environment.restore(leader)} is back and follows")

    async def _kill_processor(self) -> None:
        id = await until(self._busiest_processor, "a processor that runs a job", every_s=0.05)
        name = id.rpartition(".")[0]
        way = self.environment.processor_way
        self.say(f"{way} {name}, which is running jobs")
        at_ms = self.environment.wall_ms()
        self.record.kills.append(Kill(f"{way} {name}", at_ms, at_ms))
        self.record.killed[id] = at_ms - _LAST_LINES_MS if self.environment.cuts_outputs else None
        successor = await self.environment.end_processor(id)
        starts = f"{name} starts again" if successor == name else f"{successor} takes its place"
        self.say(f"{starts}; its jobs continue with the next attempt")

    async def _busiest_processor(self) -> str | None:
        snapshot = await self.environment.api.snapshot()
        ours = {processor.name for processor in self.environment.processors() if processor.running}
        known = [one for one in snapshot.processors if one["alive"] and one["name"] in ours] if snapshot else []
        busiest = max(known, key=lambda one: int(one["occupied"]), default=None)
        return str(busiest["id"]) if busiest and busiest["occupied"] else None

    async def _finish(self) -> None:
        """Set the end, wait for all jobs due by then to end, and read them."""
        until_ms = self.environment.wall_ms()
        self.record.until_ms = until_ms
        self.say("waiting for the jobs that were due by now")
        expected = sorted({job for one in self.record.expectations for job in one.jobs_until(until_ms)})
        await self._wait_for_all(expected)
        await self.environment.complete_outputs()
        self.effects.read(self.environment.outputs())


def jobs_text(count: int) -> str:
    return f"{count} job{'' if count == 1 else 's'}"


def schedule_bodies(now_ms: int, prefix: str = "", tenants: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return two dozen intervals of many lengths, some jobs that take a while, and a dozen one-offs.

    Their names begin with ``prefix``, and ``tenants`` own them in turns. However long a takeover takes, no fire may be
    late enough to be given up.
    """
    bodies: list[dict[str, Any]] = []
    # One-offs come first: a busy machine is slow, and one whose time has passed is refused.
    for number in range(1, _ONE_OFFS + 1):
        at = format_instant(now_ms + _ONE_OFF_EVERY_MS * number)
        name = f"{prefix}once-{number}"
        bodies.append({"name": name, "trigger": {"type": "once", "at": at}, "job": {"definition": "log"}})
    for every, count in _INTERVALS:
        for number in range(1, count + 1):
            name = f"{prefix}every-{every}-{number}"
            job = {"definition": "log", "target": name, "payload": {"message": "tick"}}
            # Spread over the interval, so that something is always due soon.
            anchor = format_instant(now_ms + parse_duration(every) * number // count)
            bodies.append({"name": name, "trigger": {"type": "interval", "every": every, "anchor": anchor}, "job": job})
    for number in range(1, _NAPS + 1):
        name = f"{prefix}nap-{number}"
        job = {"definition": "sleep", "target": name, "payload": {"seconds": 1.2}}
        anchor = format_instant(now_ms + 2_000 * number // _NAPS)
        bodies.append({"name": name, "trigger": {"type": "interval", "every": "2s", "anchor": anchor}, "job": job})
    for body, tenant in zip(bodies, cycle(tenants), strict=False):
        body["job"]["tenant"] = tenant
    return [{**body, "misfire": {"grace": _GRACE}} for body in bodies]
