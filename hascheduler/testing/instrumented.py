"""The handlers of a test, with the faults that the test plans for them, and a record of every call."""

import asyncio
import inspect
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from hascheduler.processor import Handlers, JobContext
from hascheduler.processor.invocation import run_in_thread
from hascheduler.testing.virtual_loop import VirtualLoop

Handler = Callable[[JobContext], Any]
CrashPoint = Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a handler: when it began, and its arguments."""

    at: datetime
    definition: str
    payload: Any
    job: JobContext


@dataclass(slots=True)
class Plan:
    """The faults planned for the attempts of one definition."""

    errors: deque[Exception] = field(default_factory=deque)
    crashes: deque[CrashPoint] = field(default_factory=deque)
    takes_s: float = 0.0


class InstrumentedHandlers:
    """Owner of handlers, calls and plans. ``now`` is virtual; ``crash`` kills the processor that a job runs in."""

    def __init__(self, now: Callable[[], datetime], crash: Callable[[JobContext], None]) -> None:
        self._now = now
        self._crash = crash
        self._handlers: dict[str, Handler] = {}
        self.plans: dict[str, Plan] = defaultdict(Plan)
        self.calls: list[Call] = []

    def put(self, definition: str, function: Handler) -> None:
        """Register a handler; raise `InvalidInput` for an invalid name or a function that can't take a job."""
        Handlers().handler(definition)(function)
        self._handlers[definition] = function

    def registry(self, loop: VirtualLoop) -> Handlers:
        """Return the handlers as a processor takes them."""
        registry = Handlers()
        for definition, function in self._handlers.items():
            registry.handler(definition)(self._instrumented(function, loop))
        return registry

    def _instrumented(self, function: Handler, loop: VirtualLoop) -> Callable[[JobContext], Awaitable[Any]]:
        async def handle(job: JobContext) -> Any:
            left_s = None if job.deadline_ms is None else job.deadline_ms / 1_000 - self._now().timestamp()
            with loop.handling(None if left_s is None else loop.time() + left_s):
                plan = self.plans[job.definition]
                if plan.takes_s:
                    await asyncio.sleep(plan.takes_s)
                crash = plan.crashes.popleft() if plan.crashes else None
                if crash == "before":
                    await self._die(job)
                self.calls.append(Call(self._now(), job.definition, job.payload, job))
                if plan.errors:
                    raise plan.errors.popleft()
                if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
                    result = await function(job)
                else:
                    result = await loop.standing_still(run_in_thread(function, job))
                    if inspect.isawaitable(result):
                        result = await result
                if crash == "after":
                    await self._die(job)
                return result

        return handle

    async def _die(self, job: JobContext) -> None:
        self._crash(job)
        await asyncio.Event().wait()  # cancelled with the processor
