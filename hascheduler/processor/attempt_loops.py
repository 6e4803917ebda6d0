"""Tells how far the running attempts have come: once an interval one write for all that said something new."""

import asyncio

import structlog

from hascheduler.errors import WorldError
from hascheduler.ports import WorkStore
from hascheduler.processor.attempts import HeldAttempts, StopReason
from hascheduler.processor.config import ProcessorConfig

log = structlog.get_logger(__name__)


class ProgressReporter:
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


class StopPoller:
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
                standing = await self._work.standing(self._config.id, running)
            except WorldError as error:
                log.debug("standing_unknown", error=str(error))
                continue
            for key in standing.cancelled:
                self._attempts.stop(key, StopReason.CANCELLED)
            for key in standing.revoked:
                self._attempts.stop(key, StopReason.REVOKED)
