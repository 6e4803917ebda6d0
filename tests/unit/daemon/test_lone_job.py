"""What a lone job costs the leader's loop, where each exchange with the world takes its time: steps of the core."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.dispatch.inputs import Input, Settled
from hascheduler.dispatch.step import Step
from hascheduler.mirror.changes import JobGone, JobSeen
from hascheduler.model.values.instants import WallMs
from hascheduler.testing import VirtualScheduler
from hascheduler.testing.memory.claims import MemoryClaimStore
from hascheduler.testing.memory.leadership import MemoryJournal
from hascheduler.testing.memory.messages import MemoryTransport
from hascheduler.testing.memory.work import MemoryWorkStore

_EXCHANGES = [
    (MemoryJournal, "insert"),
    (MemoryClaimStore, "apply"),
    (MemoryTransport, "publish"),
    (MemoryWorkStore, "start"),
    (MemoryWorkStore, "finish"),
]
_JOBS = 4


def _take_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for store, name in _EXCHANGES:
        monkeypatch.setattr(store, name, _slow(getattr(store, name)))


def _slow(exchange: Any) -> Any:
    async def slow(*arguments: Any, **named: Any) -> Any:
        await asyncio.sleep(0.001)
        answer = await exchange(*arguments, **named)
        await asyncio.sleep(0.001)
        return answer

    return slow


def _steps_about_jobs(monkeypatch: pytest.MonkeyPatch) -> list[Step]:
    steps: list[Step] = []
    take = Dispatcher.step

    def counted(core: Dispatcher, now: WallMs, inputs: Sequence[Input]) -> Step:
        step = take(core, now, inputs)
        if any(isinstance(seen, JobSeen | JobGone | Settled) for seen in inputs):
            steps.append(step)
        return step

    monkeypatch.setattr(Dispatcher, "step", counted)
    return steps


def test_a_lone_job_takes_one_step_to_be_dispatched_and_one_for_all_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    _take_their_time(monkeypatch)
    with VirtualScheduler() as scheduler:

        @scheduler.handler("noop")
        async def noop(_: object) -> None:
            return None

        steps = _steps_about_jobs(monkeypatch)
        for _ in range(_JOBS):
            scheduler.submit("noop")
            scheduler.drain()
            scheduler.advance("1s")  # until the inbox keeps nothing
    assert [len(step.decisions) for step in steps] == [1, 0] * _JOBS
