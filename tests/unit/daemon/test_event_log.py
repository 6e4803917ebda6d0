"""The log of events, its followers, who publishes them, and the way from the stream into it."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from hascheduler.daemon.outbound import event_log as room
from hascheduler.daemon.outbound.event_log import (
    FOLLOWERS_MAX,
    NOT_YET_HERE,
    TOO_OLD,
    EventLog,
    EventPublisher,
    EventTail,
)
from hascheduler.errors import Overloaded, StoreUnavailable
from hascheduler.mirror.changes import Change
from hascheduler.mirror.mirror import Mirror
from hascheduler.model.collection import Collection
from hascheduler.model.event import Event, position
from hascheduler.ports import ChangeSource, ChangeStream, Closing, EventFilter, Missed, NewEvents
from hascheduler.testing.memory.claims import MemoryClaimStore
from hascheduler.testing.memory.database import MemoryConnection, MemoryDatabase
from hascheduler.testing.memory.jobs import MemoryJobStore
from hascheduler.testing.memory.stream import MemoryChangeSource
from tests.factories import NOW, make_job
from tests.unit.daemon.doubles import running
from tests.unit.daemon.happenings import ALL, events_for, happened, log_of


@pytest.mark.parametrize("newest", range(1, 25))
async def test_a_ring_that_goes_round_holds_the_newest(newest: int) -> None:
    log = log_of(*range(1, newest + 1), events_max=7)
    kept = list(range(max(1, newest - 6), newest + 1))
    for after in range(newest + 1):
        with log.follow(position(after, 1), ALL) as follower:
            if after < kept[0] - 1:
                assert await follower.next(0) == Missed(TOO_OLD, position(newest, 1))
                assert await events_for(follower) == []
            else:
                assert await events_for(follower) == list(range(after + 1, newest + 1))


async def test_an_id_that_no_replica_can_have_delivered_is_missed() -> None:
    with log_of(1).follow(position(3_000, 1), ALL) as follower:
        assert await follower.next(0) == Missed(NOT_YET_HERE, position(1, 1))


async def test_an_event_without_a_tenant_is_delivered_to_followers_of_all_tenants() -> None:
    log = log_of()
    log.append([happened(1, tenant=None, definition=None)], position(1, 1))
    with log.follow(position(0, 1), ALL) as everything, log.follow(position(0, 1), EventFilter(tenant="a")) as own:
        assert (await events_for(everything), await events_for(own)) == ([1], [])


async def test_followers_learn_of_the_end_at_once_and_no_new_one_comes_in() -> None:
    log = log_of(1)
    with log.follow(None, ALL) as follower:
        waiting = asyncio.create_task(follower.next(60_000))
        await asyncio.sleep(0)
        log.close()
        assert await waiting == Closing()
    with pytest.raises(Overloaded), log.follow(None, ALL):
        pass


def test_there_is_room_for_so_many_and_a_follower_that_leaves_makes_room() -> None:
    log = log_of()
    follows = [log.follow(None, ALL) for _ in range(FOLLOWERS_MAX)]
    for follow in follows:
        follow.__enter__()
    with pytest.raises(Overloaded), log.follow(None, ALL):
        pass
    follows.pop().__exit__(None, None, None)
    with log.follow(None, ALL):
        assert log.followers == FOLLOWERS_MAX
    assert log.followers == FOLLOWERS_MAX - 1


class MemoryEventExchange:
    """`hascheduler.ports.EventExchange`. While it is not ``accepting``, it takes no event."""

    def __init__(self) -> None:
        self.accepting = True
        self.published: list[Event] = []
        self._news = asyncio.Event()

    async def run(self) -> None:
        # There is no connection to keep.
        await asyncio.Event().wait()

    async def publish(self, events: Sequence[Event]) -> bool:
        await asyncio.sleep(0)  # other tasks run meanwhile, as with a real broker
        if self.accepting:
            self.published += events
        self._news.set()
        return self.accepting

    async def asked(self) -> None:
        self._news.clear()
        await self._news.wait()


class PublishingReplica:
    """It leads as the test decides."""

    def __init__(self, log: EventLog, *, leads: bool = True) -> None:
        self.log = log
        self.leads = leads
        self.exchange = MemoryEventExchange()
        self.publisher = EventPublisher(log, self.exchange, lambda: self.leads)

    def append(self, *seconds: int) -> None:
        for second in seconds:
            self.log.append([happened(second)], position(second, 1))

    def published(self) -> list[int]:
        return [event.at_ms // 1_000 for event in self.exchange.published]

    async def until_published(self, *seconds: int) -> None:
        async with asyncio.timeout(10):
            while not set(seconds) <= set(self.published()):
                await self.exchange.asked()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_POLL_MS", 1)
    monkeypatch.setattr(room, "_AGAIN_S", 0)


async def test_the_next_leader_goes_on_a_little_before_the_last_sign_of_life_of_the_one_before() -> None:
    replica = PublishingReplica(log_of(10, 11, 12, 13, 14, 15, 16), leads=False)
    replica.publisher.other_leads()
    replica.append(17, 30)  # no replica led then
    replica.leads = True
    async with running(replica.publisher.run()):
        await replica.until_published(30)
    assert replica.published() == [11, 12, 13, 14, 15, 16, 17, 30]


async def test_a_leader_that_could_not_publish_leaves_it_to_the_next_term() -> None:
    replica = PublishingReplica(log_of(1, 20))
    replica.exchange.accepting = False
    async with running(replica.publisher.run()):
        await replica.exchange.asked()
        replica.leads = False
        replica.exchange.accepting = True
        replica.append(21)
        await asyncio.sleep(0.01)
        replica.leads = True
        await replica.until_published(1, 20, 21)


async def test_what_leaves_the_log_unpublished_is_given_up_and_the_rest_goes_on() -> None:
    replica = PublishingReplica(log_of(1, events_max=3))
    replica.exchange.accepting = False
    async with running(replica.publisher.run()):
        await replica.exchange.asked()
        replica.append(2, 3, 4, 5, 6)
        replica.exchange.accepting = True
        await replica.until_published(6)
        replica.append(7)
        await replica.until_published(7)
    assert replica.published() == [1, 4, 5, 6, 7]


async def test_a_leader_that_stops_ends_its_publisher_and_is_not_held_up_by_it() -> None:
    replica = PublishingReplica(log_of(1))
    task = asyncio.create_task(replica.publisher._publish_while_leading(replica.exchange))
    await replica.until_published(1)
    replica.log.close()
    async with asyncio.timeout(10):
        await task  # a loop that never rests would let no timeout through: the whole test run would stand still


async def test_news_wake_those_who_wait_and_an_event_that_comes_twice_is_delivered_once() -> None:
    log = log_of()
    with log.follow(None, ALL) as follower:
        waiting = asyncio.create_task(follower.next(60_000))
        await asyncio.sleep(0)
        log.append([happened(2)], position(2, 1))
        assert await waiting == NewEvents([happened(2)], position(2, 1))
        log.append([happened(2)], position(2, 1))
        log.append([happened(3)], position(3, 1))
        assert await events_for(follower) == [3]


JOBS = Collection.JOBS


class Refusing:
    """A `ChangeSource` that can't be asked for documents, the first ``times``."""

    def __init__(self, source: ChangeSource, times: int) -> None:
        self._source = source
        self.open = source.open
        self.times = times

    async def fetch(self, collection: Collection, ids: Sequence[str]) -> Sequence[Change]:
        if self.times > 0:
            self.times -= 1
            raise StoreUnavailable("not now")
        return await self._source.fetch(collection, ids)


