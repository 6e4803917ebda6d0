"""The exchange of events without a broker."""

import pytest

from hascheduler.errors import InvalidInput
from hascheduler.model.event import EventType
from hascheduler.rabbitmq.events import RabbitEventExchange, routing_key
from tests.integration.rabbitmq.conftest import running
from tests.unit.daemon.happenings import happened


@pytest.mark.parametrize("definition", ["x" * 400, "é" * 200, "a b\n\x00", ""])
def test_any_name_makes_a_routing_key_that_the_protocol_can_carry(definition: str) -> None:
    key = routing_key(happened(1, definition=definition))
    assert key.startswith("job.submitted.")
    assert len(key.encode()) <= 255


def test_what_a_schedule_missed_is_beside_what_happens_to_jobs() -> None:
    """Who is bound to ``job.#`` gets what it got before."""
    event = happened(1, None, type=EventType.SCHEDULE_MISSED, schedule="tick", definition="git.fetch")
    assert routing_key(event) == "schedule.missed.git.fetch"


async def test_without_a_broker_it_says_no_and_raises_nothing() -> None:
    exchange = RabbitEventExchange("amqp://guest:guest@127.0.0.1:1/", "events")
    async with running(exchange.run):
        assert not await exchange.publish([happened(1)])


async def test_a_url_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInput):
        RabbitEventExchange("localhost", "events")
