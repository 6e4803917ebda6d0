"""Repeats the periodic work of the ring for as long as the process runs."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from hascheduler.errors import InvalidInput, WorldError
from hascheduler.telemetry.log_lines import Reminders

log = structlog.get_logger(__name__)


async def repeat(doing: Callable[[], Awaitable[object]], pause_s: Callable[[], float], outage: str) -> None:
    """Run it again and again, with a pause after each.

    Log an outage, or an unreadable document, once a minute as the event ``outage``, and retry after the pause.
    """
    reminders, loop = Reminders(), asyncio.get_running_loop()
    while True:
        try:
            await doing()
            reminders.over()
        except (WorldError, InvalidInput) as error:
            if reminders.is_due(str(error), int(loop.time() * 1_000)):
                log.warning(outage, error=str(error))
        await asyncio.sleep(pause_s())
