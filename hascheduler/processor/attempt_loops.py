"""Loops over the running attempts, once a heartbeat interval: reports go out, stop requests come in.

One write stores all new progress, another which attempts are overdue. One read asks which attempts must stop, as cancel
messages may be lost.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import structlog

from hascheduler.errors import WorldError
from hascheduler.lifecycle import leave_if_cancelled
from hascheduler.ports import WorkStore
from hascheduler.processor.attempts import HeldAttempts, StopReason
from hascheduler.processor.config import ProcessorConfig

log = structlog.get_logger(__name__)
Exchange = Callable[[WorkStore, str, HeldAttempts], Awaitable[None]]


async def repeat(
    exchange: Exchange, failed: str, work: WorkStore, config: ProcessorConfig, attempts: HeldAttempts
) -> None:
    """Make an exchange with the database each interval; one that fails is logged, and the next one makes up for it."""
    while True:
        await asyncio.sleep(config.heartbeat_interval_ms / 1000)
        try:
            await exchange(work, config.id, attempts)
        except WorldError as error:
            log.debug(failed, error=str(error))
        leave_if_cancelled()


async def progress_report(work: WorkStore, processor: str, attempts: HeldAttempts) -> None:
    """Store what running attempts have reported since the last interval."""
    news = attempts.take_progress()
    if news:
        await work.report(processor, news)


async def overdue_report(work: WorkStore, processor: str, attempts: HeldAttempts) -> None:
    """Report timed-out attempts whose threads go on, before the leader gives their jobs to others."""
    overdue = attempts.unreported_overdue()
    if not overdue:
        return
    await work.report_overdue(processor, overdue)
    attempts.overdue_were_reported(overdue)
    for job_id, number in overdue:
        log.warning("handler_thread_overdue", job=job_id, attempt=number)


async def stop_request_lookup(work: WorkStore, processor: str, attempts: HeldAttempts) -> None:
    """Stop running attempts that the database shows as cancelled or revoked."""
    running = attempts.running
    if not running:
        return
    requests = await work.stop_requests(processor, running)
    for key in requests.cancelled:
        attempts.stop(key, StopReason.CANCELLED)
    for key in requests.revoked:
        attempts.stop(key, StopReason.REVOKED)


EXCHANGES: Mapping[str, Exchange] = {
    "stop_request_lookup_failed": stop_request_lookup,
    "progress_report_failed": progress_report,
    "overdue_report_failed": overdue_report,
}
"""The exchanges of a processor, by the event that is logged if one fails."""
