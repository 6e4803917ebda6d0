"""The event loop of all coroutine handlers of a process, in a thread of its own.

::

    the processor's loop: heartbeats, messages, MongoDB         the handlers' loop, in its thread
      HandlerLoop.run ───── the coroutine, its context ───────►   a task
                      ───── cancellations ────────────────────►
                      ◄──── result, error ─────────────────────
      HandlerLoop.watch ─── a callback four times a second ────►  unanswered for `STALL_S`: it is stalled

A handler that blocks (`time.sleep` in an ``async def``) delays its siblings, but neither the heartbeat nor messages.
While the loop is stalled this processor gets no new jobs, and a coroutine that has not begun is withdrawn, so that its
job runs elsewhere. After `STUCK_S` the attempts there are given up, as the stall may last for ever.

There is one such loop, which lives as long as the process: handlers share sessions and clients that are bound to it.
"""

import asyncio
import contextvars
import sys
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import structlog

from hascheduler.processor.attempts import HeldAttempt, Key, StopReason
from hascheduler.processor.handlers import JobContext

log = structlog.get_logger(__name__)

T = TypeVar("T")
STALL_S = 1.0
"""A loop that has not turned for this long is stalled."""
STUCK_S = 60.0
"""Attempts on a loop that is stalled for this long are given up, unless their own timeout came first."""
_POLL_S = 0.25
_REMEMBERED_S = 5.0
"""A failure this soon after a stall may have come from it."""
_CLOSE_LIMIT_S = 2.0


class NotBegun(Exception):
    """The coroutine was withdrawn before its first step."""


class Stall:
    """One stall of the loop. The watch owns it; the attempts that it delayed keep it."""

    def __init__(self) -> None:
        self.for_s = 0.0
        self.ended_at_s: float | None = None
        self._seen: Counter[tuple[str, Key] | None] = Counter()

    def seen(self, running: "_Call | None", elapsed_s: float) -> None:
        self.for_s += elapsed_s
        self._seen[None if running is None else (running.job.definition, running.attempt.key)] += 1

    @property
    def blocker(self) -> tuple[str, Key] | None:
        """Return the definition and attempt seen most often; None if a callback of no handler blocks."""
        return self._seen.most_common(1)[0][0]

    def explains(self, key: Key) -> bool:
        """Return True if an attempt that was there and fails now may have failed because of it."""
        is_blocker = self.blocker is not None and self.blocker[1] == key
        return is_blocker or self.ended_at_s is None or time.monotonic() - self.ended_at_s < _REMEMBERED_S

    def __str__(self) -> str:
        blocker = "a callback" if self.blocker is None else f"the handler of {self.blocker[0]!r}"
        return f"the event loop was blocked for {self.for_s:.0f} s by {blocker}: use `def` or process=True"


