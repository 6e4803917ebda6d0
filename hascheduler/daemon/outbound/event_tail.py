"""Brings the mirror's events of jobs into the log of events, whole and in order.

It looks after every batch of the stream. A change of a job that is unknown here does not say whose it is: a failed job
that is retried, or one that was read ahead of the stream and has ended. Then the document is read, on the side, and
later events wait; where it can't be read, the event goes out as it is.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import replace

import structlog

from hascheduler.daemon.loop.feeder import FETCH_MAX, Feeder
from hascheduler.daemon.outbound.event_log import EventLog
from hascheduler.errors import InvalidInput, StoreUnavailable
from hascheduler.mirror.changes import Operation
from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import decode_job
from hascheduler.model.event import Event
from hascheduler.model.job import JobRef
from hascheduler.ports import ChangeSource

log = structlog.get_logger(__name__)

WAITING_MAX = 10_000
_TRIES = 3
_AGAIN_S = 0.5

_Batch = tuple[list[Event], str]


class EventTail:
    """Owner of the events that wait to be whole."""

    def __init__(self, events: EventLog, fold: Feeder, source: ChangeSource) -> None:
        self._log = events
        self._fold = fold
        self._source = source
        self._waiting: deque[_Batch] = deque()
        self._some = asyncio.Event()
        self._seen_to = ""

    def look(self, events: list[Event]) -> None:
        """The mirror has folded some more of the stream. Events from before it was complete are left out."""
        position = self._fold.position
        if not self._fold.complete:
            self._seen_to = position
            return
        if not self._log.is_open:
            self._log.begin(self._seen_to)
        if not self._waiting and all(event.is_identified for event in events):
            self._log.append(events, position)
            return
        self._waiting.append((events, position))
        self._some.set()
        if sum(len(some) for some, _ in self._waiting) > WAITING_MAX:
            self._give_up()

    def restarted(self) -> None:
        """The mirror is a new one."""
        self._waiting.clear()
        self._log.restart()

    async def run(self) -> None:
        while True:
            await self._some.wait()
            self._some.clear()
            while self._waiting:
                batch = self._waiting[0]
                whole = await self._whole(batch[0])
                # It may have been given up meanwhile.
                if self._waiting and self._waiting[0] is batch:
                    self._waiting.popleft()
                    self._log.append(whole, batch[1])

    def _give_up(self) -> None:
        log.warning("events_incomplete", events=sum(len(events) for events, _ in self._waiting))
        while self._waiting:
            self._log.append(*self._waiting.popleft())

    async def _whole(self, events: Sequence[Event]) -> list[Event]:
        jobs = await self._read([event.job for event in events if event.job is not None and not event.is_identified])
        return [_identified(event, jobs.get(event.job or "")) for event in events]

    async def _read(self, ids: Sequence[str]) -> dict[str, JobRef]:
        known = self._fold.mirror.nouns(Collection.JOBS)
        found: dict[str, JobRef] = {id: known[id] for id in ids if id in known}
        unknown = list(dict.fromkeys(id for id in ids if id not in found))
        for attempt in range(_TRIES):
            try:
                while unknown:
                    for change in await self._source.fetch(Collection.JOBS, unknown[:FETCH_MAX]):
                        if change.operation is Operation.PUT and isinstance(change.id, str):
                            try:
                                found[change.id] = decode_job(change.id, change.fields)
                            except InvalidInput:
                                continue  # the mirror sets it aside, with the reason
                    del unknown[:FETCH_MAX]
                return found
            except StoreUnavailable as error:
                if attempt == _TRIES - 1:
                    log.warning("events_incomplete", events=len(unknown), error=str(error))
                    break
                await asyncio.sleep(_AGAIN_S)
        return found


def _identified(event: Event, job: JobRef | None) -> Event:
    if job is None or event.is_identified:
        return event
    # A job that has ended as the event says had that attempt; of one that lives on, the number may be a later one.
    attempt = job.attempt if event.attempt is None and job.state == event.type.value else event.attempt
    return replace(event, tenant=job.tenant, definition=job.definition, attempt=attempt)
