"""What a process of the ring does again and again, for as long as it runs."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from hascheduler.errors import InvalidInput, WorldError
from hascheduler.telemetry.log_lines import Reminders

log = structlog.get_logger(__name__)


async def repeat(doing: Callable[[], Awaitable[object]], pause_s: Callable[[], float], outage: str) -> None:
    """Do it, pause, and so on. Log an outage, or a document that can't be read, once a minute as the event ``outage``,
    and try again after the pause."""
    reminders, loop = Reminders(), asyncio.get_running_loop()
    while True:
        try:
            await doing()
            reminders.over()
        except (WorldError, InvalidInput) as error:
            if reminders.is_due(str(error), int(loop.time() * 1_000)):
                log.warning(outage, error=str(error))
        await asyncio.sleep(pause_s())
