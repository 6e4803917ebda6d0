"""A system that runs, ours or a peer's, as the workloads see it."""

from typing import Protocol

from hascheduler.demo.evidence import Effect


class Running(Protocol):
    async def submit(self, jobs: int, batch: int) -> int:
        """Have so many no-op jobs submitted; when that began. They may still be on their way.

        ``batch`` a request, where there are batches.
        """

    async def schedule(self, count: int) -> None:
        """So many schedules of 1 s, all there, and instances that see to them."""

    async def kill(self) -> int:
        """SIGKILL one instance; when that was."""

    async def restore(self) -> None:
        """That instance again, and all of them at work."""

    def effects(self) -> list[Effect]:
        """All of jobs and fires so far."""

    def check(self) -> None:
        """`CannotRun` if a process that should run has ended."""
