"""The newest events of jobs, their followers, and the one follower that publishes them all on the broker.

A follower has no queue of its own: it has a place in the ring, so a hundred of them cost no more memory than one. A
follower whose place the ring has given to a newer event was too slow.

::

    floor                                        position
      │ [ oldest … … … … … … … … … … … newest ]    │
      │    ▲ a follower takes from here on         │
      └ the events up to here are forgotten, so no follower can go on from before it

Without an exchange nothing is published. A new leader goes on from `_OVERLAP_S` before the old one's last sign of life,
in its own log; events that are published twice have the same ids. A slow broker disturbs no other loop; events that
leave the log unpublished are counted and given up. A log begins where its replica began: a replica that leads within
moments of its own start can't publish the events that the leader before it had not yet published.

`EventTail` brings the mirror's events of jobs into the log, complete and in order, after every batch of the stream. A
change of a job that is unknown here does not name its tenant: a failed job that is retried, or one that was read ahead
of the stream and has ended. Then the document is read, on the side, and later events wait; if it can't be read, the
event goes out as it is.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import structlog

from hascheduler.daemon.loop.feeder import FETCH_MAX, Feeder
from hascheduler.errors import InvalidInput, Overloaded, StoreUnavailable
from hascheduler.lifecycle import in_time, leave_if_cancelled
from hascheduler.mirror.changes import Operation
from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import decode_job
from hascheduler.model.event import Event, EventType, position, seconds_of
from hascheduler.model.job import JobRef
from hascheduler.ports import ChangeSource, Closing, EventExchange, EventFilter, Lagging, Missed, NewEvents

log = structlog.get_logger(__name__)

EVENTS_MAX = 10_000
FOLLOWERS_MAX = 100
_AT_ONCE_MAX = 500
_AHEAD_MAX_S = 60
"""Another replica may be ahead of this one in the stream, but not by more."""
_COME_AGAIN_S = 5

TOO_OLD = "this replica no longer has all events since then"
NOT_YET_HERE = "this replica should have received that event, but has not"
RESYNCED = "this replica had to resync its mirror and may have missed events"


class EventLog:
    """`hascheduler.ports.EventFeed`. Owner of the ring and of the number of followers.

    It is *open* while it has every event, without a gap: from `begin` to the next `restart`; ``era`` counts the
    beginnings. Every event up to ``position`` was appended ("" before the first `begin`), those up to ``floor`` are
    forgotten. ``first`` is the place of the oldest event, ``end`` that of the next one; places are numbered from 0 on,
    and never twice.
    """

    def __init__(self, events_max: int = EVENTS_MAX) -> None:
        self._ring: list[Event | None] = [None] * events_max
        self.first = 0
        self.end = 0
        self.totals: Counter[EventType] = Counter()
        """How many events of each type were appended so far; of missed times, how many times."""
        self._newest = ""
        self.floor = ""
        self.position = ""
        self.era = 0
        self.is_open = False
        self.is_closed = False
        self.news = asyncio.Event()
        """Set at the next change. Take it before a check, and wait for it after."""
        self.followers = 0

    # Input

    def begin(self, position: str) -> None:
        """Open the log: from now on every event after ``position`` is appended."""
        self.is_open = True
        self.era += 1
        self.first = self.end
        self.floor = self.position = self._newest = position
        self._wake()

    def append(self, events: Sequence[Event], position: str) -> None:
        """Append the events up to ``position``, in order; leave out those that were appended before."""
        for event in events:
            if event.id <= self._newest:
                continue
            if self.end - self.first == len(self._ring):
                self.floor = self.at(self.first).id
                self.first += 1
            self._ring[self.end % len(self._ring)] = event
            self.end += 1
            self._newest = event.id
            self.totals[event.type] += event.count or 1
        self.position = max(self.position, position, self._newest)
        self._wake()

    def restart(self) -> None:
        """Close the log until the next `begin`, as the mirror is read again and events until then are missing."""
        self.is_open = False

    def close(self) -> None:
        """End the log, as this replica ends: every follower gets `Closing`."""
        self.is_closed = True
        self._wake()

    def forget(self) -> None:
        """Drop all events, once it is closed."""
        assert self.is_closed
        self.first = self.end
        self._ring = [None]

    # Reads

    def at(self, place: int) -> Event:
        event = self._ring[place % len(self._ring)]
        assert event is not None
        return event

    def place_after(self, position: str) -> int:
        """Return the place of the first event after ``position``."""
        low, high = self.first, self.end
        while low < high:
            middle = (low + high) // 2
            if self.at(middle).id <= position:
                low = middle + 1
            else:
                high = middle
        return low

    # Followers

    @contextmanager
    def follow(self, after: str | None, which: EventFilter) -> Iterator["LogFollower"]:
        if self.is_closed:
            raise Overloaded("this replica is shutting down", _COME_AGAIN_S)
        if self.followers >= FOLLOWERS_MAX:
            raise Overloaded(f"{FOLLOWERS_MAX} clients already follow the events of this replica", _COME_AGAIN_S)
        self.followers += 1
        try:
            yield LogFollower(self, after, which)
        finally:
            self.followers -= 1

    def _wake(self) -> None:
        self.news.set()
        self.news = asyncio.Event()


class LogFollower:
    """`hascheduler.ports.Follower`. Owner of its place; ``after`` is the position up to which it has everything."""

    def __init__(self, events: EventLog, after: str | None, which: EventFilter) -> None:
        self._log = events
        self._which = which
        self._era = 0
        self._place = 0
        if after is None:
            # From now on; there is no such position while the log is not open.
            after = events.position if events.is_open else ""
        self._after = after

    async def next(self, wait_ms: int) -> NewEvents | Missed | Lagging | Closing:
        loop = asyncio.get_running_loop()
        until = loop.time() + wait_ms / 1_000
        while True:
            news = self._log.news
            answer = self._next_answer()
            if answer is not None:
                return answer
            if not await in_time(news.wait(), until - loop.time()):
                return NewEvents((), self._after)

    def _next_answer(self) -> NewEvents | Missed | Lagging | Closing | None:
        """Return the next answer, or None; skip events that are not wanted."""
        events = self._log
        if events.is_closed:
            return Closing()
        if not events.is_open:
            return None
        if self._era != events.era:
            missed = self._begin()
            if missed is not None:
                return missed
        if self._place < events.first:
            return Lagging(events.first - self._place)
        while self._place < events.end:
            upto = min(events.end, self._place + _AT_ONCE_MAX)
            some = [events.at(place) for place in range(self._place, upto)]
            wanted = [event for event in some if event.id > self._after and self._which.takes(event)]
            self._place = upto
            self._after = max(self._after, events.position if upto == events.end else some[-1].id)
            if wanted:
                return NewEvents(wanted, self._after)
        self._after = max(self._after, events.position)
        return None

    def _begin(self) -> Missed | None:
        """Find the place to go on from; if there is none, go on from the newest event."""
        events = self._log
        is_first, self._era = self._era == 0, events.era
        reason = ""
        if self._after < events.floor:
            reason = TOO_OLD if is_first and self._after else RESYNCED
        elif self._after > events.position and seconds_of(self._after) > seconds_of(events.position) + _AHEAD_MAX_S:
            reason = NOT_YET_HERE
        if not reason:
            self._place = events.place_after(self._after)
            return None
        self._place, self._after = events.end, events.position
        return Missed(reason, self._after)


_OVERLAP_S = 5
_POLL_MS = 200
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
        """Note that another replica has the lease, and renews it."""
        self._published_to = self._log.position

    async def run(self) -> None:
        if self._exchange is None:
            return
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._exchange.run(), name="event-exchange")
            tasks.create_task(self._publish_while_leading(self._exchange), name="publish-events")

    async def _publish_while_leading(self, exchange: EventExchange) -> None:
        while not self._log.is_closed:
            while not (self._leading() and self._log.is_open):  # noqa: ASYNC110  # leading is polled, not signalled
                await asyncio.sleep(_POLL_MS / 1_000)
            await self._publish_term(exchange)

    async def _publish_term(self, exchange: EventExchange) -> None:
        """Publish until this replica no longer leads, or its log has left the follower behind."""
        follower = LogFollower(self._log, self._begin_after(), EventFilter())
        while self._leading():
            answer = await follower.next(_POLL_MS)
            match answer:
                case NewEvents(events, upto):
                    if not events or await self._publish(exchange, events):
                        self._published_to = upto
                case Missed(reason):
                    log.warning("events_publish_failed", reason=reason)
                    return
                case Lagging(missed):
                    log.warning("events_publish_failed", missed=missed, reason="the broker accepted them too slowly")
                    self._published_to = self._log.floor
                    return
                case _:
                    return

    async def _publish(self, exchange: EventExchange, events: Sequence[Event]) -> bool:
        """Try until the broker has the events, or this replica no longer leads; return True if the broker has them."""
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


WAITING_MAX = 10_000
_TRIES = 3
_TAIL_AGAIN_S = 0.5

_Batch = tuple[list[Event], str]


class EventTail:
    """Owner of the events that wait to be complete."""

    def __init__(self, events: EventLog, fold: Feeder, source: ChangeSource) -> None:
        self._log = events
        self._fold = fold
        self._source = source
        self._waiting: deque[_Batch] = deque()
        self._some = asyncio.Event()
        self._seen_to = ""

    def take(self, events: list[Event]) -> None:
        """Take the events of the latest fold of the mirror; leave out those from before it was complete."""
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
        """Drop the waiting events, as the mirror is a new one."""
        self._waiting.clear()
        self._log.restart()

    async def run(self) -> None:
        while True:
            await self._some.wait()
            self._some.clear()
            while self._waiting:
                batch = self._waiting[0]
                whole = await self._whole(batch[0])
                # `_give_up` may have taken it meanwhile.
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
                                continue  # the mirror quarantines it, with the reason
                    del unknown[:FETCH_MAX]
                return found
            except StoreUnavailable as error:
                if attempt == _TRIES - 1:
                    log.warning("events_incomplete", events=len(unknown), error=str(error))
                    break
                await asyncio.sleep(_TAIL_AGAIN_S)
        return found


def _identified(event: Event, job: JobRef | None) -> Event:
    if job is None or event.is_identified:
        return event
    # A job that has ended as in the event had that attempt; if it lives on, the number may be a later one.
    attempt = job.attempt if event.attempt is None and job.state == event.type.value else event.attempt
    return replace(event, tenant=job.tenant, definition=job.definition, attempt=attempt)
