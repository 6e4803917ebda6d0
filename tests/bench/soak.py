"""A long run at a steady rate in which leaders die: what is lost, whether memory or lag grow.

Jobs that do nothing are submitted in small batches, from a process of its own, each repeated until a replica has
acknowledged it; two hundred schedules fire every second beside them. Once a minute the leader is killed (SIGKILL) and
started again. Every ten seconds it is noted what each process keeps resident, and how late what started since then was:
fires by their nominal times, jobs by the instant in their ids, which is when they were submitted.

At the end every acknowledged job and every nominal time must have had its effect, once. A *slope* is that of the
straight line through the samples after the first minute. A replica that is killed begins again with little memory, so
for replicas it is that of the spans between its kills, each without its first 30 s, the median of them.
"""

import asyncio
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import linear_regression, median
from typing import Any

import psutil

from hascheduler.clock import SystemClock
from hascheduler.demo.evidence import Effect, Effects
from hascheduler.embedded.stack import Stack
from hascheduler.simulate.report import percentile
from tests.bench.load import Load, loading, read_sent
from tests.bench.results import Figures
from tests.bench.stacks import interval_bodies, leading, make_schedules, open_database, resident_mb, servers

_SCHEDULES = 200
_BATCH = 10
_WARM_UP_S = 60
_YOUNG_S = 30
_PATIENCE_S = 60
EVERY_S = 10
KILL_EVERY_S = 60


@dataclass(slots=True)
class Samples:
    """What was seen, by second from the begin. ``resident_mb`` has no value while the process is not there; ``lags_ms``
    are p50 and p99 of what started since the sample before, by kind: fires and jobs."""

    at_s: list[float] = field(default_factory=list)
    resident_mb: dict[str, list[float | None]] = field(default_factory=dict)
    lags_ms: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    kills: list[tuple[float, str]] = field(default_factory=list)


async def measure_soak(stack: Stack, per_second: int, minutes: float, folder: Path) -> Figures:
    seconds, ids = minutes * 60, folder / "acknowledged"
    urls = tuple(stack.urls.values())
    async with open_database(stack) as database:
        expectations = await make_schedules(urls, interval_bodies(_SCHEDULES))
        soak = _Soak(stack, database)
        load = Load(urls, per_second, seconds, batch=_BATCH, ids_to=str(ids), insists=True)
        async with loading(load) as under_way:
            await soak.run(seconds)
            sent = await under_way.sent()
        until_ms = SystemClock().wall_ms()
        expected = read_sent(ids).keys() | {
            job for expectation in expectations for job in expectation.jobs_until(until_ms)
        }
        began = time.monotonic()
        await soak.drain(expected)
        drained_s = time.monotonic() - began
    return {
        "minutes": minutes,
        "kills": len(soak.samples.kills),
        "acknowledged": sent.acknowledged,
        "failed": sent.failed,
        "expected": len(expected),
        "drained_in_s": round(drained_s, 1),
        "lost": len(expected - soak.seen),
        "doubled": soak.doubled,
        **_slopes(soak.samples),
    }


