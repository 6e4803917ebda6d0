"""Every change, in one total order.

Owner of the events and of their numbers, which only grow. An event holds the lean fields, as a mirror gets them, and
its position, which is made of its number: each event has a time of its own, on a clock that only orders. Events can be
forgotten, from the oldest on; a stream that has not read them by then has lost history.
"""

import asyncio
from collections import deque
from dataclasses import dataclass, replace

from hascheduler.errors import HistoryLost
from hascheduler.mirror.changes import Change
from hascheduler.model.event import position

EVENTS_MAX = 100_000
_A_SECOND = 1_000
"""The number of events in one second of the order."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """A collection was dropped with all its documents, without an event for each."""

    collection: str


class History:
    def __init__(self, events_max: int = EVENTS_MAX) -> None:
        self._events: deque[Change | Dropped] = deque(maxlen=events_max)
        self._newest = 0
        self._news = asyncio.Event()

    @property
    def newest(self) -> int:
        """The number of the newest event; 0 before the first."""
        return self._newest

    @property
    def last(self) -> Change | Dropped | None:
        """The newest event, unless it is forgotten."""
        return self._events[-1] if self._events else None

    def append(self, event: Change | Dropped) -> None:
        self._add(event)
        self.wake()

    def after(self, number: int, limit: int) -> list[Change | Dropped]:
        """At most ``limit`` events after event ``number``; `HistoryLost` when some of them are forgotten."""
        forgotten = self._newest - len(self._events)
        if number < forgotten:
            raise HistoryLost(f"the history begins after {forgotten}, and the stream stood at {number}")
        first = number - forgotten
        # By index: a deque finds its newest as fast as its oldest, where an iterator would pass all before them.
        return [self._events[n] for n in range(first, min(first + limit, len(self._events)))]

    def forget(self) -> None:
        """Forget everything that has happened so far."""
        self._events.clear()
        self.wake()

    @property
    def news(self) -> asyncio.Event:
        """Set at the next event or at `wake`. Take it before reading, and wait for it after."""
        return self._news

    def wake(self) -> None:
        """Makes every waiting stream read again."""
        self._news.set()
        self._news = asyncio.Event()

    def _add(self, event: Change | Dropped) -> None:
        self._newest += 1
        if isinstance(event, Change):
            event = replace(event, position=position(*divmod(self._newest, _A_SECOND)))
        self._events.append(event)