class Scene:
    """A database, and a replica's way from its stream to the log: one `turn` a batch."""

    def __init__(self, *, refusals: int = 0) -> None:
        connection = MemoryConnection(MemoryDatabase())
        self.database = connection.database
        self.jobs = MemoryJobStore(connection, 600_000)
        self.claims = MemoryClaimStore(connection, 600_000)
        self.source = MemoryChangeSource(connection)
        self.mirror = Mirror()
        self.position = ""
        self.complete = False
        self.log = EventLog()
        self.tail = EventTail(self.log, cast(Any, self), Refusing(self.source, refusals))
        self.stream: ChangeStream | None = None

    async def turn(self) -> None:
        """One batch of the stream, as the feeder has it."""
        if self.stream is None:
            self.stream = await self.source.open(None)
        batch = await self.stream.next_batch(0)
        folded = self.mirror.fold(batch.changes)
        self.position = batch.position or self.position
        self.tail.take(folded.events)

    async def begin(self) -> None:
        await self.jobs.submit(make_job("a marker"))
        await self.turn()
        self.complete = True
        await self.turn()
        assert self.log.is_open

    def events(self) -> list[Event]:
        return [self.log.at(place) for place in range(self.log.first, self.log.end)]

    def types(self, job: str = "j") -> list[str]:
        return [event.type.value for event in self.events() if event.job == job]

    async def events_and_one_more(self) -> list[Event]:
        """All, once there is an event that is not there yet; the tail runs meanwhile."""
        async with running(self.tail.run()):
            with self.log.follow(None, ALL) as follower:
                events = await follower.next(10_000)
                assert isinstance(events, NewEvents)
                assert events.events
        return self.events()


