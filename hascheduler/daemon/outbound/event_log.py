"""The newest events of jobs, and their followers.

A follower has no queue of its own: it has a place in the ring, so a hundred of them cost no more memory than one. A
follower whose place the ring has given to a newer event was too slow.

::

    floor                                        position
      │ [ oldest … … … … … … … … … … … newest ]    │
      │    ▲ a follower takes from here on         │
      └ the events up to here are forgotten, so no follower can go on from before it
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from hascheduler.errors import Overloaded
from hascheduler.model.event import Event, seconds_of
from hascheduler.ports import Closing, EventFilter, Lagging, Missed, NewEvents

EVENTS_MAX = 10_000
FOLLOWERS_MAX = 100
_AT_ONCE_MAX = 500
_AHEAD_MAX_S = 60
"""Another replica may be ahead of this one in the stream, but not for so long."""
_COME_AGAIN_S = 5

TOO_OLD = "more has happened since than this replica remembers"
NOT_YET_HERE = "this replica has not heard of that event, and should have"
READ_ANEW = "this replica had to read everything again, and does not know what happened meanwhile"


class EventLog:
    """`hascheduler.ports.EventFeed`. Owner of the ring and of the number of followers.

    It is *open* while it has every event, without a gap: from `begin` to the next `restart`.
    """

    def __init__(self, events_max: int = EVENTS_MAX) -> None:
        self._ring: list[Event | None] = [None] * events_max
        self._first = 0
        self._end = 0
        self._newest = ""
        self._floor = ""
        self._position = ""
        self._era = 0
        self._is_open = False
        self._is_closed = False
        self._news = asyncio.Event()
        self._followers = 0
        self._counted: Counter[str] = Counter()

    # What comes in

    def begin(self, position: str) -> None:
        """From now on every event after ``position`` is appended."""
        self._is_open = True
        self._era += 1
        self._first = self._end
        self._floor = self._position = self._newest = position
        self._wake()

    def append(self, events: Sequence[Event], position: str) -> None:
        """The events up to ``position``, in order; those that were appended before are left out."""
        for event in events:
            if event.id <= self._newest:
                continue
            if self._end - self._first == len(self._ring):
                self._floor = self.at(self._first).id
                self._first += 1
            self._ring[self._end % len(self._ring)] = event
            self._end += 1
            self._newest = event.id
            self._counted[event.type.value] += 1
        self._position = max(self._position, position, self._newest)
        self._wake()

    def restart(self) -> None:
        """The mirror is read again: events until the next `begin` are missing."""
        self._is_open = False

    def close(self) -> None:
        """This replica ends: every follower gets `Closing`."""
        self._is_closed = True
        self._wake()

    def forget(self) -> None:
        """Let go of all events, once it is closed."""
        assert self._is_closed
        self._first = self._end
        self._ring = [None]

    # What is known

    @property
    def is_open(self) -> bool:
        return self._is_open

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    @property
    def position(self) -> str:
        """Every event up to here was appended; "" before the first `begin`."""
        return self._position

    @property
    def floor(self) -> str:
        """The events up to here are forgotten."""
        return self._floor

    @property
    def era(self) -> int:
        """How often it has begun."""
        return self._era

    @property
    def counted(self) -> Mapping[str, int]:
        """How many of each type were appended since this replica began."""
        return self._counted

    @property
    def first(self) -> int:
        """The place of the oldest event; places are numbered from 0 on, and never twice."""
        return self._first

    @property
    def end(self) -> int:
        """The place of the next event."""
        return self._end

    @property
    def news(self) -> asyncio.Event:
        """Set at the next change. Take it before you look, and wait for it after."""
        return self._news

    def at(self, place: int) -> Event:
        event = self._ring[place % len(self._ring)]
        assert event is not None
        return event

    def place_after(self, position: str) -> int:
        """The place of the first event after ``position``."""
        low, high = self._first, self._end
        while low < high:
            middle = (low + high) // 2
            if self.at(middle).id <= position:
                low = middle + 1
            else:
                high = middle
        return low

    # Followers

    @property
    def followers(self) -> int:
        return self._followers

    @contextmanager
    def follow(self, after: str | None, which: EventFilter) -> Iterator["LogFollower"]:
        if self._is_closed:
            raise Overloaded("this replica is about to end", _COME_AGAIN_S)
        if self._followers >= FOLLOWERS_MAX:
            raise Overloaded(f"{FOLLOWERS_MAX} follow the events of this replica already", _COME_AGAIN_S)
        self._followers += 1
        try:
            yield LogFollower(self, after, which)
        finally:
            self._followers -= 1

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


class LogFollower:
    """`hascheduler.ports.Follower`. Owner of its place; ``after`` is the position up to which it has everything."""

    def __init__(self, log: EventLog, after: str | None, which: EventFilter) -> None:
        self._log = log
        self._which = which
        self._era = 0
        self._place = 0
        if after is None:
            # From now on, which is nowhere while the log is not open.
            after = log.position if log.is_open else ""
        self._after = after

    async def next(self, wait_ms: int) -> NewEvents | Missed | Lagging | Closing:
        loop = asyncio.get_running_loop()
        until = loop.time() + wait_ms / 1_000
        while True:
            news = self._log.news
            answer = self._look()
            if answer is not None:
                return answer
            try:
                async with asyncio.timeout_at(until):
                    await news.wait()
            except TimeoutError:
                return NewEvents((), self._after)

    def _look(self) -> NewEvents | Missed | Lagging | Closing | None:
        """The next answer, or None; events that are not wanted are passed over."""
        log = self._log
        if log.is_closed:
            return Closing()
        if not log.is_open:
            return None
        if self._era != log.era:
            missed = self._begin()
            if missed is not None:
                return missed
        if self._place < log.first:
            return Lagging(log.first - self._place)
        while self._place < log.end:
            upto = min(log.end, self._place + _AT_ONCE_MAX)
            some = [log.at(place) for place in range(self._place, upto)]
            wanted = [event for event in some if event.id > self._after and self._which.takes(event)]
            self._place = upto
            self._after = max(self._after, log.position if upto == log.end else some[-1].id)
            if wanted:
                return NewEvents(wanted, self._after)
        self._after = max(self._after, log.position)
        return None

    def _begin(self) -> Missed | None:
        """Find the place to go on from; where there is none, go on from the newest event."""
        log = self._log
        is_first, self._era = self._era == 0, log.era
        reason = ""
        if self._after < log.floor:
            reason = TOO_OLD if is_first and self._after else READ_ANEW
        elif self._after > log.position and seconds_of(self._after) > seconds_of(log.position) + _AHEAD_MAX_S:
            reason = NOT_YET_HERE
        if not reason:
            self._place = log.place_after(self._after)
            return None
        self._place, self._after = log.end, log.position
        return Missed(reason, self._after)
