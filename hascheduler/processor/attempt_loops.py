"""Loops over the running attempts, once a heartbeat interval: reports go out, stop requests come in.

One write stores all new progress, another which attempts are overdue. One read asks which attempts must stop, as cancel
messages may be lost.
"""

import asyncio
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import structlog

from hascheduler.errors import WorldError
from hascheduler.lifecycle import leave_if_cancelled
from hascheduler.ports import WorkStore
from hascheduler.processor.attempts import HeldAttempts, StopReason
from hascheduler.processor.config import ProcessorConfig

log = structlog.get_logger(__name__)


@dataclass
class _AttemptLoop(ABC):
    """One exchange with the database an interval; the next one makes up for one that fails."""

    _work: WorkStore
    _config: ProcessorConfig
    _attempts: HeldAttempts
    _failed_event: ClassVar[str]

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._config.heartbeat_interval_ms / 1000)
            try:
                await self._exchange()
            except WorldError as error:
                log.debug(self._failed_event, error=str(error))
            leave_if_cancelled()

    @abstractmethod
    async def _exchange(self) -> None: ...


class ProgressReporter(_AttemptLoop):
    """Stores what running attempts have reported since the last interval."""

    _failed_event = "progress_report_failed"  # the next report says more

    async def _exchange(self) -> None:
        news = self._attempts.take_progress()
        if news:
            await self._work.report(self._config.id, news)


class OverdueReporter(_AttemptLoop):
    """Reports timed-out attempts whose threads go on, before the leader gives their jobs to others."""

    _failed_event = "overdue_report_failed"

    async def _exchange(self) -> None:
        overdue = self._attempts.unreported_overdue()
        if not overdue:
            return
        await self._work.report_overdue(self._config.id, overdue)
        self._attempts.overdue_were_reported(overdue)
        for job_id, number in overdue:
            log.warning("handler_thread_overdue", job=job_id, attempt=number)


class StopPoller(_AttemptLoop):
    """Stops running attempts that the database shows as cancelled or revoked."""

    _failed_event = "stop_request_lookup_failed"

    async def _exchange(self) -> None:
        running = self._attempts.running
        if not running:
            return
        requests = await self._work.stop_requests(self._config.id, running)
        for key in requests.cancelled:
            self._attempts.stop(key, StopReason.CANCELLED)
        for key in requests.revoked:
            self._attempts.stop(key, StopReason.REVOKED)
