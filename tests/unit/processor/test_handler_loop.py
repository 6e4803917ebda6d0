"""Coroutine handlers in an event loop of their own: what crosses the threads, and what becomes of a blocked loop."""

import asyncio
import ctypes
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import structlog
import uvloop

from hascheduler.model.job import JobState
from hascheduler.model.message import MessageKind
from hascheduler.processor import Handlers, JobContext, handler_loop
from hascheduler.processor.handler_loop import HandlerLoop
from hascheduler.schema.definition import Definition
from hascheduler.schema.retry import RetryPolicy
from tests.tiers import spread
from tests.unit.processor.world import Job, Stage, staged, until

LIMIT_S = 20
BLAMED = "by the handler of 'block': use `def` or process=True"


class Work:
    """``block`` holds its loop up until `unblock`; ``wait`` waits for `release` in the loop."""

    def __init__(self) -> None:
        self.handlers = Handlers()
        self.begun: list[str] = []
        self.stopped: list[str] = []
        self.unblocked = threading.Event()
        self.loops: set[asyncio.AbstractEventLoop] = set()
        self.released = asyncio.Event()
        for function in (self.block, self.wait, self.stubborn):
            self.handlers.handler(function.__name__)(function)

    async def block(self, job: JobContext) -> str:
        self.begun.append(job.id)
        self.unblocked.wait(LIMIT_S)
        if job.payload == "fail":
            raise ValueError("after it")
        return "done"

    async def wait(self, job: JobContext) -> str:
        self.begun.append(job.id)
        self.loops.add(asyncio.get_running_loop())
        try:
            await self.released.wait()
        except asyncio.CancelledError:
            self.stopped.append(job.id)
            raise
        return "waited"

    async def stubborn(self, job: JobContext) -> str:
        self.begun.append(job.id)
        while not self.released.is_set():
            try:
                await self.released.wait()
            except asyncio.CancelledError:
                self.stopped.append(job.id)
                if job.payload == "result":
                    return "in spite of it"
        return "late"

    def release(self) -> None:
        for loop in self.loops:
            loop.call_soon_threadsafe(self.released.set)


