"""What a job costs: CPU by process and by part, commands of the database, switches and turns; at rest and by load.

The load is submits over HTTP of jobs that do nothing, from a process of its own, one by one or in batches. CPU is the
kernel's account of each process, all of a kind together; its parts are shares by samples (`tests.bench.sampled`);
operations, commands and bytes are the database's own counters (``serverStatus``), and hold what the replicas, the
processors and the API do there. Per job is all of it, what is spent at rest included, divided by the jobs that started
in that span, by their effects; the ledger shows the rest apart. *At once* are jobs of schedules that are all due at one
instant, from a few seconds before it to the last start: how the last ones end is not in it. *growth* is per-job cost at
the highest rate of single submits divided by that at the lowest: below 1 it costs less the more there is to do.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from pymongo import AsyncMongoClient

from hascheduler.demo.evidence import Effects
from hascheduler.embedded.stack import Stack
from hascheduler.errors import InvalidInput, WorldError
from hascheduler.model.job import LIVE
from tests.bench.cast import KINDS, Cast, cast_of, leading
from tests.bench.figures import Figures
from tests.bench.ledger.accounts import Span, Spent, figures_of, shared_out, together
from tests.bench.ledger.counters import Look, look
from tests.bench.ledger.parts import Share
from tests.bench.ledger.samples import Mark, SampledProcess
from tests.bench.load import Load, loading
from tests.bench.storm import make_storm, storm_over

AT_REST = "at rest"
_PYTHON = ("leader", "follower", "processor")
_SETTLE_S = 10
_WARM_UP_S = 4
_TAIL_S = 1
_DRAIN_S = 300


@dataclass(frozen=True, slots=True)
class Rate:
    """So many jobs a second, ``batch`` of them in a request."""

    per_second: int
    batch: int = 1

    @property
    def label(self) -> str:
        one = f"{self.per_second:,} jobs/s"
        return one if self.batch == 1 else f"{one} in batches of {self.batch:,}"


@dataclass(frozen=True, slots=True)
class Measured:
    """``rate`` None: nothing was submitted. ``failed`` submits, and by how much the load's process was late at most."""

    rate: Rate | None
    span: Span
    failed: int = 0
    load_late_max_ms: int = 0


def read_loads(text: str) -> list[Rate]:
    """``50,1000/500``: 50 jobs a second one by one, then 1,000 in batches of 500. Else `InvalidInput`."""
    loads = []
    for part in text.split(","):
        numbers = [number.strip() for number in part.split("/")]
        if len(numbers) > 2 or not all(number.isdecimal() and int(number) for number in numbers):
            raise InvalidInput(
                ("--loads",), f"{part[:64]!r}", "jobs a second, or jobs a second/jobs a request, with commas between"
            )
        loads.append(Rate(*map(int, numbers)))
    return loads


async def measure_ledger(
    stack: Stack, database: str, loads: Sequence[Rate], seconds: int, samples: Path | None, *, at_once: int = 0
) -> list[Measured]:
    """At rest first, then under each load, each after the jobs of the one before have ended, then of so many
    schedules ``at_once``. ``samples`` is where the processes leave them, if they are sampled."""
    async with AsyncMongoClient[dict[str, Any]](stack.mongodb_uri) as client:
        bench = _Bench(stack, client, database, seconds, samples)
        await asyncio.sleep(_SETTLE_S)
        measured = [await bench.at_rest()]
        for rate in loads:
            measured.append(await bench.under(rate))
            await bench.drained()
        if at_once:
            measured.append(await bench.at_once(at_once))
    return measured


def figures_by_load(measured: Sequence[Measured]) -> dict[str, Figures]:
    """By label; the first is at rest. *growth* only where there are several rates of single submits."""
    rest = measured[0].span
    found: dict[str, Figures] = {AT_REST: figures_of(rest, rest)}
    for each in measured[1:]:
        sent = {"failed": each.failed, "load_late_max_ms": each.load_late_max_ms}
        found[each.span.label] = {**sent, **figures_of(each.span, rest)}
    ran = [
        found[each.span.label] for each in measured if each.span.jobs and each.rate is not None and each.rate.batch == 1
    ]
    if len(ran) > 1:
        growing = [name for name in ran[0] if name.endswith("_per_job")]
        found["growth"] = {name: round(ran[-1][name] / ran[0][name], 2) for name in growing if ran[0][name]}
    return found


