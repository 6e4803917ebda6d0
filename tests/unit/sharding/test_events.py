"""One feed of the events of all shards: in the order of their ids, all of them, and no shard holds it up for long."""

import asyncio
import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hascheduler.daemon.outbound.event_log import EventLog
from hascheduler.errors import InvalidInput, NotFollowedHere
from hascheduler.model.event import Event, EventType
from hascheduler.model.routing import Routing, slot_of
from hascheduler.ports import Closing, EventFilter, Missed, NewEvents
from hascheduler.sharding.events import HELD_BACK_MAX_MS, MergedFollower, ShardedEventFeed
from hascheduler.sharding.places import ShardPlaces
from hascheduler.testing.memory.database import MemoryConnection, MemoryDatabase
from tests.doubles.shards import MemoryNameStore
from tests.tiers import examples

ALL = EventFilter()
NAMES = ("default", "0001", "0002")
ROUTING = Routing.even(NAMES)
PLACES = ShardPlaces(ROUTING, MemoryNameStore(MemoryConnection(MemoryDatabase())))
TENANTS = [next(f"t{n}" for n in range(999) if ROUTING.index_of(f"t{n}") == index) for index in range(3)]


def position(second: int, increment: int = 1) -> str:
    return f"{1_893_456_000 + second}.{increment:010d}"


def event(second: int, job: str = "j", increment: int = 1) -> Event:
    return Event(position(second, increment), 0, EventType.SUBMITTED, job)


class Feed:
    """Three shards whose logs have begun, and one follower of all."""

    def __init__(self) -> None:
        self.logs = [EventLog() for _ in range(3)]
        for log in self.logs:
            log.begin(position(0))
        self._open = ExitStack()
        self.follower: MergedFollower = self._open.enter_context(self.feed.follow(None, ALL))

    @property
    def feed(self) -> ShardedEventFeed:
        return ShardedEventFeed(PLACES, self.logs)

    def close(self) -> None:
        self._open.close()

    async def seconds(self, wait_ms: int = 20) -> list[int]:
        answer = await self.follower.next(wait_ms)
        assert isinstance(answer, NewEvents)
        return [int(each.id.partition(".")[0]) - 1_893_456_000 for each in answer.events]


@contextmanager
def three() -> Iterator[Feed]:
    feed = Feed()
    try:
        yield feed
    finally:
        feed.close()


async def test_an_event_comes_once_every_shard_has_come_past_it() -> None:
    with three() as feed:
        feed.logs[0].append([event(5)], position(5))
        assert await feed.seconds() == []
        feed.logs[1].append([event(3)], position(6))
        assert await feed.seconds() == []
        feed.logs[2].append([], position(4))
        assert await feed.seconds(60_000) == [3]
        feed.logs[2].append([], position(7))
        assert await feed.seconds(60_000) == [5]
        assert all(log.followers == 1 for log in feed.logs)
    assert all(log.followers == 0 for log in feed.logs)


async def test_a_follower_that_waits_is_woken_by_any_shard() -> None:
    with three() as feed:
        waiting = asyncio.create_task(feed.seconds(60_000))
        await asyncio.sleep(0)
        for log in feed.logs:
            log.append([], position(9))
            await asyncio.sleep(0)
        feed.logs[1].append([event(10)], position(10))
        for log in (feed.logs[0], feed.logs[2]):
            log.append([], position(11))
        assert await waiting == [10]


async def test_a_shard_whose_stream_stands_still_holds_the_others_back_for_a_moment_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hascheduler.sharding.events.HELD_BACK_MAX_MS", 20)
    with three() as feed:
        feed.logs[0].append([event(5)], position(5))
        feed.logs[1].append([event(4)], position(6))
        assert await feed.seconds(60_000) == [4, 5]
        # It goes on: what it has comes, though later ones were seen.
        feed.logs[2].append([event(2)], position(8))
        for log in feed.logs[:2]:
            log.append([], position(9))
        assert await feed.seconds(60_000) == [2]
    assert HELD_BACK_MAX_MS == 2_000


async def test_a_client_goes_on_in_every_shard_after_the_id_it_got() -> None:
    with three() as feed:
        for log, second in zip(feed.logs, (3, 4, 5), strict=True):
            log.append([event(second)], position(9))
        with feed.feed.follow(position(3), ALL) as again:
            answer = await again.next(0)
            assert isinstance(answer, NewEvents)
            assert [each.id for each in answer.events] == [position(4), position(5)]