@pytest.fixture(params=spread([uvloop.new_event_loop, asyncio.new_event_loop], check=1))
def make_loop(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    monkeypatch.setattr(handler_loop, "_POLL_S", 0.02)
    monkeypatch.setattr(handler_loop, "STALL_S", 0.5)
    return Work()


@asynccontextmanager
async def running(work: Work, make_loop: Any, **options: Any) -> AsyncIterator[tuple[Stage, HandlerLoop]]:
    loop = HandlerLoop(make_loop)
    loop.start()
    watching = asyncio.create_task(loop.watch())
    try:
        async with staged(work.handlers, handler_loop=loop, **options) as stage:
            yield stage, loop
    finally:
        work.unblocked.set()
        watching.cancel()
        await asyncio.wait({watching})
        await asyncio.to_thread(loop.__exit__, None, None, None)


def error_of(job: Job) -> str:
    assert job.outcome is not None
    return job.outcome.error or ""


async def test_a_blocked_loop_holds_up_neither_the_heartbeat_nor_a_thread(work: Work, make_loop: Any) -> None:
    async with running(work, make_loop) as (stage, loop):
        sibling = stage.world.dispatch("sibling", "wait")
        await until(lambda: work.begun == ["sibling"])
        blocking = stage.world.dispatch("blocking", "block")
        await until(lambda: loop.stall is not None)
        beats = stage.world.beats
        await until(lambda: stage.world.beats > beats and stage.world.draining)
        assert stage.processor.health.not_ready().endswith(BLAMED)
        assert not stage.processor.health.not_alive()
        for job in (blocking, sibling):
            await until(lambda job=job: bool(job.progress))  # type: ignore[misc]  # the default binds it
            assert job.progress[-1].text.endswith(BLAMED)
        work.unblocked.set()
        await until(lambda: loop.stall is None and not stage.world.draining)
        assert not stage.processor.health.not_ready()
        work.release()
        await until(lambda: sibling.outcome is not None and blocking.outcome is not None)
        assert [job.outcome and job.outcome.result for job in (blocking, sibling)] == ["done", "waited"]


async def test_what_has_not_begun_there_is_given_back_and_never_begins(work: Work, make_loop: Any) -> None:
    async with running(work, make_loop) as (stage, loop):
        stage.world.dispatch("blocking", "block")
        await until(lambda: loop.stall is not None)
        waiting = stage.world.dispatch("waiting", "wait")
        await until(lambda: waiting.state is JobState.PENDING)
        assert [reason.endswith(BLAMED) for reason in waiting.reasons] == [True]
        assert waiting.losses == 0
        work.unblocked.set()
        await until(lambda: loop.stall is None)
        work.release()
        last = stage.world.dispatch("last", "block")
        await last.ended()
        assert work.begun == ["blocking", "last"]


async def test_one_that_blocks_for_ever_has_failed_and_its_siblings_are_given_back(
    work: Work, make_loop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handler_loop, "STUCK_S", 1.0)
    monkeypatch.setattr("hascheduler.processor.attempts._LAST_MOMENT_S", 0.01)
    async with running(work, make_loop) as (stage, _):
        sibling = stage.world.dispatch("sibling", "wait")
        await until(lambda: work.begun == ["sibling"])
        blocking = stage.world.dispatch(
            "blocking", "block", rules=Definition(name="block", retry=RetryPolicy(attempts_max=1))
        )
        await until(lambda: blocking.outcome is not None and sibling.state is JobState.PENDING)
        assert error_of(blocking).startswith("given up; the event loop was blocked for ")
        assert [reason.startswith("it could not run; ") for reason in sibling.reasons] == [True]
        assert error_of(blocking).endswith(BLAMED)
        assert sibling.reasons[0].endswith(BLAMED)
        assert sibling.losses == 0
        assert stage.processor.health.not_alive().endswith(BLAMED)
        work.unblocked.set()
        await until(lambda: not stage.processor.health.not_alive() and work.stopped == ["sibling"])


async def test_those_whom_a_callback_blocks_for_ever_are_lost_as_any_of_them_may_have_made_it(
    work: Work, make_loop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def leave_callback(job: JobContext) -> None:
        asyncio.get_running_loop().call_soon(work.unblocked.wait, LIMIT_S)
        await work.released.wait()

    work.handlers.handler("callback")(leave_callback)
    monkeypatch.setattr(handler_loop, "STUCK_S", 1.0)
    monkeypatch.setattr("hascheduler.processor.attempts._LAST_MOMENT_S", 0.01)
    async with running(work, make_loop) as (stage, _):
        job = stage.world.dispatch("a", "callback")
        await until(lambda: job.state is JobState.PENDING)
        assert job.losses == 1
        assert job.reasons[0].endswith(" by a callback: use `def` or process=True")


async def test_a_handler_that_holds_the_interpreter_lock_is_named_in_the_log(work: Work, make_loop: Any) -> None:
    def is_named() -> bool:
        return any(line["event"] == event for line in logged)

    def hold(job: JobContext) -> None:
        # Foreign code that does not release the lock, longer than a stall; between two calls the watch gets a turn.
        for _ in range(4):
            ctypes.PyDLL(None).sleep(2)
            if is_named():
                return

    async def greedy(job: JobContext) -> None:
        hold(job)

    work.handlers.handler("greedy")(greedy)
    event = "process_stalled"
    with structlog.testing.capture_logs() as logged:
        async with running(work, make_loop, deadline_ms=60_000) as (stage, _):
            job = stage.world.dispatch("a", "greedy")
            await until(lambda: job.outcome is not None and is_named())
    line = next(line for line in logged if line["event"] == event)
    assert line["job"] == "a"
    assert line["reason"] == "the handler of 'greedy' may hold the interpreter lock: use process=True"


async def test_a_processor_whose_loop_is_blocked_drains_within_its_grace(
    work: Work, make_loop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hascheduler.processor.processor._STOP_LIMIT_S", 0.05)
    monkeypatch.setattr("hascheduler.processor.attempts._LAST_MOMENT_S", 0.01)
    async with running(work, make_loop, drain_grace_ms=50) as (stage, loop):
        blocking = stage.world.dispatch("blocking", "block")
        await until(lambda: loop.stall is not None)
        await stage.drained()
        assert blocking.state is JobState.PENDING
        assert not work.unblocked.is_set()


async def test_a_cancellation_crosses_and_a_result_that_comes_in_spite_of_it_stands(work: Work, make_loop: Any) -> None:
    async with running(work, make_loop) as (stage, _):
        jobs = [stage.world.dispatch("wait", "wait"), stage.world.dispatch("stubborn", "stubborn", "result")]
        await until(lambda: len(work.begun) == 2)
        for name in ("wait", "stubborn"):
            stage.world.tell(MessageKind.CANCEL, name)
        await until(lambda: all(job.outcome for job in jobs))
        assert sorted(work.stopped) == ["stubborn", "wait"]
        assert [job.state for job in jobs] == [JobState.CANCELLED, JobState.SUCCEEDED]


async def test_the_end_of_the_loop_ends_the_processor(work: Work, make_loop: Any) -> None:
    left: list[asyncio.Task[None]] = []

    async def last_words() -> None:
        raise SystemExit(3)

    async def leave_behind(job: JobContext) -> None:
        left.append(asyncio.create_task(last_words()))

    work.handlers.handler("behind")(leave_behind)
    loop = HandlerLoop(make_loop)
    try:
        loop.start()
        async with staged(work.handlers, handler_loop=loop) as stage:
            stage.world.dispatch("behind", "behind")
            with pytest.raises(RuntimeError, match="handlers' event loop has ended"):
                async with asyncio.timeout(LIMIT_S):
                    await loop.watch()
    finally:
        loop.__exit__(None, None, None)
    assert isinstance(left[0].exception(), SystemExit)
