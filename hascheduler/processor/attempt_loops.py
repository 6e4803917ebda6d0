"""Loops over the running attempts, once a heartbeat interval: what they report goes out, what stops them comes in.

One write reports the progress of all that have new progress, another which of them are overdue. One read asks which
attempts must stop: the net under cancel notices, which may be lost.
"""

import asyncio

import structlog

from hascheduler.errors import WorldError
from hascheduler.ports import WorkStore
from hascheduler.processor.attempts import HeldAttempts, StopReason
from hascheduler.processor.config import ProcessorConfig

log = structlog.get_logger(__name__)


class ProgressReporter:
    """Stores what running attempts have reported since the last interval."""

    def __init__(self, work: WorkStore, config: ProcessorConfig, attempts: HeldAttempts) -> None:
        self._work = work
        self._config = config
        self._attempts = attempts

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._config.heartbeat_interval_ms / 1000)
            news = self._attempts.take_progress()
            if not news:
                continue
            try:
                await self._work.report(self._config.id, news)
            except WorldError as error:
                # What comes next says more.
                log.debug("progress_not_told", error=str(error))


class OverdueReporter:
    """Tells the leader of attempts whose time is over and whose threads go on, before it gives their jobs to others."""

    def __init__(self, work: WorkStore, config: ProcessorConfig, attempts: HeldAttempts) -> None:
        self._work = work
        self._config = config
        self._attempts = attempts

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._config.heartbeat_interval_ms / 1000)
            overdue = self._attempts.unreported_overdue()
            if not overdue:
                continue
            try:
                await self._work.report_overdue(self._config.id, overdue)
            except WorldError as error:
                log.debug("overdue_not_told", error=str(error))
                continue
            self._attempts.overdue_were_reported(overdue)
            for job_id, number in overdue:
                log.warning("thread_overdue", job=job_id, attempt=number)


class StopPoller:
    """Stops running attempts that were cancelled or revoked, as the database says."""

    def __init__(self, work: WorkStore, config: ProcessorConfig, attempts: HeldAttempts) -> None:
        self._work = work
        self._config = config
        self._attempts = attempts

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._config.heartbeat_interval_ms / 1000)
            running = self._attempts.running
            if not running:
                continue
            try:
                requests = await self._work.stop_requests(self._config.id, running)
            except WorldError as error:
                log.debug("standing_unknown", error=str(error))
                continue
            for key in requests.cancelled:
                self._attempts.stop(key, StopReason.CANCELLED)
            for key in requests.revoked:
                self._attempts.stop(key, StopReason.REVOKED)
