"""The inputs that wait for the core: one ordered, bounded queue with one reader, the stepper.

Inputs that can wait (`hascheduler.dispatch.inputs.can_wait`) do not wake it: the next one that can't, or a bounded
time, takes them along. Most of a job's inputs are of that kind, and a step has its price, however few inputs it gets.
"""

import asyncio
from collections.abc import Sequence

from hascheduler.dispatch.inputs import Input, can_wait

INPUTS_MAX = 20_000
_WAITING_MAX_S = 0.05
"""The longest wait of inputs that can wait: as long as a follower lets the stream gather."""
_GATHERED_MAX = 500
"""From this many on they no longer wait, or the step that takes them would be long."""


class Inbox:
    """Owner of the waiting inputs. Facts wait for room, which holds the stream back; this process's reports don't.

    The reader sets ``ends_can_wait`` after each step: the core awaits the end of no job.
    """

    def __init__(self) -> None:
        self._inputs: list[Input] = []
        self._some = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._alarm: asyncio.TimerHandle | None = None
        self.ends_can_wait = False

    async def put(self, inputs: Sequence[Input]) -> None:
        """Append facts; wait while the inbox is full. One batch may overshoot the bound, the next one waits."""
        if not inputs:
            return
        await self._room.wait()
        self._append(inputs)

    def put_now(self, *inputs: Input) -> None:
        """Append without waiting: leadership, settlements, the transport's state."""
        self._append(inputs)

    def wake(self) -> None:
        """Make the stepper take a turn although there are no inputs."""
        self._some.set()

    async def wait(self, timeout_s: float) -> None:
        """Return once an input can't wait or has waited, or on the timeout; yield to the loop at least once."""
        if self._some.is_set() or timeout_s <= 0:
            await asyncio.sleep(0)
            return
        over = asyncio.get_running_loop().call_later(timeout_s, self._some.set)
        try:
            await self._some.wait()
        finally:
            over.cancel()

    def take(self) -> list[Input]:
        inputs, self._inputs = self._inputs, []
        self._some.clear()
        self._room.set()
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        return inputs

    def _append(self, inputs: Sequence[Input]) -> None:
        self._inputs.extend(inputs)
        if len(self._inputs) >= INPUTS_MAX:
            self._room.clear()
        if self._some.is_set():
            return
        if len(self._inputs) >= _GATHERED_MAX or not all(
            can_wait(seen, ends_too=self.ends_can_wait) for seen in inputs
        ):
            self._some.set()
        elif self._alarm is None and inputs:
            self._alarm = asyncio.get_running_loop().call_later(_WAITING_MAX_S, self._some.set)
