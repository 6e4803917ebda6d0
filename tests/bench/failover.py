"""How long nobody decides: from ending the leader to the first dispatch of the next term.

Fifty schedules fire every second, so something is due every 20 ms. ``dispatch_…`` is from the signal to the journal
entry with the next term's first dispatches, as that entry tells the time; ``start_…`` is to the first start of one of
those jobs, by the handler's own clock. One that gets SIGTERM may decide until it has handed over, and one that gets
SIGSTOP wakes up again, and finds itself deposed: neither is in these figures.
"""

import asyncio
import signal
from collections.abc import Sequence
from typing import Any

from pymongo import AsyncMongoClient

from hascheduler.clock import SystemClock
from hascheduler.demo.evidence import Effects
from hascheduler.embedded.stack import Stack
from hascheduler.errors import WorldError
from hascheduler.simulate.report import percentile
from tests.bench.cast import leading
from tests.bench.figures import Figures
from tests.bench.made_schedules import interval_bodies, make_schedules

_PHASES = 50
_PATIENCE_S = 60


async def measure_failover(stack: Stack, database: str, plan: dict[signal.Signals, int]) -> dict[str, Figures]:
    """So many times each of those signals, to whichever replica leads."""
    await make_schedules(list(stack.urls.values()), interval_bodies(_PHASES))
    async with AsyncMongoClient[dict[str, Any]](stack.mongodb_uri) as client:
        takeovers = _Takeovers(stack, client[database])
        return {
            each.name: _figures([await takeovers.measure(each) for _ in range(times)])
            for each, times in plan.items()
            if times
        }


async def next_dispatch(database: Any, after: Any, term: int) -> tuple[int, set[str]]:
    """When a later term than that dispatched for the first time, by a journal entry ``after`` that one, and which
    jobs."""
    later = {"_id": {"$gt": after}, "term": {"$gt": term}, "kind": "decisions"}
    while True:
        async for entry in database["journal"].find(later).sort("_id", 1):
            ids = {row[1] for row in entry["decisions"] if row[0] == "dispatch"}
            if ids:
                return int(entry["at_ms"]), ids
        await asyncio.sleep(0.005)


async def dispatch_pause_ms(database: Any, after: Any, term: int) -> int:
    """From the last dispatch before that term, by a journal entry ``after`` that one, to its first."""
    first_ms, _ = await next_dispatch(database, after, term - 1)
    earlier = {"_id": {"$gt": after}, "term": {"$lt": term}, "kind": "decisions"}
    async for entry in database["journal"].find(earlier).sort("_id", -1):
        if any(row[0] == "dispatch" for row in entry["decisions"]):
            return first_ms - int(entry["at_ms"])
    raise WorldError(f"nothing was dispatched before term {term}")


async def journal_end(database: Any) -> Any:
    """The id of the newest entry."""
    return (await database["journal"].find_one({}, ["_id"], sort=[("_id", -1)]))["_id"]


class _Takeovers:
    def __init__(self, stack: Stack, database: Any) -> None:
        self._stack = stack
        self._database = database
        self._clock = SystemClock()
        self._effects = Effects()

    async def measure(self, number: signal.Signals) -> tuple[int, int]:
        """To the first dispatch, and to the first start, in ms; then all replicas are there again."""
        await asyncio.sleep(1)  # quiet again after the one before
        name, term = await leading(self._stack, self._database)
        newest = await journal_end(self._database)
        self._read()
        self._effects.all.clear()
        at_ms = self._clock.wall_ms()
        self._stack.replicas[name].signal(number)
        async with asyncio.timeout(_PATIENCE_S):
            dispatched_at_ms, ids = await next_dispatch(self._database, newest, term)
            started_at_ms = await self._started(ids)
        if number is signal.SIGSTOP:
            self._stack.replicas[name].signal(signal.SIGCONT)
        else:
            await self._stack.replicas[name].wait()
            await self._stack.start_replica(name)
        await self._stack.ready(name)
        return dispatched_at_ms - at_ms, started_at_ms - at_ms

    def _read(self) -> None:
        self._effects.read(map(self._stack.log_of, self._stack.processors))

    async def _started(self, ids: set[str]) -> int:
        """When the first of those jobs did."""
        while True:
            self._read()
            started = [each.at_ms for each in self._effects.all if each.job_id in ids]
            if started:
                return min(started)
            await asyncio.sleep(0.005)


def _figures(took: Sequence[tuple[int, int]]) -> Figures:
    figures: dict[str, Any] = {"kills": len(took)}
    for name, values in zip(("dispatch", "start"), zip(*took, strict=True), strict=True):
        figures |= {f"{name}_p{part}_ms": percentile(values, part) for part in (50, 99)}
        figures[f"{name}_max_ms"] = max(values)
        figures[f"{name}s_ms"] = list(values)
    return figures
