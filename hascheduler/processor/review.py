"""Asks once an interval what has become of the running attempts: the net under the notices, which may be lost."""

import asyncio

import structlog

from hascheduler.errors import WorldError
from hascheduler.ports import WorkStore
from hascheduler.processor.attempts import Attempts, Ending
from hascheduler.processor.config import ProcessorConfig

log = structlog.get_logger(__name__)


class Review:
    def __init__(self, work: WorkStore, config: ProcessorConfig, attempts: Attempts) -> None:
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
                self._attempts.stop(key, Ending.CANCELLED)
            for key in standing.revoked:
                self._attempts.stop(key, Ending.REVOKED)