async def test_a_revived_job_is_read_to_say_whose_it_is_and_what_came_later_waits() -> None:
    scene = Scene()
    await scene.begin()
    await scene.jobs.submit(make_job("j"))
    await scene.turn()
    scene.database.update(JOBS, scene.database.find(JOBS, "j") or {}, {"state": "failed", "rev": 2, "attempt": 1})
    await scene.turn()
    await scene.jobs.retry("j", NOW)
    await scene.turn()
    await scene.jobs.submit(make_job("k"))
    await scene.turn()
    assert scene.types() == ["submitted", "failed"]
    assert scene.types("k") == []
    events = await scene.events_and_one_more()
    assert (events[2].type, events[2].tenant, events[2].definition, events[2].attempt) == (
        "revived",
        "tenant",
        "log",
        2,
    )
    assert [event.job for event in events[2:]] == ["j", "k"]


@pytest.mark.parametrize("why", ["it is deleted", "it can't be read", "it makes no sense"])
async def test_an_event_whose_job_is_unknown_goes_out_as_it_is(why: str) -> None:
    scene = Scene(refusals=99 if why == "it can't be read" else 0)
    await scene.begin()
    scene.database.insert(JOBS, {"_id": "j", "state": "running", "rev": 4})
    await scene.turn()
    scene.database.update(JOBS, scene.database.find(JOBS, "j") or {}, {"state": "failed", "rev": 5})
    if why == "it is deleted":
        scene.database.delete(JOBS, "j")
    await scene.turn()
    [event] = await scene.events_and_one_more()
    assert (event.type, event.job, event.is_identified) == ("failed", "j", False)


async def test_more_than_may_wait_goes_out_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "WAITING_MAX", 2)
    scene = Scene()
    await scene.begin()
    for name in "abc":
        scene.database.insert(JOBS, {"_id": name, "state": "running", "rev": 4})
        scene.database.update(JOBS, scene.database.find(JOBS, name) or {}, {"state": "failed", "rev": 5})
        await scene.turn()
    assert [event.job for event in scene.events()] == ["a", "b", "c"]


async def test_a_resync_is_a_gap_for_everybody() -> None:
    log = log_of(1)
    with log.follow(position(0, 1), ALL) as follower:
        log.restart()
        assert await follower.next(0) == NewEvents((), position(0, 1))
        log.begin(position(9, 1))
        log.append([happened(10)], position(10, 1))
        assert await follower.next(0) == Missed(TOO_OLD, position(10, 1))
    with log.follow(position(0, 1), ALL) as follower:
        assert isinstance(await follower.next(0), Missed)


async def test_events_that_another_replica_has_delivered_are_not_repeated() -> None:
    log = log_of(1)
    with log.follow(position(3, 1), ALL) as follower:
        assert await events_for(follower) == []
        for second in (2, 3, 4):
            log.append([happened(second)], position(second, 1))
        assert await events_for(follower) == [4]


async def test_what_the_broker_does_not_take_is_published_again() -> None:
    replica = PublishingReplica(log_of(1))
    replica.exchange.accepting = False
    async with running(replica.publisher.run()):
        await replica.exchange.asked()
        replica.append(2)
        await replica.exchange.asked()
        replica.exchange.accepting = True
        await replica.until_published(1, 2)
    assert replica.published() == [1, 2]