class HandlerLoop:
    """Owner of the loop and of its stalls. ``make`` makes the loop.

    It is entered and left in the main thread, outside of any loop; the processor's loop calls `start`, `run` and
    `watch`.
    """

    def __init__(self, make: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop) -> None:
        self._loop = make()
        self._loop.set_task_factory(self._new_task)
        self._closing = asyncio.Event()
        self._thread = threading.Thread(target=self._live, name="handlers", daemon=True)
        self._calls: set[_Call] = set()
        self._called_by: WeakKeyDictionary[asyncio.Task[Any], _Call] = WeakKeyDictionary()
        self._asked = False
        self.stall: Stall | None = None
        """The stall that has not ended."""

    def __enter__(self) -> "HandlerLoop":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread.ident is None:
            self._loop.close()
            return
        with suppress(RuntimeError):  # it has ended by itself
            self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join(_CLOSE_LIMIT_S)
        if self._thread.is_alive():
            log.warning("handler_loop_abandoned", at=self._place())

    def before_start(self, function: Callable[[], T]) -> T:
        """Call ``function`` in this thread and in the loop, so that what it makes may be bound to the loop."""

        async def called() -> T:
            return function()

        return self._loop.run_until_complete(called())

    def start(self) -> None:
        self._thread.start()

    @property
    def is_stuck(self) -> bool:
        return self.stall is not None and self.stall.for_s >= STUCK_S

    async def run(self, make: Callable[[], Awaitable[Any]], job: JobContext, attempt: HeldAttempt) -> Any:
        """Return what the awaitable of ``make`` returns or raises in the handlers' loop, in the caller's context.

        A cancellation goes there, and its outcome is awaited until ``attempt`` is abandoned. Raise `NotBegun` if the
        loop is stalled and the coroutine has not begun.
        """
        call = _Call(make, job, attempt, self._loop)
        self._calls.add(call)
        try:
            return await call.ended()
        finally:
            self._calls.discard(call)

    async def watch(self) -> None:
        """Watch for stalls until cancelled; raise `RuntimeError`, which ends the process, if the loop ends itself."""
        polled_at_s, asked_for_s = time.monotonic(), 0.0
        while True:
            if not self._asked:
                self._over()
                self._asked, asked_for_s = True, 0.0
                with suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(self._turned)
            await asyncio.sleep(_POLL_S)
            if not self._thread.is_alive():
                raise RuntimeError("the handlers' event loop has ended: a task in it raised SystemExit")
            passed_s, polled_at_s = time.monotonic() - polled_at_s, time.monotonic()
            if passed_s >= STALL_S + _POLL_S:
                self._had_no_turn(passed_s)
            # At most what this loop has seen: in a pause of the whole process neither loop turned.
            elapsed_s = min(passed_s, 2 * _POLL_S)
            asked_for_s += elapsed_s
            if self._asked and asked_for_s >= STALL_S:
                self._stalled(asked_for_s if self.stall is None else elapsed_s)

    def _stalled(self, elapsed_s: float) -> None:
        running = self._running()
        is_new, was_stuck = self.stall is None, self.is_stuck
        stall = self.stall = self.stall or Stall()
        stall.seen(running, elapsed_s)
        if is_new or was_stuck is not self.is_stuck:
            job_id, number = ("", 0) if running is None else running.attempt.key
            log.warning("handler_loop_stalled", reason=str(stall), job=job_id, attempt=number, at=self._place())
        for call in self._calls:
            if call.withdraw():
                call.settle(None, NotBegun(str(stall)))
                continue
            attempt = call.attempt
            attempt.stall = stall
            call.job.progress(None if attempt.progress is None else attempt.progress.percent, str(stall))
            if self.is_stuck and not was_stuck:
                attempt.stop(StopReason.BLOCKING if call is running else StopReason.BLOCKED)
                attempt.cancel_again()

    def _had_no_turn(self, passed_s: float) -> None:
        """Name the handler that ran while this loop stalled too: it may hold the interpreter lock."""
        running = self._running()
        if running is not None:
            log.warning(
                "process_stalled",
                for_s=round(passed_s, 1),
                reason=f"the handler of {running.job.definition!r} may hold the interpreter lock: use process=True",
                job=running.job.id,
                attempt=running.job.attempt,
                at=self._place(),
            )

    def _running(self) -> "_Call | None":
        task = asyncio.current_task(self._loop)
        return None if task is None else self._called_by.get(task)

    def _over(self) -> None:
        if self.stall is not None:
            self.stall.ended_at_s = time.monotonic()
            log.warning("handler_loop_resumed", reason=str(self.stall))
            self.stall = None

    def _place(self) -> str:
        """Return the line at which the loop's thread is."""
        frame = sys._current_frames().get(self._thread.ident or 0)
        return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"

    # In the handlers' thread

    def _live(self) -> None:
        # If a handler's task raises one of these, the loop ends, and `watch` ends the process.
        with suppress(SystemExit, KeyboardInterrupt), asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._until_closed())

    async def _until_closed(self) -> None:
        await self._closing.wait()

    def _turned(self) -> None:
        self._asked = False

    def _new_task(self, loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
        """Remember which handler began the task, as any of its tasks may be the one that blocks."""
        task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=loop, **options)
        context = options.get("context") or contextvars.copy_context()
        call = context.get(_CALL)
        if call is not None:
            self._called_by[task] = call
        return task


class _Call:
    """One coroutine on its way through the handlers' loop. The lock decides whether it begins or is withdrawn."""

    def __init__(
        self,
        make: Callable[[], Awaitable[Any]],
        job: JobContext,
        attempt: HeldAttempt,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.job = job
        self.attempt = attempt
        self._make = make
        self._loop = loop
        self._home = asyncio.get_running_loop()
        self._done: asyncio.Future[Any] = self._home.create_future()
        # Retrieve the exception here: perhaps no one awaits the future any more.
        self._done.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._lock = threading.Lock()
        self._begun = self._withdrawn = False
        self._task: asyncio.Task[None] | None = None
        context = contextvars.copy_context()
        context.run(_CALL.set, self)
        loop.call_soon_threadsafe(self._begin, context=context)

    async def ended(self) -> Any:
        while True:
            try:
                return await asyncio.shield(self._done)
            except asyncio.CancelledError:
                if self._done.done():
                    return self._done.result()
                if self.withdraw():
                    raise
                with suppress(RuntimeError):  # the loop is closed
                    self._loop.call_soon_threadsafe(self._cancel)
                if not self.attempt.is_running:
                    raise

    def withdraw(self) -> bool:
        """Return True if it never began, and now never will."""
        with self._lock:
            self._withdrawn = self._withdrawn or not self._begun
            return self._withdrawn

    def settle(self, result: Any, error: BaseException | None) -> None:
        settle(self._done, result, error)

    # In the handlers' thread

    def _begin(self) -> None:
        self._task = self._loop.create_task(self._work(), name=f"handler {self.job.id}/{self.job.attempt}")

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _work(self) -> None:
        with self._lock:
            if self._withdrawn:
                return
            self._begun = True
        result: Any = None
        error: BaseException | None = None
        try:
            result = await self._make()
        except BaseException as raised:  # a SystemExit ends its job, not the loop with all its jobs
            error = raised
        with suppress(RuntimeError):  # the processor's loop is closed
            self._home.call_soon_threadsafe(self.settle, result, error)


_CALL: contextvars.ContextVar[_Call | None] = contextvars.ContextVar("call", default=None)


def settle(done: "asyncio.Future[Any]", result: Any, error: BaseException | None) -> None:
    """Pass to ``done`` what a handler returned or raised in another thread."""
    if done.done():
        return
    if error is None:
        done.set_result(result)
    elif isinstance(error, asyncio.CancelledError):
        done.cancel()
    elif isinstance(error, Exception) and not isinstance(error, StopIteration):
        done.set_exception(error)
    else:
        # No future takes a StopIteration, and a SystemExit would end the event loop.
        done.set_exception(RuntimeError(f"the handler raised {type(error).__name__}"))
