"""Call a handler within its time limit, and decide how its attempt ended.

A coroutine function runs in the handlers' event loop, a plain function in a thread of its own, a `ProcessHandler` in a
process of its own. The threads are daemon threads, not a pool: at the end of the process a pool waits for its threads,
and a function that never returns would keep a drained processor alive for ever.
"""

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from hascheduler.errors import InvalidInput
from hascheduler.model.job import JobState
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import AttemptOutcome, StartedJob
from hascheduler.processor.attempts import HeldAttempt, StopReason
from hascheduler.processor.child_process import run_in_process
from hascheduler.processor.handler_loop import HandlerLoop, NotBegun, settle
from hascheduler.processor.handlers import Handler, JobContext, ProcessHandler
from hascheduler.processor.outcomes import Failure, checked_result, failure_of
from hascheduler.schema.definition import time_over


@dataclass(frozen=True, slots=True)
class GiveBack:
    """The attempt did not end by itself: the job waits for the next one.

    If ``lost``, it ran, and may have run beside another one; a job that does this to its processors must come to an
    end.
    """

    reason: str
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Drop:
    """The attempt belongs to another processor by now: write nothing about it."""


End = AttemptOutcome | Failure | GiveBack | Drop


async def invoke(handler: Handler, job: JobContext, attempt: HeldAttempt, loop: HandlerLoop | None = None) -> Any:
    """Return what the handler returns or raise what it raises; ``attempt`` knows how long a thread runs.

    Coroutines run in ``loop``, or in the current one if None, for tests.
    """

    async def awaited(make: Callable[[], Awaitable[Any]]) -> Any:
        return await (make() if loop is None else loop.run(make, job, attempt))

    if isinstance(handler, ProcessHandler):
        return await run_in_process(handler, job, attempt)
    try:
        if inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(type(handler).__call__):
            return await awaited(lambda: handler(job))
        attempt.in_thread = True
        try:
            result = await run_in_thread(handler, job)
        finally:
            attempt.in_thread = False
        if inspect.isawaitable(result) and attempt.timed_out:
            if inspect.iscoroutine(result):
                result.close()
            raise asyncio.CancelledError
        return await awaited(lambda: result) if inspect.isawaitable(result) else result
    except (SystemExit, KeyboardInterrupt) as error:  # it may end its job, not the event loop with all its jobs
        raise RuntimeError(f"the handler raised {type(error).__name__}") from error


def end_of(handler: asyncio.Task[Any], reason: StopReason | None, timeout: Failure, *, late: bool) -> End:
    """Return how an attempt ended whose handler is done, and which was stopped for ``reason``, or for a ``timeout``.

    A result counts even after a request to cancel or a drain, as it came first. A ``late`` result, after the timeout,
    does not: the attempt has failed by then. An error does not count either: a handler that is being stopped may raise
    anything.
    """
    if reason is not None and (late or reason is StopReason.REVOKED or reason is StopReason.FENCED):
        return unfinished(reason, timeout)
    error = asyncio.CancelledError("the handler cancelled itself") if handler.cancelled() else handler.exception()
    if error is None:
        try:
            return AttemptOutcome(JobState.SUCCEEDED, result=checked_result(handler.result()))
        except InvalidInput as refused:
            return failure_of(refused)
    if reason is not None:
        return unfinished(reason, timeout)
    if isinstance(error, NotBegun):
        return GiveBack(str(error))
    return failure_of(error)


def unfinished(reason: StopReason, timeout: Failure) -> End:
    """Return how an attempt ends that was stopped before it had a result."""
    match reason:
        case StopReason.DRAINED:
            return GiveBack("the processor is draining")
        case StopReason.BLOCKED:
            return GiveBack("it could not run")
        case StopReason.TIMED_OUT:
            return timeout
        case StopReason.BLOCKING:
            return Failure("given up", error_type="blocking")
        case StopReason.CANCELLED:
            return AttemptOutcome(JobState.CANCELLED)
        case StopReason.REVOKED:
            return Drop()
        case StopReason.FENCED:
            return GiveBack("no heartbeat was written in time", lost=True)


async def run_in_thread(function: Callable[[JobContext], Any], job: JobContext) -> Any:
    """Return what ``function`` returns, or raise what it raises.

    The first cancellation still waits for the thread, as it can't be stopped and does its work; the function learns of
    it through `JobContext.stop_requested`. The second one abandons the thread.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def work() -> None:
        result: Any = None
        error: BaseException | None = None
        try:
            result = function(job)
        except BaseException as raised:
            error = raised
        with suppress(RuntimeError):  # the loop is closed: the thread was abandoned
            loop.call_soon_threadsafe(settle, done, result, error)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), name=f"handler {job.id}/{job.attempt}", daemon=True).start()
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        if done.done():
            return done.result()
    return await done


CANCEL_AGAIN_S = 5.0
"""How long a coroutine may ignore its timeout before it is cancelled again and abandoned.

This ends before the leader gives the job to others, `DispatchConfig.timeout_grace_ms` after the timeout. A thread is
not abandoned: its attempt is overdue until it has ended.
"""


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """A time limit; ``span_ms`` None means none. ``failure`` is what the attempt ends with if it times out."""

    span_ms: int | None
    at_ms: WallMs | None
    failure: Failure

    @classmethod
    def of(cls, started: StartedJob, now: WallMs) -> "TimeLimit":
        """Return the nearer one of the attempt's own timeout and the end of the total one."""
        over = time_over(
            started.rules, now, started.first_started_at_ms, failures=started.failures, losses=started.losses
        )
        if over is None:
            return cls(None, None, Failure("timed out"))
        at_ms = max(over.at_ms, now)
        return cls(at_ms - now, at_ms, Failure(over.error, final=over.final))

    @contextmanager
    def watched(self, attempt: HeldAttempt) -> Iterator[None]:
        """Stop ``attempt`` when the time is up, and abandon its handler if it does not stop."""
        if self.span_ms is None:
            yield
            return
        loop = asyncio.get_running_loop()
        attempt.overdue_since_ms = self.at_ms
        first = loop.call_later(self.span_ms / 1000, attempt.stop, StopReason.TIMED_OUT)
        second = loop.call_later(self.span_ms / 1000 + CANCEL_AGAIN_S, attempt.cancel_again)
        try:
            yield
        finally:
            first.cancel()
            second.cancel()
