"""A long run at a steady rate in which leaders die: what is lost, whether memory or lag grow.

Jobs that do nothing are submitted in small batches, from a process of its own, each repeated until a replica has
acknowledged it; two hundred schedules fire every second beside them. Once a minute the leader is killed (SIGKILL) and
started again. Every ten seconds it is noted what each process keeps resident, and how late what started since then was:
fires by their nominal times, jobs by the instant in their ids, which is when they were submitted.

At the end every acknowledged job and every nominal time must have had its effect, once. A *slope* is that of the
straight line through the samples after the first minute. Of memory it is the median over the lives of a process, each
without its first minute.
"""

import asyncio
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
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
_PATIENCE_S = 60
_WARM_UP_MINUTES = 1
_EVERY_S = 10
_KILL_EVERY_S = 60


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
        "kills": soak.kills,
        "acknowledged": sent.acknowledged,
        "failed": sent.failed,
        "expected": len(expected),
        "drained_in_s": round(drained_s, 1),
        "lost": len(expected - soak.seen),
        "doubled": soak.doubled,
        **soak.slopes(),
    }


class _Soak:
    """``seen`` are the jobs that had their effect; ``doubled`` is how many had it again."""

    def __init__(self, stack: Stack, database: Any) -> None:
        self._stack = stack
        self._database = database
        self._effects = Effects()
        self._began = time.monotonic()
        self._lags_ms: dict[str, list[tuple[float, int, int]]] = {}
        """By kind, fires and jobs: the minute, p50 and p99 of what started since the sample before."""
        self._resident_mb: dict[str, dict[int, list[tuple[float, float]]]] = {}
        """By name and by process: the minute, and what it keeps resident."""
        self.kills = 0
        self.seen: set[str] = set()
        self.doubled = 0

    async def run(self, seconds: float) -> None:
        async with asyncio.TaskGroup() as tasks:
            killing = tasks.create_task(self._keep_killing())
            for number in range(1, round(seconds / _EVERY_S) + 1):
                await asyncio.sleep(self._began + number * _EVERY_S - time.monotonic())
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

    def slopes(self) -> Figures:
        figures: dict[str, float] = {}
        for kind, samples in self._lags_ms.items():
            minutes, p50, p99 = zip(*([each for each in samples if each[0] > _WARM_UP_MINUTES] or samples), strict=True)
            for part, values in (("p50", p50), ("p99", p99)):
                figures[f"{kind}_{part}_ms"] = median(values)
                figures[f"{kind}_{part}_slope_ms_per_minute"] = _slope(minutes, values)
        for name, lives in self._resident_mb.items():
            figures[f"{name}_resident_max_mb"] = max(mb for life in lives.values() for _, mb in life)
            figures[f"{name}_slope_mb_per_minute"] = median(
                [_slope(*zip(*life, strict=True)) for life in lives.values() if len(life) > 2] or [0.0]
            )
        return figures

    async def _keep_killing(self) -> None:
        while True:
            await asyncio.sleep(_KILL_EVERY_S)
            name, _ = await leading(self._stack, self._database)
            self.kills += 1
            self._stack.replicas[name].signal(signal.SIGKILL)
            await self._stack.replicas[name].wait()
            # Begun, it is brought to its end: no replica is left out because the run is over.
            await asyncio.shield(self._stack.start_replica(name))
            await self._stack.ready(name)

    def _sample(self) -> None:
        minute, effects = (time.monotonic() - self._began) / 60, self._read()
        pids = {name: child.pid for name, child in {**self._stack.replicas, **self._stack.processors}.items()}
        pids |= {kind: processes[0].pid for kind, processes in servers().items()}
        for name, pid in pids.items():
            with suppress(psutil.NoSuchProcess):
                process = psutil.Process(pid)
                if time.time() - process.create_time() > 60 * _WARM_UP_MINUTES:
                    lives = self._resident_mb.setdefault(name, {})
                    lives.setdefault(pid, []).append((minute, resident_mb(process)))
        fires = [effect.lag_ms for effect in effects if effect.nominal_ms is not None]
        # An id begins with the instant of its submission, in ms.
        submitted = [effect for effect in effects if effect.nominal_ms is None]
        jobs = [effect.at_ms - int(effect.job_id.removeprefix("job:")[:11], 16) for effect in submitted]
        for kind, lags in (("fires", fires), ("jobs", jobs)):
            self._lags_ms.setdefault(kind, []).append((minute, percentile(lags, 50), percentile(lags, 99)))

    def _read(self) -> Sequence[Effect]:
        found = self._effects.read(map(self._stack.log_of, self._stack.processors))
        # What was judged is not kept: a long run has millions.
        self._effects.all.clear()
        for effect in found:
            self.doubled += effect.job_id in self.seen
            self.seen.add(effect.job_id)
        return found


def _slope(minutes: Sequence[float], values: Sequence[float]) -> float:
    return round(linear_regression(minutes, values).slope, 3) if len(minutes) > 1 else 0.0
