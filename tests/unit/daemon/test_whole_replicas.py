"""Whole replicas in virtual time: under a pause, beside a worker that takes nothing up, and with a lone job."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from hascheduler.dispatch.decisions import NOT_STARTED
from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.dispatch.inputs import Input, Settled, Step
from hascheduler.mirror.changes import JobGone, JobSeen
from hascheduler.model.values.instants import WallMs
from hascheduler.testing import VirtualScheduler
from hascheduler.testing.memory.claims import MemoryClaimStore
from hascheduler.testing.memory.leadership import MemoryJournal
from hascheduler.testing.memory.messages import MemoryTransport
from hascheduler.testing.memory.work import MemoryWorkStore


@pytest.fixture
def scheduler() -> Iterator[VirtualScheduler]:
    with VirtualScheduler() as scheduler:
        scheduler.handle("report", lambda job: None)
        yield scheduler


def rest(scheduler: VirtualScheduler) -> dict[str, Any] | None:
    [worker] = [one for one in scheduler.request("GET", "/v1/processors")["items"] if one["name"] == "deaf"]
    shown: dict[str, Any] | None = worker["rest"]
    return shown


def test_the_job_of_a_worker_that_takes_nothing_up_runs_elsewhere_and_it_rests(scheduler: VirtualScheduler) -> None:
    scheduler.advance("1s")
    scheduler.request("POST", "/v1/work/processors", {"name": "deaf", "definitions": ["report"], "slots": 3})
    jobs = [scheduler.submit("report") for _ in range(3)]
    scheduler.advance("1m")
    assert [scheduler.job(job.id).state for job in jobs] == ["succeeded"] * 3
    resting = rest(scheduler)
    assert resting is not None
    assert resting["missed"] >= 1
    ended = [attempt for job in jobs for attempt in scheduler.request("GET", f"/v1/jobs/{job.id}")["attempts"]]
    lost = [attempt for attempt in ended if attempt["processor"].startswith("http:")]
    assert {attempt["error"] for attempt in lost} == {NOT_STARTED}
    assert len(lost) == resting["missed"]


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
