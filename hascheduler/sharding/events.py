"""The events of all shards as one feed, in the order of their ids.

Ids are instants of the MongoDB that all shards are in, so they have one order over all of them, and one id says where a
client goes on in every shard. An event is therefore held back until every shard's stream has come past it: by the beats
of the replicas that is within a retry period. A shard whose stream stands still holds the others back for
`HELD_BACK_MAX_MS` and no longer; its events come when it goes on, and a client that reconnects in between misses them.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from operator import attrgetter

from hascheduler.errors import InvalidInput, NotFollowedHere
from hascheduler.model.event import Event
from hascheduler.model.values.error_texts import quoted
from hascheduler.ports import Closing, EventFeed, EventFilter, Follower, Lagging, Missed, NewEvents
from hascheduler.sharding.places import ShardPlaces

HELD_BACK_MAX_MS = 2_000
_LOOK_MS = 600_000
"""How long one shard is waited for at a time: the caller's own limit comes long before."""
_COMPARE_S = 0.01
"""While events are held back, how often the positions of the shards are looked at."""
_Answer = NewEvents | Missed | Lagging | Closing


class ShardedEventFeed:
    """`hascheduler.ports.EventFeed`."""

    def __init__(
        self, places: ShardPlaces, shards: Sequence[EventFeed | None], others: Mapping[str, EventFeed] | None = None
    ) -> None:
        """``shards``: None for one that this replica does not follow; ``others`` may have its events, by its name."""
        self._places = places
        self._shards = shards
        self._others = others or {}

    def joined(self, others: Mapping[str, EventFeed]) -> "ShardedEventFeed":
        """The same, with the events of shards that this replica does not follow."""
        return ShardedEventFeed(self._places, self._shards, others)

    @property
    def position(self) -> str:
        return min(feed.position for feed in self._known().values())

    @contextmanager
    def follow(self, after: str | None, which: EventFilter) -> Iterator["MergedFollower"]:
        """`NotFollowedHere` where another replica is to be asked, as this one does not follow what is wanted;
        `InvalidInput` about a shard that is none, or not that tenant's."""
        with ExitStack() as following:
            seen = self._seen(which)
            feeds = list(seen.values())
            followers = [following.enter_context(shard.follow(after, which)) for shard in feeds]
            merged = MergedFollower(feeds, followers, lambda: seen.keys() >= set(self._wanted(which)))
            following.callback(merged.close)
            yield merged

    def _known(self) -> dict[str, EventFeed]:
        """By shard, the feeds that there are."""
        own = zip(self._places.shards, self._shards, strict=True)
        return {**self._others, **{name: feed for name, feed in own if feed is not None}}

    def _wanted(self, which: EventFilter) -> Sequence[str]:
        """The shards in which there may be such events now."""
        names = self._places.meant(self._places.shards, which.tenant)
        return [name for name in names if which.shard in (None, name)]

    def _seen(self, which: EventFilter) -> Mapping[str, EventFeed]:
        wanted, known = self._wanted(which), self._known()
        if not wanted:
            problem = f"{quoted(which.shard)} is no shard" + (" of that tenant" if which.tenant else "")
            raise InvalidInput(("shard",), problem, f"one of {', '.join(self._places.shards)}")
        for name in wanted:
            if name not in known:
                raise NotFollowedHere(name)
        if which.shard is None and len(known) == len(self._shards):
            return known  # what is of a tenant may move to another shard
        return {name: known[name] for name in wanted}


class MergedFollower:
    """`hascheduler.ports.Follower`. Owner of the events that are held back. It ends where ``is_whole`` holds no
    more, as there may be events in other shards by now: the client comes back, and goes on there."""

    def __init__(self, feeds: Sequence[EventFeed], followers: Sequence[Follower], is_whole: Callable[[], bool]) -> None:
        self._is_whole = is_whole
        self._feeds = feeds
        self._followers = followers
        self._looks: list[asyncio.Task[_Answer]] = []
        self._held: list[Event] = []
        self._held_since = 0.0

    def close(self) -> None:
        for look in self._looks:
            look.cancel()

    async def next(self, wait_ms: int) -> _Answer:
        loop = asyncio.get_running_loop()
        until = loop.time() + wait_ms / 1_000
        while self._is_whole():
            # Before the events are taken: of what comes in between, the order is not known yet.
            past = self._position()
            final = await self._take_all(loop.time())
            if final is not None:
                return final
            ready = self._ready(past, loop.time())
            left_s = until - loop.time()
            if ready or left_s <= 0:
                return NewEvents(ready, past)
            if self._held:
                await asyncio.sleep(min(_COMPARE_S, left_s))
            else:
                await self._wait(left_s)
        return Closing()

    async def _wait(self, for_s: float) -> None:
        """Until some shard has something."""
        looks = [asyncio.create_task(follower.next(_LOOK_MS), name="events") for follower in self._followers]
        self._looks = looks
        await asyncio.wait(looks, timeout=for_s, return_when=asyncio.FIRST_COMPLETED)

    async def _take_all(self, now: float) -> _Answer | None:
        """Hold back what all shards have; what ends the feed, or leaves a gap in it, is an answer at once."""
        looks, self._looks = self._looks, []
        final = None
        for look in looks:
            if look.done():
                final = self._taken(look.result(), now) or final
            else:
                look.cancel()  # it has taken nothing
        for follower in self._followers:
            answer = None if final is not None else await follower.next(0)
            while isinstance(answer, NewEvents) and answer.events:
                self._taken(answer, now)
                answer = await follower.next(0)
            final = final or (None if answer is None else self._taken(answer, now))
        return final

    def _taken(self, answer: _Answer, now: float) -> _Answer | None:
        match answer:
            case NewEvents(events, _):
                if events and not self._held:
                    self._held_since = now
                self._held += events
                return None
            case Missed(reason, position):
                return Missed(reason, min(position, self._position()))
            case _:
                return answer

    def _ready(self, past: str, now: float) -> list[Event]:
        """The events that every shard has come past, or that were held back for long enough; in order."""
        is_overdue = now >= self._held_since + HELD_BACK_MAX_MS / 1_000
        ready = [event for event in self._held if is_overdue or event.id <= past]
        if ready:
            self._held = [] if is_overdue else [event for event in self._held if event.id > past]
            self._held_since = now
        return sorted(ready, key=attrgetter("id"))

    def _position(self) -> str:
        return min(feed.position for feed in self._feeds)
