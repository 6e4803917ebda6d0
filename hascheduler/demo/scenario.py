"""What happens when, wherever it happens."""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from hascheduler.demo.environment import DemoEnvironment
from hascheduler.demo.evidence import Effects, Expectation
from hascheduler.model.durations import parse_duration
from hascheduler.model.instants import format_instant

PAUSE_S = 8.0
"""Long enough to see it run undisturbed."""
_PATIENCE_S = 60.0
_LAST_LINES_MS = 10_000


@dataclass(frozen=True, slots=True)
class Kill:
    """One process that was ended between two times of the stage's clock; for a leader, for how many ms nothing was
    decided (None: not a leader)."""

    what: str
    at_ms: int
    over_ms: int
    takeover_ms: int | None = None


@dataclass(slots=True)
class RunRecord:
    """What has been told so far; the story fills it, the view and the report read it."""

    expectations: list[Expectation] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)
    killed_processors: set[str] = field(default_factory=set)
    """Their ids, which are unique per process start."""
    cut_outputs: dict[str, int] = field(default_factory=dict)
    """Those of them that may have taken the last lines of their output along, with the time of the first of those."""
    jobs: dict[str, Any] = field(default_factory=dict)
    until_ms: int | None = None
    """Set at the end: what is due by then is held against what happened."""


class DemoScenario:
    def __init__(
        self,
        stage: DemoEnvironment,
        effects: Effects,
        say: Callable[[str], None],
        told: RunRecord,
        pause_s: float = PAUSE_S,
    ) -> None:
        self._stage = stage
        self._effects = effects
        self._say = say
        self._told = told
        self._pause_s = pause_s

    async def tell(self) -> None:
        """Quiet, the leader ended in each of the stage's ways, a processor killed, quiet, the end."""
        await self._stage.leader()
        await self._create_schedules()
        for way in self._stage.ways:
            await asyncio.sleep(self._pause_s)
            await self._end_leader(way)
        await asyncio.sleep(self._pause_s)
        await self._kill_processor()
        await asyncio.sleep(self._pause_s)
        await self._finish()

    async def _all_ended(self, jobs: Collection[str]) -> None:
        while True:
            if await self._stage.ended(jobs):
                return
            await asyncio.sleep(0.1)

    async def _create_schedules(self) -> None:
        for body in schedule_bodies(self._stage.wall_ms(), self._stage.prefix):
            self._told.expectations.append(Expectation.of(await self._stage.create(body)))
        self._say(f"created {len(self._told.expectations)} schedules over HTTP")

    async def _end_leader(self, way: str) -> None:
        leader = await self._stage.leader()
        self._say(f"{way} {leader.name}, the leader (term {leader.term})")
        at_ms = self._stage.wall_ms()
        took_ms = await self._stage.end_leader(leader, way)
        over_ms = self._stage.wall_ms()
        successor = await self._stage.leader()
        self._told.kills.append(Kill(f"{way} {leader.name} (leader)", at_ms, over_ms, took_ms))
        self._say(f"{successor.name} leads (term {successor.term}): first decision after {took_ms} ms")
        self._say(f"{await self._stage.restore(leader)} is back and follows")

    async def _kill_processor(self) -> None:
        id = await self._stage.busiest_processor()
        name = id.rpartition(".")[0]
        way = self._stage.processor_way
        self._say(f"{way} {name}, which is at work")
        at_ms = self._stage.wall_ms()
        self._told.kills.append(Kill(f"{way} {name}", at_ms, at_ms))
        self._told.killed_processors.add(id)
        if self._stage.cuts_outputs:
            self._told.cut_outputs[id] = at_ms - _LAST_LINES_MS
        successor = await self._stage.end_processor(id)
        starts = f"{name} starts again" if successor == name else f"{successor} takes its place"
        self._say(f"{starts}; what it was running moves on with the next attempt")

    async def _finish(self) -> None:
        """Fix the end, let everything due by then end, and read the jobs."""
        until_ms = self._stage.wall_ms()
        self._told.until_ms = until_ms
        self._say("the end is set; waiting for everything that was due by now")
        expected = sorted({job for one in self._told.expectations for job in one.jobs_until(until_ms)})
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await self._all_ended(expected)
        except TimeoutError:
            self._say("not everything ended in time")
        await self._stage.complete_outputs()
        self._effects.read(self._stage.outputs())
        seen = {effect.job_id for effect in self._effects.all}
        self._told.jobs.update(await self._stage.read_jobs(expected, seen))


_INTERVALS = (("1s", 16), ("500ms", 4), ("2s", 2), ("3s", 2))
_NAPS = 4
_ONE_OFFS = 12
_ONE_OFF_EVERY_MS = 3_000
_GRACE = "10m"


def schedule_bodies(now_ms: int, prefix: str = "") -> list[dict[str, Any]]:
    """Two dozen intervals of many lengths, some jobs that take a while, and a dozen one-offs along the way.

    Their names begin with ``prefix``. However long a takeover takes, nothing may be late enough to be given up.
    """
    bodies: list[dict[str, Any]] = []
    for every, count in _INTERVALS:
        for number in range(1, count + 1):
            name = f"{prefix}every-{every}-{number}"
            job = {"definition": "log", "target": name, "payload": {"message": "tick"}}
            # Spread over the interval, so that there is always something due soon.
            anchor = format_instant(now_ms + parse_duration(every) * number // count)
            bodies.append({"name": name, "trigger": {"type": "interval", "every": every, "anchor": anchor}, "job": job})
    for number in range(1, _NAPS + 1):
        name = f"{prefix}nap-{number}"
        job = {"definition": "sleep", "target": name, "payload": {"seconds": 1.2}}
        anchor = format_instant(now_ms + 2_000 * number // _NAPS)
        bodies.append({"name": name, "trigger": {"type": "interval", "every": "2s", "anchor": anchor}, "job": job})
    for number in range(1, _ONE_OFFS + 1):
        at = format_instant(now_ms + _ONE_OFF_EVERY_MS * number)
        name = f"{prefix}once-{number}"
        bodies.append({"name": name, "trigger": {"type": "once", "at": at}, "job": {"definition": "log"}})
    return [{**body, "misfire": {"grace": _GRACE}} for body in bodies]
