"""Record the leader's inputs and decisions from one moment on, complete or not at all.

A recording begins with the state of the core, between two of its steps, and goes on with each step. It is a bounded
queue: a slow reader loses the recording, and never delays the leader.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

from hascheduler.dispatch.decisions import Decision
from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.dispatch.inputs import Input
from hascheduler.dispatch.recording import RecordedStep, RecordingEnd
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import Clock

RECORDINGS_MAX = 4
_STEPS_MAX = 10_000
_FACTS_AT_ONCE = 1_000


class Recorder:
    """Owner of the recordings in progress. ``term`` is the present term while this replica decides, else None."""

    def __init__(self, core: Dispatcher, clock: Clock, *, term: Callable[[], int | None]) -> None:
        self._core = core
        self._clock = clock
        self.term = term
        self._readers: dict[asyncio.Queue[RecordedStep | RecordingEnd], None] = {}

    def stepped(self, now: WallMs, inputs: Sequence[Input], decisions: tuple[Decision, ...]) -> None:
        """Record a step of the core; called at once after each."""
        if not self._readers or not (inputs or decisions):
            return
        step = RecordedStep(now, tuple(inputs), decisions)
        for queue in list(self._readers):
            if queue.qsize() < _STEPS_MAX:
                queue.put_nowait(step)
            else:
                self._end(queue, "read too slowly")

    def follows(self) -> None:
        """End all recordings: this replica does not decide (any more)."""
        for queue in list(self._readers):
            self._end(queue, "this replica no longer leads")

    @property
    def is_taken(self) -> bool:
        """Return True if there are as many recordings as allowed."""
        return len(self._readers) >= RECORDINGS_MAX

    async def record(self, for_ms: int) -> AsyncIterator[RecordedStep | RecordingEnd]:
        """Yield the state of the core now, then its steps for this time; end with the reason."""
        loop = asyncio.get_running_loop()
        until = loop.time() + for_ms / 1_000
        with self._queue() as queue:
            now = self._clock.wall_ms()
            facts = self._core.state_snapshot(now)
            while some := tuple(islice(facts, _FACTS_AT_ONCE)):
                yield RecordedStep(now, some, None)
                await asyncio.sleep(0)
            while True:
                try:
                    async with asyncio.timeout_at(until):
                        step = await queue.get()
                except TimeoutError:
                    yield RecordingEnd("its time is up")
                    return
                yield step
                if isinstance(step, RecordingEnd):
                    return

    @contextmanager
    def _queue(self) -> Iterator[asyncio.Queue[RecordedStep | RecordingEnd]]:
        queue: asyncio.Queue[RecordedStep | RecordingEnd] = asyncio.Queue()
        self._readers[queue] = None
        try:
            yield queue
        finally:
            self._readers.pop(queue, None)

    def _end(self, queue: asyncio.Queue[RecordedStep | RecordingEnd], reason: str) -> None:
        del self._readers[queue]
        queue.put_nowait(RecordingEnd(reason))
