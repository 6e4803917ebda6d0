"""The inputs that wait for the core: one ordered, bounded queue with one reader, the stepper."""

import asyncio
from collections.abc import Sequence

from hascheduler.dispatch.inputs import Input

INPUTS_MAX = 20_000


class Inbox:
    """Facts wait for room, which holds the stream back; what this process reports of itself never waits."""

    def __init__(self) -> None:
        self._inputs: list[Input] = []
        self._some = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    async def put(self, inputs: Sequence[Input]) -> None:
        """Append facts; waits while the inbox is full. One batch may overshoot the bound, the next one waits."""
        if not inputs:
            return
        await self._room.wait()
        self._append(inputs)

    def put_now(self, *inputs: Input) -> None:
        """Append without waiting: leadership, settlements, the transport's state."""
        self._append(inputs)

    def wake(self) -> None:
        """Have the stepper take a turn although there are no inputs."""
        self._some.set()

    async def wait(self, timeout_s: float) -> None:
        """Until there is something to take, or the time is over."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._some.wait()
        except TimeoutError:
            pass

    def take(self) -> list[Input]:
        inputs, self._inputs = self._inputs, []
        self._some.clear()
        self._room.set()
        return inputs

    def _append(self, inputs: Sequence[Input]) -> None:
        self._inputs.extend(inputs)
        self._some.set()
        if len(self._inputs) >= INPUTS_MAX:
            self._room.clear()
