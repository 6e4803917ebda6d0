"""What a decision costs, by how many jobs wait: the dispatch core alone, without servers.

The load: 10,000 fairness keys in 4 lanes, each with jobs of 3 of 100 definitions; a tenth of the definitions form a
conflict group over 10,000 targets, a fifth has a cap, four fifths are in one of 4 tiers. 90 % of the jobs have priority
5, the others any; 5 % are on demand. 125 processors with 8 slots: two thirds run everything, the others 20 definitions
each. Not in it: resources, quotas, rate limits, jobs that can't run anywhere.

Each size is measured in a process of its own. *Memory* is what that process keeps for itself (USS) after all jobs were
added, less before, so it holds the jobs themselves, whose texts are shared as those read from a database are. *Add*
is per job in steps of 1,000. For *decision* all slots are taken; a job ends in a step that may not dispatch, and the
next step, which is timed, gives its slot again: it decides one dispatch and does nothing else. Medians throughout.
"""

import gc
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from random import Random
from statistics import median
from time import perf_counter

import psutil

from hascheduler.dispatch.config import DispatchConfig, PolicyConfig
from hascheduler.dispatch.decisions import Dispatch, Settlement
from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.dispatch.inputs import Input, Settled, TermBegan, TransportSeen
from hascheduler.mirror.changes import JobGone, JobSeen, ProcessorSeen
from hascheduler.model.job import JobRef, JobState
from hascheduler.model.policy import PRESETS, bonus_max_of
from hascheduler.model.processor import ProcessorRef
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.definition import Definition
from tests.unit.dispatch.nouns import noun_seen

SIZES = (10_000, 100_000, 1_000_000)
_BATCH = 1_000
_ROUNDS = 2_000
_BEGIN = WallMs(1_893_456_000_000)

Figures = dict[str, float]


def measure_decisions(preset: str, sizes: Sequence[int]) -> dict[str, Figures]:
    found: dict[str, Figures] = {}
    for size in sizes:
        label = f"{preset}, {size:,} pending"
        sys.stderr.write(f"{label}\n")
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
            found[label] = alone.submit(_measure, preset, size).result()
    return found


def _measure(preset: str, size: int) -> Figures:
    bench = _Bench(preset)
    figures = bench.add(size)
    bench.fill()
    figures["decision_us"] = bench.decide()
    return {name: round(value, 1) for name, value in figures.items()}


class _Bench:
    def __init__(self, preset: str) -> None:
        self._random = Random(0)
        policy = PolicyConfig(PRESETS[preset], on_demand_bonus_max=bonus_max_of(preset))
        self._core = Dispatcher(DispatchConfig(policy=policy))
        self._now = _BEGIN
        self._jobs: dict[str, JobRef] = {}
        self._running: list[str] = []
        self._definitions = [f"definition-{n}" for n in range(100)]
        self._targets = [f"target-{n}" for n in range(10_000)]
        self._keys = [f"key-{n}" for n in range(10_000)]
        self._lanes = [f"lane-{n}" for n in range(4)]
        self._of_key = [self._random.sample(self._definitions, 3) for _ in self._keys]
        self._step(
            TermBegan(1),
            *(noun_seen(_definition(n, name)) for n, name in enumerate(self._definitions)),
            *(ProcessorSeen(_processor(n, self._definitions)) for n in range(125)),
            TransportSeen(False),
        )

    def add(self, size: int) -> Figures:
        gc.collect()
        before, spent = psutil.Process().memory_full_info().uss, []
        for start in range(0, size, _BATCH):
            jobs = [self._job(n) for n in range(start, min(start + _BATCH, size))]
            self._now = WallMs(_BEGIN + start // 10)
            spent.append(self._timed(*map(JobSeen, jobs)) / len(jobs))
            self._jobs |= {job.id: job for job in jobs}
        grown = psutil.Process().memory_full_info().uss - before
        # Without the table that this benchmark keeps for itself.
        return {"add_us": median(spent), "bytes_per_job": (grown - sys.getsizeof(self._jobs)) / size}

    def fill(self) -> None:
        """Take all slots."""
        self._start(self._step(TransportSeen(True)))

    def decide(self) -> float:
        spent = []
        for _ in range(_ROUNDS):
            self._step(TransportSeen(False), self._end())
            began = perf_counter()
            decided = self._step(TransportSeen(True))
            if len(decided) == 1:
                spent.append((perf_counter() - began) * 1e6)
            self._start(decided)
        return median(spent)

    # The cluster

    def _step(self, *inputs: Input) -> list[Dispatch]:
        return [each for each in self._core.step(self._now, inputs).decisions if isinstance(each, Dispatch)]

    def _timed(self, *inputs: Input) -> float:
        """In µs; every slot is taken, or no processor can be reached, so nothing is decided."""
        began = perf_counter()
        self._core.step(self._now, inputs)
        return (perf_counter() - began) * 1e6

    def _job(self, number: int) -> JobRef:
        chance, key = self._random, number % len(self._keys)
        return JobRef(
            id=f"job:{number:024x}", rev=1, state=JobState.PENDING, attempt=0,
            definition=chance.choice(self._of_key[key]), target=chance.choice(self._targets), tenant="default",
            lane=self._lanes[key % 4], fairness_key=self._keys[key],
            priority=5 if chance.random() < 0.9 else chance.randrange(11),
            mode="queued" if chance.random() < 0.95 else "on_demand",
            submitted_at_ms=WallMs(_BEGIN + number // 10), sequence=0, not_before_ms=None, processor=None,
            dispatched_at_ms=None, cancel_requested_at_ms=None,
        )  # fmt: skip

    def _start(self, decided: list[Dispatch]) -> None:
        """Untimed: the stream shows what was decided, and some time passes."""
        echoes: list[Input] = []
        for each in decided:
            job = replace(
                self._jobs[each.job_id], rev=3, state=JobState.RUNNING, attempt=1, processor=each.processor,
                dispatched_at_ms=self._now, started_at_ms=self._now,
            )  # fmt: skip
            self._jobs[job.id] = job
            self._running.append(job.id)
            echoes += (JobSeen(job), Settled(each, Settlement.DONE))
        self._step(*echoes)
        self._now = WallMs(self._now + 3)

    def _end(self) -> Input:
        id = self._running.pop(self._random.randrange(len(self._running)))
        del self._jobs[id]
        return JobGone(id, JobState.SUCCEEDED, self._now)


def _definition(number: int, name: str) -> Definition:
    return Definition(
        name=name,
        max_concurrency=20 if number % 5 == 0 else None,
        conflict_group="group" if number % 10 == 1 else None,
        tier=(None, 50, 200, 400, 1_000)[number % 5],
    )


def _processor(number: int, definitions: list[str]) -> ProcessorRef:
    first = number % 50
    runs = frozenset({"*"} if number % 3 else definitions[first : first + 20])
    id = f"processor-{number}"
    return ProcessorRef(id, id, "default", runs, slots=8, beat=1, draining=False, parked=0)