class _Bench:
    def __init__(
        self,
        stack: Stack,
        client: AsyncMongoClient[dict[str, Any]],
        database: str,
        seconds: int,
        samples: Path | None,
    ) -> None:
        self._stack = stack
        self._client = client
        self._database = client[database]
        self._seconds = seconds
        self._samples = samples

    async def at_rest(self) -> Measured:
        leader, _ = await leading(self._stack, self._database)
        return Measured(None, await self._span(AT_REST, cast_of(self._stack, leader), self._some_seconds))

    async def under(self, rate: Rate) -> Measured:
        """`WorldError` where another replica leads in the end: what it costs to lead can't be told apart then."""
        leader, term = await leading(self._stack, self._database)
        cast = cast_of(self._stack, leader)
        plan = Load(tuple(self._stack.urls.values()), rate.per_second, _WARM_UP_S + self._seconds + _TAIL_S, rate.batch)
        async with loading(plan) as load:
            cast["load"] = [psutil.Process(load.pid)]
            span = await self._span(rate.label, cast, self._some_seconds)
            sent = await load.sent()
        if await leading(self._stack, self._database) != (leader, term):
            raise WorldError(f"the leader has changed at {rate.label}")
        return Measured(rate, span, sent.failed, sent.late_max_ms)

    async def at_once(self, schedules: int) -> Measured:
        leader, _ = await leading(self._stack, self._database)
        due_ms = await make_storm(self._stack, schedules)
        await asyncio.sleep(max(due_ms / 1_000 - time.time() - _WARM_UP_S, 0))

        async def storm(effects: Effects) -> None:
            begun = len(effects.all)
            await storm_over(self._stack, due_ms, begun + schedules, effects)

        return Measured(None, await self._span(f"{schedules:,} at once", cast_of(self._stack, leader), storm))

    async def drained(self) -> None:
        """Wait until no job is live; what a load left behind is not the next one's."""
        live = {"state": {"$in": [state.value for state in LIVE]}}
        try:
            async with asyncio.timeout(_DRAIN_S):
                while await self._database["jobs"].count_documents(live, limit=1):  # noqa: ASYNC110
                    await asyncio.sleep(0.5)
        except TimeoutError:
            raise WorldError(f"jobs are left {_DRAIN_S} s after the load has ended") from None

    async def _some_seconds(self, _: Effects) -> None:
        await asyncio.sleep(self._seconds)

    async def _span(self, label: str, cast: Cast, pass_by: Callable[[Effects], Awaitable[None]]) -> Span:
        logs, effects = [self._stack.log_of(name) for name in self._stack.processors], Effects()
        await asyncio.sleep(_WARM_UP_S)
        effects.read(logs)
        begun, before = len(effects.all), await self._look(cast)
        await pass_by(effects)
        after = await self._look(cast)
        effects.read(logs)
        jobs = len(effects.all) - begun
        was, now = before.look.mongod, after.look.mongod
        commands = _more(was.commands, now.commands)
        commands["serverStatus"] -= 1  # the look's own
        return Span(
            label,
            after.look.at - before.look.at,
            jobs,
            {
                kind: together([_spent(kind, each.pid, before, after) for each in cast[kind]])
                for kind in KINDS
                if cast.get(kind)
            },
            _more(was.operations, now.operations),
            {name: count for name, count in commands.items() if count},
            now.bytes_in - was.bytes_in,
            now.bytes_out - was.bytes_out,
        )

    async def _look(self, cast: Cast) -> "_Marked":
        files = (
            {}
            if self._samples is None
            else {each.pid: SampledProcess(self._samples, each.pid) for kind in _PYTHON for each in cast[kind]}
        )
        return _Marked(await look(self._client, cast), {pid: (each, each.mark()) for pid, each in files.items()})


@dataclass(frozen=True, slots=True)
class _Marked:
    """All counters at one instant, and where the samples of each process ended."""

    look: Look
    files: Mapping[int, tuple[SampledProcess, Mark]]


def _spent(kind: str, pid: int, before: _Marked, after: _Marked) -> Spent:
    """Shared out by its samples, or by its threads where it has none."""
    was, now = before.look.processes[pid], after.look.processes[pid]
    cpu_s = now.cpu_s - was.cpu_s
    # A thread that has ended takes its count with it.
    voluntary, involuntary = max(0, now.voluntary - was.voluntary), max(0, now.involuntary - was.involuntary)
    if pid in before.files:
        (files, begin), (_, end) = before.files[pid], after.files[pid]
        phase = files.between(begin, end)
        parts_s = shared_out(cpu_s, phase.shares)
        samples = phase.shares.total()
        return Spent(1, cpu_s, parts_s, voluntary, involuntary, phase.turns, samples, phase.cost_s)
    ran_s = {name: ran - was.threads_s.get(name, 0.0) for name, ran in now.threads_s.items()}
    parts = {f"{kind}: {name}": ran for name, ran in ran_s.items() if ran > 0}
    return Spent(
        1, cpu_s, shared_out(cpu_s, {Share(part, part): ran for part, ran in parts.items()}), voluntary, involuntary
    )


def _more(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    return {name: after[name] - before.get(name, 0) for name in after}