class _Soak:
    """``seen`` are the jobs that had their effect; ``doubled`` is how many had it again."""

    def __init__(self, stack: Stack, database: Any) -> None:
        self._stack = stack
        self._database = database
        self._effects = Effects()
        self._began = time.monotonic()
        self.seen: set[str] = set()
        self.doubled = 0
        self.samples = Samples()

    async def run(self, seconds: float) -> None:
        async with asyncio.TaskGroup() as tasks:
            killing = tasks.create_task(self._keep_killing())
            for number in range(1, round(seconds / EVERY_S) + 1):
                await asyncio.sleep(self._began + number * EVERY_S - time.monotonic())
                self._sample()
            killing.cancel()

    async def drain(self, expected: set[str]) -> None:
        """Until all of them have been seen, or none more was for a long while."""
        left, waited_s = expected, 0
        while left and waited_s < _PATIENCE_S:
            await asyncio.sleep(1)
            self._read()
            before, left = len(left), left - self.seen
            waited_s = 0 if len(left) < before else waited_s + 1

    async def _keep_killing(self) -> None:
        while True:
            await asyncio.sleep(KILL_EVERY_S)
            name, _ = await leading(self._stack, self._database)
            self.samples.kills.append((round(time.monotonic() - self._began, 1), name))
            self._stack.replicas[name].signal(signal.SIGKILL)
            await self._stack.replicas[name].wait()
            # Begun, it is brought to its end: no replica is left out because the run is over.
            await asyncio.shield(self._stack.start_replica(name))
            await self._stack.ready(name)

    def _sample(self) -> None:
        samples, effects = self.samples, self._read()
        samples.at_s.append(round(time.monotonic() - self._began, 1))
        for name, process in _processes(self._stack):
            row = samples.resident_mb.setdefault(name, [])
            row.append(_resident_mb(process))
        for kind, lags in (("fires", _fire_lags(effects)), ("jobs", _job_lags(effects))):
            samples.lags_ms.setdefault(kind, []).append((percentile(lags, 50), percentile(lags, 99)))

    def _read(self) -> Sequence[Effect]:
        found = self._effects.read(map(self._stack.log_of, self._stack.processors))
        # What was judged is not kept: a long run has millions.
        self._effects.all.clear()
        for effect in found:
            self.doubled += effect.job_id in self.seen
            self.seen.add(effect.job_id)
        return found


def _processes(stack: Stack) -> Iterator[tuple[str, psutil.Process | None]]:
    """By name, servers too; none for one that does not run just now."""
    for name, child in {**stack.replicas, **stack.processors}.items():
        yield name, psutil.Process(child.pid) if child.running else None
    for kind, processes in servers().items():
        yield kind, processes[0]


def _resident_mb(process: psutil.Process | None) -> float | None:
    try:
        return None if process is None else resident_mb(process)
    except psutil.NoSuchProcess:
        return None


def _fire_lags(effects: Sequence[Effect]) -> list[int]:
    return [effect.lag_ms for effect in effects if effect.nominal_ms is not None]


def _job_lags(effects: Sequence[Effect]) -> list[int]:
    """An id begins with the instant of its submission, in ms."""
    return [
        effect.at_ms - int(effect.job_id.removeprefix("job:")[:11], 16)
        for effect in effects
        if effect.nominal_ms is None
    ]


def _slopes(samples: Samples) -> dict[str, float]:
    figures: dict[str, float] = {}
    late = [place for place, at_s in enumerate(samples.at_s) if at_s > _WARM_UP_S] or list(range(len(samples.at_s)))
    for kind, rows in samples.lags_ms.items():
        for part, name in ((0, "p50"), (1, "p99")):
            values = [rows[place][part] for place in late]
            figures[f"{kind}_{name}_ms"] = median(values)
            minutes = [samples.at_s[place] / 60 for place in late]
            figures[f"{kind}_{name}_slope_ms_per_minute"] = round(_slope(minutes, values), 3)
    for name, row in samples.resident_mb.items():
        values_mb = [value for value in row if value is not None]
        figures[f"{name}_resident_max_mb"] = max(values_mb)
        figures[f"{name}_slope_mb_per_minute"] = round(_slope_of(name, row, samples), 3)
    return figures


def _slope_of(name: str, row: Sequence[float | None], samples: Samples) -> float:
    """The median over the lives of that process, each without its youth."""
    begins = [0.0, *(at_s for at_s, killed in samples.kills if killed == name)]
    ends = [*begins[1:], float("inf")]
    slopes = []
    for begin, end in zip(begins, ends, strict=True):
        young_s = _WARM_UP_S if begin == 0 else _YOUNG_S
        life = [
            (at_s / 60, value)
            for at_s, value in zip(samples.at_s, row, strict=True)
            if begin + young_s < at_s < end and value is not None
        ]
        if len(life) > 2:
            slopes.append(_slope(*zip(*life, strict=True)))
    return median(slopes) if slopes else 0.0


def _slope(minutes: Sequence[float], values: Sequence[float]) -> float:
    return linear_regression(minutes, values).slope if len(minutes) > 1 else 0.0
