"""The log of events, its followers, and who publishes them."""

import asyncio
from collections.abc import Sequence

import pytest

from hascheduler.daemon.outbound import event_log as announcer_module
from hascheduler.daemon.outbound.event_log import (
    FOLLOWERS_MAX,
    NOT_YET_HERE,
    TOO_OLD,
    EventLog,
    EventPublisher,
)
from hascheduler.errors import Overloaded
from hascheduler.model.event import Event, EventType, position
from hascheduler.ports import Closing, EventFilter, Lagging, Missed, NewEvents
from tests.unit.daemon.doubles import running
from tests.unit.daemon.happenings import ALL, events_for, happened, log_of


async def test_without_an_id_a_follower_gets_events_from_now_on() -> None:
    log = log_of(1, 2)
    with log.follow(None, ALL) as follower:
        assert await events_for(follower) == []
        log.append([happened(3), happened(4)], position(5, 1))
        assert await follower.next(0) == NewEvents([happened(3), happened(4)], position(5, 1))


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


async def test_events_that_another_replica_has_delivered_are_not_repeated() -> None:
    log = log_of(1)
    with log.follow(position(3, 1), ALL) as follower:
        assert await events_for(follower) == []
        for second in (2, 3, 4):
            log.append([happened(second)], position(second, 1))
        assert await events_for(follower) == [4]


async def test_an_id_that_no_replica_can_have_delivered_is_missed() -> None:
    with log_of(1).follow(position(3_000, 1), ALL) as follower:
        assert await follower.next(0) == Missed(NOT_YET_HERE, position(1, 1))


async def test_the_filter_leaves_out_what_is_not_wanted_and_the_position_moves_on() -> None:
    log = log_of()
    wanted = happened(2, "k", type=EventType.FAILED, schedule="tick")
    filters = [
        EventFilter(frozenset({EventType.FAILED})),
        EventFilter(job="k"),
        EventFilter(schedule="tick"),
        EventFilter(definition="other"),
        EventFilter(tenant="nobody"),
    ]
    answers = []
    for which in filters:
        with log.follow(position(0, 1), which) as follower:
            log.append([happened(1), wanted, happened(3)], position(4, 1))
            answers.append(await follower.next(0))
    assert answers == [*[NewEvents([wanted], position(4, 1))] * 3, *[NewEvents((), position(4, 1))] * 2]


async def test_an_event_without_a_tenant_is_delivered_to_followers_of_all_tenants() -> None:
    log = log_of()
    log.append([happened(1, tenant=None, definition=None)], position(1, 1))
    with log.follow(position(0, 1), ALL) as everything, log.follow(position(0, 1), EventFilter(tenant="a")) as own:
        assert (await events_for(everything), await events_for(own)) == ([1], [])


async def test_many_events_are_delivered_in_pieces() -> None:
    log = log_of(events_max=2_000)
    log.append([happened(second) for second in range(1, 1_501)], position(1_500, 1))
    with log.follow(position(0, 1), ALL) as follower:
        first = await follower.next(0)
        assert isinstance(first, NewEvents)
        assert first.position == first.events[-1].id
        assert len(first.events) + len(await events_for(follower)) == 1_500


async def test_a_follower_that_is_too_slow_learns_how_much_it_missed() -> None:
    log = log_of(1, events_max=3)
    with log.follow(position(0, 1), ALL) as follower:
        assert await events_for(follower) == [1]
        log.append([happened(second) for second in (2, 3, 4, 5)], position(5, 1))
        assert await follower.next(0) == Lagging(1)


# Beginning, beginning again, ending


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


async def test_events_are_forgotten_and_who_follows_them_is_told_that_it_is_over() -> None:
    log = log_of(1)
    with log.follow(None, ALL) as follower:
        log.close()
        log.forget()
        assert log.first == log.end
        assert isinstance(await follower.next(0), Closing)


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
        """Waits for the next call of `publish`."""
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
    monkeypatch.setattr(announcer_module, "_LOOK_MS", 1)
    monkeypatch.setattr(announcer_module, "_AGAIN_S", 0)


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


async def test_only_the_leader_publishes_and_what_the_broker_refuses_it_publishes_again() -> None:
    replica = PublishingReplica(log_of(1), leads=False)
    replica.exchange.accepting = False
    async with running(replica.publisher.run()):
        await asyncio.sleep(0.01)
        assert replica.published() == []
        replica.leads = True
        await replica.exchange.asked()
        replica.append(2)
        await replica.exchange.asked()
        replica.exchange.accepting = True
        await replica.until_published(1, 2)
    assert replica.published() == [1, 2]


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