async def test_a_gap_in_one_shard_is_a_gap_of_all_and_the_end_of_one_is_the_end() -> None:
    with three() as feed:
        await feed.seconds()
        feed.logs[1].restart()
        feed.logs[1].begin(position(50))
        assert isinstance(await feed.follower.next(60_000), Missed)
        assert await feed.seconds() == []
        feed.logs[2].close()
        assert isinstance(await feed.follower.next(60_000), Closing)


@given(st.integers(0, 2**32))
@settings(max_examples=examples(100))
def test_every_event_comes_once_and_in_order(seed: int) -> None:
    chance = random.Random(seed)

    async def run() -> None:
        with three() as feed:
            seen: list[int] = []
            appended, at = 0, [0, 0, 0]
            for second in range(1, 60):
                shard = chance.randrange(3)
                at[shard] = second
                feed.logs[shard].append([event(second)], position(second))
                appended += 1
                if chance.random() < 0.3:
                    other = chance.randrange(3)
                    at[other] = second
                    feed.logs[other].append([], position(second))
                if chance.random() < 0.5:
                    seen += await feed.seconds(0)
            for log in feed.logs:
                log.append([], position(99))
            while len(seen) < appended:
                seen += await feed.seconds(60_000)
            assert seen == list(range(1, appended + 1))

    asyncio.run(run())


async def test_where_a_shard_is_not_followed_another_replica_is_to_be_asked_or_has_joined_its_events() -> None:
    logs = [EventLog() for _ in range(3)]
    for log in logs:
        log.begin(position(0))
    feed = ShardedEventFeed(PLACES, [*logs[:2], None])
    with feed.follow(None, EventFilter(tenant=TENANTS[1])) as follower:
        its = replace(event(5), tenant=TENANTS[1])
        logs[1].append([its], position(5))
        answer = await follower.next(60_000)
        assert isinstance(answer, NewEvents)
        assert answer.events == [its]
    for which in (EventFilter(tenant=TENANTS[2]), EventFilter(shard="0002"), ALL):
        with pytest.raises(NotFollowedHere, match="0002"), feed.follow(None, which):
            pass
    for which in (EventFilter(shard="0009"), EventFilter(shard="0002", tenant=TENANTS[1])):
        with pytest.raises(InvalidInput, match="no shard"), feed.follow(None, which):
            pass
    joined = feed.joined({"0002": logs[2]})
    with joined.follow(None, EventFilter(tenant=TENANTS[2])) as follower:
        logs[2].append([replace(event(5), tenant=TENANTS[2])], position(5))
        answer = await follower.next(60_000)
        assert isinstance(answer, NewEvents)
        assert [each.tenant for each in answer.events] == [TENANTS[2]]
    with joined.follow(None, ALL) as all_of_them, feed.follow(None, EventFilter(shard="0001")) as one:
        for index, log in enumerate(logs):
            log.append([event(6 + index, str(index))], position(9))
        both = await all_of_them.next(60_000), await one.next(60_000)
    assert [[each.job for each in told.events] for told in both if isinstance(told, NewEvents)] == [
        ["0", "1", "2"],
        ["1"],
    ]
    assert joined.position == position(9)


async def test_a_stream_of_one_tenant_ends_where_the_tenant_moves_to_a_shard_that_it_has_nothing_of() -> None:
    routing = ROUTING
    places = ShardPlaces(ROUTING, MemoryNameStore(MemoryConnection(MemoryDatabase())))
    places.follow(lambda: routing)
    logs = [EventLog() for _ in range(3)]
    for log in logs:
        log.begin(position(0))
    which = EventFilter(tenant=TENANTS[1])
    some, everything = ShardedEventFeed(places, [*logs[:2], None]), ShardedEventFeed(places, logs)
    with some.follow(None, which) as one, everything.follow(None, which) as all_of_them:
        assert isinstance(await one.next(0), NewEvents)
        routing = ROUTING.beginning({slot_of(TENANTS[1]): 2})
        assert await one.next(60_000) == Closing()
        logs[2].append([replace(event(5), tenant=TENANTS[1])], position(5))
        assert isinstance(await all_of_them.next(0), NewEvents)
    with pytest.raises(NotFollowedHere, match="0002"), some.follow(None, which):
        pass
