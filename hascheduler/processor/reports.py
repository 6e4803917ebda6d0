"""Tells how far the running attempts have come: once an interval one write for all that said something new."""

import asyncio

import structlog

from hascheduler.errors import WorldError
from hascheduler.ports import WorkStore
from hascheduler.processor.attempts import Attempts
from hascheduler.processor.config import ProcessorConfig

log = structlog.get_logger(__name__)


class Reports:
    def __init__(self, work: WorkStore, config: ProcessorConfig, attempts: Attempts) -> None:
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
