"""One thread, many processes, no real time: an event loop that is a whole cluster's.

Every callback belongs to the `Process` in whose context it was scheduled. A process has a ready queue of its own, in
which order is kept as asyncio promises; which process gets the next turn is drawn by chance, so their interleavings
differ from seed to seed. Time passes only when nobody is ready: it jumps to the next timer.

A process can be paused (what comes due waits until it is resumed), can crash (what it would do next never happens, no
``finally`` runs), and has clocks of its own: an offset, and a rate at which its timers run too.

The same seed gives the same run: the order of the ready queues, the timers' ties and the hashes of tasks and futures,
which decide how sets of them are gone through, all follow from counters. It takes a fixed PYTHONHASHSEED as well.
"""

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, field
from random import Random
from typing import Any

from hascheduler.model.values.instants import MonoMs, WallMs

EPOCH_MS = 1_700_006_382_000
"""The wall time at which every simulation begins: 18 s before midnight, which comes while there is trouble."""
_TURNS_MAX = 20_000_000
"""A run that takes more callbacks than this goes round in circles."""


@dataclass(eq=False)
class Process:
    """Owner of its clocks and of what waits to be run in it. The loop is its only scheduler."""

    name: str
    rate: float = 1.0
    offset_ms: int = 0
    is_paused: bool = False
    is_dead: bool = False
    ready: deque[asyncio.Handle] = field(default_factory=deque)
    _mono_s: float = 0.0
    _since_s: float = 0.0

    def mono_s(self, now_s: float) -> float:
        return self._mono_s + (now_s - self._since_s) * self.rate

    def wall_ms(self, now_s: float) -> int:
        return EPOCH_MS + self.offset_ms + int(self.mono_s(now_s) * 1000)

    def run_at_rate(self, rate: float, now_s: float) -> None:
        """From now on its clocks, and the timers it sets, run at ``rate``."""
        self._mono_s, self._since_s, self.rate = self.mono_s(now_s), now_s, rate

    def die(self) -> None:
        """Nothing of it runs any more, not even what would clean up."""
        self.is_dead = True
        self.ready.clear()


THE_WORLD = Process("world")
"""Whatever is not a process of ours: the servers, the network, the story itself. It is never paused."""

_PROCESS: ContextVar[Process] = ContextVar("process", default=THE_WORLD)


def current_process() -> Process:
    return _PROCESS.get()


class _Future(asyncio.Future[Any]):
    def __init__(self, *, loop: "SimLoop") -> None:
        super().__init__(loop=loop)
        self._number = loop.next_number()

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        return self is other


class _Task(asyncio.Task[Any]):
    def __init__(self, coroutine: Any, *, loop: "SimLoop", name: Any = None, context: Any = None) -> None:
        self._number = loop.next_number()
        super().__init__(coroutine, loop=loop, name=name, context=context)

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        return self is other


