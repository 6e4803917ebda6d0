"""The slots of a process: each handler that runs has one."""

import asyncio


class ProcessSlots(asyncio.Semaphore):
    """Attempts get them in the order in which they ask."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.freed = 0
        """How often one became free."""

    def release(self) -> None:
        self.freed += 1
        super().release()
