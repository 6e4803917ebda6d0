"""The leader publishes all events of jobs on the broker; without an exchange it does nothing.

A new leader goes on from `_OVERLAP_S` before the old one's last sign of life, in its own log: events that are published
twice have the same ids. The log is the queue, so it is bounded and a slow broker disturbs no other loop; what leaves
the log unpublished is counted and given up. A log begins where its replica began: a replica that leads within moments
of its own start can't publish what the leader before it had not yet published.
"""

import asyncio
from collections.abc import Callable, Sequence

import structlog

from hascheduler.daemon.outbound.event_log import EventLog, LogFollower
from hascheduler.lifecycle import leave_if_cancelled
from hascheduler.model.event import Event, position, seconds_of
from hascheduler.ports import EventExchange, EventFilter, Lagging, Missed, NewEvents

log = structlog.get_logger(__name__)

_OVERLAP_S = 5
_LOOK_MS = 200
_AGAIN_S = 0.2
_AGAIN_MAX_S = 3.0


class EventPublisher:
    """Owner of how far the events are published, by this leader or another. ``leading``: this replica leads."""

    def __init__(self, events: EventLog, exchange: EventExchange | None, leading: Callable[[], bool]) -> None:
        self._log = events
        self._exchange = exchange
        self._leading = leading
        self._published_to = ""

    def other_leads(self) -> None:
        """The stream has shown that another replica has the lease, and renews it."""
        self._published_to = self._log.position

    async def run(self) -> None:
        if self._exchange is None:
            return
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._exchange.run(), name="event-exchange")
            tasks.create_task(self._publish_while_leading(self._exchange), name="publish-events")

    async def _publish_while_leading(self, exchange: EventExchange) -> None:
        while True:
            while not (self._leading() and self._log.is_open):  # noqa: ASYNC110  # leading is asked for, not signalled
                await asyncio.sleep(_LOOK_MS / 1_000)
            await self._publish_term(exchange)

    async def _publish_term(self, exchange: EventExchange) -> None:
        """Publish until this replica leads no more, or its log has left the follower behind."""
        follower = LogFollower(self._log, self._begin_after(), EventFilter())
        while self._leading():
            answer = await follower.next(_LOOK_MS)
            match answer:
                case NewEvents(events, upto):
                    if not events or await self._publish(exchange, events):
                        self._published_to = upto
                case Missed(reason):
                    log.warning("events_not_published", reason=reason)
                    return
                case Lagging(missed):
                    log.warning("events_not_published", missed=missed, reason="the broker took them too slowly")
                    self._published_to = self._log.floor
                    return
                case _:
                    return

    async def _publish(self, exchange: EventExchange, events: Sequence[Event]) -> bool:
        """Try until the broker has the events, or this replica leads no more; whether the broker has them."""
        pause_s = _AGAIN_S
        while self._leading():
            is_published = await exchange.publish(events)
            leave_if_cancelled()
            if is_published:
                return True
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _AGAIN_MAX_S)
        return False

    def _begin_after(self) -> str:
        if not self._published_to:
            return self._log.floor
        return max(self._log.floor, position(max(0, seconds_of(self._published_to) - _OVERLAP_S), 0))
