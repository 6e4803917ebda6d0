"""An event loop on virtual time: when nothing is ready to run, its clock jumps to the next timer.

Owner of the virtual clock. A week passes in as long as its callbacks take. Two things take real time, and the clock
stops for them: threads (a plain function that handles a job, `asyncio.to_thread`), and the sockets of a running
handler, until they have been silent for `IO_GRACE_S`.

How long plain functions take in real time changes nothing: they run in parallel, and their results are taken in the
order in which they began, each when nothing else is ready to run.
"""

import asyncio
import heapq
import selectors
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context, ContextVar
from typing import Any, TypeVar

from hascheduler.errors import HaschedulerError

IO_GRACE_S = 1.0
"""Real seconds that sockets may be silent before the clock goes on: enough for an answer from this machine."""
THREAD_LIMIT_S = 60.0
"""Real seconds that the clock stops for a thread: a handler that takes longer hangs."""


T = TypeVar("T")
_IN_HANDLER: ContextVar[bool] = ContextVar("in_handler", default=False)


class ClockStuck(HaschedulerError):
    """A thread has not returned within `THREAD_LIMIT_S` of real time, or nothing is left that time could bring."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop to run with `run_until_complete` from one thread; `time` is virtual, in seconds from 0."""

    def __init__(self) -> None:
        self._now_s = 0.0
        self._threads = 0
        # The turns of plain functions, in the order in which they began: True once the thread has returned.
        self._turns: dict[asyncio.Future[None], bool] = {}
        self._handlers = 0
        self._patience_s = IO_GRACE_S
        self._handler_timers: list[float] = []
        self._jumping = _JumpingSelector(self)
        super().__init__(self._jumping)
        # The sum of the jumps may be a rounding error below the timer's instant.
        self._clock_resolution = 1e-6

    def time(self) -> float:
        return self._now_s

    def leap(self, seconds: float) -> None:
        """Let that much time pass at once: each timer due in it fires once and late, as after a pause."""
        assert seconds >= 0
        self._now_s += seconds

    @property
    def may_leap(self) -> bool:
        """Return True if no handler waits for an answer from outside."""
        return not (self._threads or self._turns or self._waits_for_sockets(self._jumping.sockets))

    def next_handler_timer_s(self) -> float:
        """Return when a handler goes on or its attempt has to stop, whichever is first; infinite if neither is due."""
        while self._handler_timers and self._handler_timers[0] <= self._now_s:
            heapq.heappop(self._handler_timers)
        return self._handler_timers[0] if self._handler_timers else float("inf")

    @contextmanager
    def handling(self, deadline_s: float | None) -> Iterator[None]:
        """Mark that a handler runs in the present task; its attempt is stopped at ``deadline_s``."""
        _IN_HANDLER.set(True)
        if deadline_s is not None:
            heapq.heappush(self._handler_timers, deadline_s)
        self._handlers += 1
        try:
            yield
        finally:
            self._handlers -= 1

    async def standing_still(self, thread: Awaitable[T]) -> T:
        """Return or raise the outcome of a plain function's thread, once it is its turn."""
        turn: asyncio.Future[None] = self.create_future()
        self._turns[turn] = False
        try:
            return await thread
        finally:
            self._turns[turn] = True
            while not turn.done():
                with suppress(asyncio.CancelledError):  # the function has ended already
                    await asyncio.shield(turn)

    def call_at(  # type: ignore[override]  # with arguments of any types
        self, when: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        if _IN_HANDLER.get():
            heapq.heappush(self._handler_timers, when)
        return super().call_at(when, callback, *args, context=context)

    def run_in_executor(  # type: ignore[override]  # with arguments of any types
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        self._threads += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._returned)
        return future

    def wait(self, select: Callable[[float | None], list[Any]], timeout_s: float | None, sockets: int) -> list[Any]:
        """Return what is ready. If nothing is, pass ``timeout_s``; if that is None (no timer), raise `ClockStuck`.

        This is the one place where time passes.
        """
        if timeout_s is not None and timeout_s <= 0:
            return select(0)
        first = next(iter(self._turns), None)
        if first is not None and self._turns[first]:
            del self._turns[first]
            first.set_result(None)
            return select(0)
        if self._threads or self._turns:
            events = select(THREAD_LIMIT_S)
            if not events:
                raise ClockStuck(f"a thread has not returned within {THREAD_LIMIT_S:g} s of real time")
            return events
        events = select(self._patience_s if self._waits_for_sockets(sockets) else 0)
        self._patience_s = IO_GRACE_S if events else 0.0
        if events:
            return events
        if timeout_s is None:
            raise ClockStuck("time can't pass: no timer is set and nothing is ready")
        self._now_s += timeout_s
        return []

    def sockets_changed(self) -> None:
        self._patience_s = IO_GRACE_S

    def _waits_for_sockets(self, sockets: int) -> bool:
        return bool(self._handlers and sockets and self._patience_s)

    def _returned(self, _: asyncio.Future[Any]) -> None:
        self._threads -= 1


class _JumpingSelector(selectors.DefaultSelector):
    """The system's selector; the loop decides how long it waits."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    @property
    def sockets(self) -> int:
        """Return the number of sockets without the loop's own pipe, through which threads wake it."""
        return len(self.get_map()) - 1

    def select(self, timeout: float | None = None) -> list[Any]:
        return self._loop.wait(super().select, timeout, self.sockets)

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        self._loop.sockets_changed()
        return super().register(fileobj, events, data)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        self._loop.sockets_changed()
        return super().modify(fileobj, events, data)