class SimLoop(asyncio.BaseEventLoop):
    """``chance`` decides the interleaving. Run it with `run_until_complete`, from no thread but this one."""

    def __init__(self, chance: Random) -> None:
        super().__init__()
        self._chance = chance
        self._now_s = 0.0
        self._numbers = itertools.count(1)
        self._timers: list[tuple[float, int, Process, asyncio.TimerHandle]] = []
        self._processes: list[Process] = [THE_WORLD]
        self._turns = 0
        self._left: list[Any] = []
        THE_WORLD.ready.clear()
        self.set_task_factory(self._make_task)

    @property
    def now_s(self) -> float:
        """The true time, by no process' clock."""
        return self._now_s

    def next_number(self) -> int:
        return next(self._numbers)

    # Processes

    def spawn(self, process: Process, main: Callable[[], Coroutine[Any, Any, Any]]) -> asyncio.Task[Any]:
        """A new process that runs ``main``."""
        process.run_at_rate(process.rate, self._now_s)
        if process not in self._processes:
            self._processes.append(process)
        return self.create_task_in(process, main())

    def create_task_in(self, process: Process, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        context = copy_context()
        context.run(_PROCESS.set, process)
        return self.create_task(coroutine, context=context)

    def call_in(self, process: Process, delay_s: float, callback: Callable[..., Any], *arguments: Any) -> None:
        """Run ``callback`` in that process after ``delay_s`` of true time."""
        context = copy_context()
        context.run(_PROCESS.set, process)
        handle = asyncio.TimerHandle(self._now_s + delay_s, callback, arguments, self, context)
        self._push(self._now_s + delay_s, process, handle)

    def bury(self, process: Process) -> None:
        """It crashes now."""
        process.die()
        self._processes.remove(process)

    # What asyncio asks of a loop

    def time(self) -> float:
        return current_process().mono_s(self._now_s)

    def call_soon(  # type: ignore[override]  # with arguments of any types
        self, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        context = copy_context() if context is None else context
        handle = asyncio.Handle(callback, args, self, context)
        process = context.get(_PROCESS, THE_WORLD)
        if process.is_dead:
            self._left.append(handle)  # its coroutine must not be closed by the collector either
        else:
            process.ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]  # there is one thread

    def call_at(  # type: ignore[override]  # with arguments of any types
        self, when: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        context = copy_context() if context is None else context
        process = context.get(_PROCESS, THE_WORLD)
        true_s = self._now_s + max(0.0, when - process.mono_s(self._now_s)) / process.rate
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        if not process.is_dead:
            self._push(true_s, process, handle)
        return handle

    def call_later(  # type: ignore[override]  # with arguments of any types
        self, delay: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def create_future(self) -> asyncio.Future[Any]:
        return _Future(loop=self)

    def _make_task(self, loop: Any, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
        task = _Task(coroutine, loop=self, **options)
        self._left.append(task)
        return task

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        pass  # a cancelled one is passed over when its time comes

    def _write_to_self(self) -> None:
        pass

    def _process_events(self, event_list: Any) -> None:
        pass

    def _run_once(self) -> None:
        self._turns += 1
        if self._turns > _TURNS_MAX:
            raise RuntimeError(f"{_TURNS_MAX} turns by {self._now_s:.1f} s of simulated time")
        runnable = [process for process in self._processes if process.ready and not process.is_paused]
        if not runnable:
            self._pass_time()
            return
        process = runnable[self._chance.randrange(len(runnable))] if len(runnable) > 1 else runnable[0]
        # As a real loop: what is ready now, and nothing that these make ready.
        for _ in range(len(process.ready)):
            if process.is_paused or not process.ready:
                break  # paused or killed in the middle
            handle = process.ready.popleft()
            if not handle.cancelled():
                handle._run()
        if self._timers and self._chance.random() < 0.02:
            # Work takes time: what is due in a moment may come in between.
            self._now_s += 0.0002

    def _pass_time(self) -> None:
        while self._timers:
            when, _, process, handle = heapq.heappop(self._timers)
            if process.is_dead or handle.cancelled():
                continue
            self._now_s = max(self._now_s, when)
            process.ready.append(handle)
            if not process.is_paused:
                return
        raise RuntimeError(f"nothing will ever happen again, at {self._now_s:.3f} s: every task waits for another")

    def _push(self, when: float, process: Process, handle: asyncio.TimerHandle) -> None:
        heapq.heappush(self._timers, (when, self.next_number(), process, handle))


class SimClock:
    """`hascheduler.ports.Clock` of one process."""

    def __init__(self, loop: SimLoop, process: Process) -> None:
        self._loop = loop
        self._process = process

    def wall_ms(self) -> WallMs:
        return WallMs(self._process.wall_ms(self._loop.now_s))

    def mono_ms(self) -> MonoMs:
        return MonoMs(int(self._process.mono_s(self._loop.now_s) * 1000))
