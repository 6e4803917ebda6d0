"""MongoDB as a substitute for the broker: while the broker is away, a processor finds its jobs in their documents.

::

    the broker delivers      nothing is watched; a sweep each `SWEEP_EVERY_S` finds what was dispatched before the last
                             one and has not started: its message is missing, perhaps as only the leader lost the broker
    away for `AWAY_S`        the jobs are watched, as on the transport ``mongo``, until the broker delivers again

If a job arrives both ways, the second message is dropped as any duplicate is: each attempt starts once. The leader
keeps dispatching meanwhile (`hascheduler.daemon.outbound.publisher`).
"""

import asyncio
from collections.abc import Callable

import structlog

from hascheduler.errors import WorldError
from hascheduler.mongo.transport import MongoDeliveries, Promise, Sink
from hascheduler.ports import Deliveries

log = structlog.get_logger(__name__)

AWAY_S = 1.0
"""A connection that is restored at once is no outage."""
SWEEP_EVERY_S = 5.0
_WATCH_S = 0.1


class FallbackDeliveries:
    """`hascheduler.ports.Deliveries`: those of ``broker``, and those of ``database`` if messages do not arrive."""

    def __init__(self, broker: Deliveries, database: MongoDeliveries) -> None:
        self._broker = broker
        self._database = database

    async def run(self, sink: Sink, turned: Callable[[], None] = lambda: None) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._broker.run(sink, turned), name="broker")
            tasks.create_task(self._fall_back(sink, turned), name="fallback")

    @property
    def consuming(self) -> bool:
        return self._broker.consuming or self._database.consuming

    async def delete(self) -> None:
        await self._broker.delete()

    async def _fall_back(self, sink: Sink, turned: Callable[[], None]) -> None:
        while True:
            await self._sweep_until_away(sink)
            log.warning("fallback_started")
            async with asyncio.TaskGroup() as tasks:
                standing_in = tasks.create_task(self._database.run(sink, turned))
                while not self._broker.consuming:  # noqa: ASYNC110  # no event says when that changes
                    await asyncio.sleep(_WATCH_S)
                standing_in.cancel()
            log.info("fallback_stopped")

    async def _sweep_until_away(self, sink: Sink) -> None:
        loop = asyncio.get_running_loop()
        consumed_s = swept_s = loop.time()
        seen: set[Promise] = set()
        while loop.time() - consumed_s < AWAY_S:
            await asyncio.sleep(_WATCH_S)
            if self._broker.consuming:
                consumed_s = loop.time()
            if loop.time() - swept_s >= SWEEP_EVERY_S:
                swept_s = loop.time()
                try:
                    seen = await self._database.sweep(sink, among=seen)
                except WorldError as error:
                    log.warning("fallback_poll_failed", error=str(error))
