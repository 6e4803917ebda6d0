"""Which replica publishes the events, from where on, and what a slow broker does not do to the others."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hascheduler.daemon.outbound import event_log as announcer_module
from hascheduler.daemon.outbound.event_log import EventLog, EventPublisher
from hascheduler.model.event import position
from hascheduler.testing.memory.messages import MemoryEventExchange
from tests.unit.daemon.happenings import happened, log_of


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

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.publisher.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announcer_module, "_LOOK_MS", 1)
    monkeypatch.setattr(announcer_module, "_AGAIN_S", 0)


async def test_the_leader_publishes_all_that_it_knows_and_all_that_happens() -> None:
    replica = PublishingReplica(log_of(1, 2))
    async with replica.running():
        await replica.until_published(2)
        replica.append(3, 4)
        await replica.until_published(4)
    assert replica.published() == [1, 2, 3, 4]


async def test_who_does_not_lead_publishes_nothing_until_he_does() -> None:
    replica = PublishingReplica(log_of(1), leads=False)
    async with replica.running():
        await asyncio.sleep(0.01)
        assert replica.published() == []
        replica.leads = True
        await replica.until_published(1)


async def test_the_next_leader_goes_on_a_little_before_the_last_sign_of_life_of_the_one_before() -> None:
    replica = PublishingReplica(log_of(10, 11, 12, 13, 14, 15, 16), leads=False)
    replica.publisher.other_leads()
    replica.append(17, 30)  # no replica led then
    replica.leads = True
    async with replica.running():
        await replica.until_published(30)
    assert replica.published() == [11, 12, 13, 14, 15, 16, 17, 30]


async def test_what_the_broker_does_not_take_is_published_again() -> None:
    replica = PublishingReplica(log_of(1))
    replica.exchange.accepting = False
    async with replica.running():
        await replica.exchange.asked()
        replica.append(2)
        await replica.exchange.asked()
        replica.exchange.accepting = True
        await replica.until_published(1, 2)
    assert replica.published() == [1, 2]


async def test_a_leader_that_could_not_publish_leaves_it_to_the_next_term() -> None:
    replica = PublishingReplica(log_of(1))
    replica.exchange.accepting = False
    async with replica.running():
        await replica.exchange.asked()
        replica.leads = False
        replica.exchange.accepting = True
        replica.append(2)
        await asyncio.sleep(0.01)
        replica.leads = True
        await replica.until_published(1, 2)


async def test_what_leaves_the_log_unpublished_is_given_up_and_the_rest_goes_on() -> None:
    replica = PublishingReplica(log_of(1, events_max=3))
    replica.exchange.accepting = False
    async with replica.running():
        await replica.exchange.asked()
        replica.append(2, 3, 4, 5, 6)
        replica.exchange.accepting = True
        await replica.until_published(6)
        replica.append(7)
        await replica.until_published(7)
    assert replica.published() == [1, 4, 5, 6, 7]


async def test_a_resync_is_gone_through() -> None:
    replica = PublishingReplica(log_of(1))
    async with replica.running():
        await replica.until_published(1)
        replica.log.restart()
        replica.log.begin(position(8, 1))
        replica.append(9)
        await replica.until_published(9)


async def test_without_an_exchange_there_is_nothing_to_do() -> None:
    await EventPublisher(log_of(1), None, lambda: True).run()
