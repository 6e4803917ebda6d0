"""The slots of a process: each running handler has one."""

import asyncio


class ProcessSlots(asyncio.Semaphore):
    """Slots that attempts get in the order in which they ask."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.freed = 0
        """How often a slot became free."""

    def release(self) -> None:
        self.freed += 1
        super().release()
