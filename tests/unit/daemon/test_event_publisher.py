"""Who publishes the events, from where on, and what a slow broker does to nobody."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hascheduler.daemon.outbound import event_publisher as announcer_module
from hascheduler.daemon.outbound.event_log import EventLog
from hascheduler.daemon.outbound.event_publisher import EventPublisher
from hascheduler.memory.events import MemoryEventExchange
from hascheduler.model.event import position
from tests.unit.daemon.happenings import happened, log_of


class Office:
    """Whether it leads, as somebody decides."""

    def __init__(self, log: EventLog, *, leads: bool = True) -> None:
        self.log = log
        self.leads = leads
        self.exchange = MemoryEventExchange()
        self.announcer = EventPublisher(log, self.exchange, lambda: self.leads)

    def tell(self, *seconds: int) -> None:
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
        task = asyncio.create_task(self.announcer.run())
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
    office = Office(log_of(1, 2))
    async with office.running():
        await office.until_published(2)
        office.tell(3, 4)
        await office.until_published(4)
    assert office.published() == [1, 2, 3, 4]


async def test_who_does_not_lead_publishes_nothing_until_he_does() -> None:
    office = Office(log_of(1), leads=False)
    async with office.running():
        await asyncio.sleep(0.01)
        assert office.published() == []
        office.leads = True
        await office.until_published(1)


async def test_the_next_leader_goes_on_a_little_before_the_last_sign_of_life_of_the_one_before() -> None:
    office = Office(log_of(10, 11, 12, 13, 14, 15, 16), leads=False)
    office.announcer.other_leads()
    office.tell(17, 30)  # nobody led then
    office.leads = True
    async with office.running():
        await office.until_published(30)
    assert office.published() == [11, 12, 13, 14, 15, 16, 17, 30]


async def test_what_the_broker_does_not_take_is_published_again() -> None:
    office = Office(log_of(1))
    office.exchange.accepting = False
    async with office.running():
        await office.exchange.asked()
        office.tell(2)
        await office.exchange.asked()
        office.exchange.accepting = True
        await office.until_published(1, 2)
    assert office.published() == [1, 2]


async def test_a_leader_that_could_not_publish_leaves_it_to_the_next_term() -> None:
    office = Office(log_of(1))
    office.exchange.accepting = False
    async with office.running():
        await office.exchange.asked()
        office.leads = False
        office.exchange.accepting = True
        office.tell(2)
        await asyncio.sleep(0.01)
        office.leads = True
        await office.until_published(1, 2)


async def test_what_leaves_the_log_unpublished_is_given_up_and_the_rest_goes_on() -> None:
    office = Office(log_of(1, events_max=3))
    office.exchange.accepting = False
    async with office.running():
        await office.exchange.asked()
        office.tell(2, 3, 4, 5, 6)
        office.exchange.accepting = True
        await office.until_published(6)
        office.tell(7)
        await office.until_published(7)
    assert office.published() == [1, 4, 5, 6, 7]


async def test_a_resync_is_gone_through() -> None:
    office = Office(log_of(1))
    async with office.running():
        await office.until_published(1)
        office.log.restart()
        office.log.begin(position(8, 1))
        office.tell(9)
        await office.until_published(9)


async def test_without_an_exchange_there_is_nothing_to_do() -> None:
    await EventPublisher(log_of(1), None, lambda: True).run()
