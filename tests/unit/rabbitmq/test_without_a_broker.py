"""Messages and events without a broker."""

import pytest

from hascheduler.errors import BrokerUnavailable, InvalidInput
from hascheduler.model.event import EventType
from hascheduler.ports import Confirm
from hascheduler.rabbitmq.deliveries import RabbitDeliveries
from hascheduler.rabbitmq.publisher import RabbitEventExchange, RabbitTransport, routing_key
from tests.integration.rabbitmq.conftest import run_message, running
from tests.unit.daemon.happenings import happened


async def test_without_a_broker_nothing_raises_and_nothing_is_confirmed() -> None:
    transport = RabbitTransport("amqp://guest:guest@127.0.0.1:1/")
    async with running(transport.run):
        assert not transport.accepting
        assert await transport.publish([("p", run_message("a"))]) == [Confirm.UNKNOWN]
    with pytest.raises(BrokerUnavailable) as refusal:
        await RabbitDeliveries("amqp://guest:secret@127.0.0.1:1/", "p", slots=1).delete()
    assert "secret" not in str(refusal.value)


async def test_without_a_broker_no_event_is_taken_and_nothing_raises() -> None:
    exchange = RabbitEventExchange("amqp://guest:guest@127.0.0.1:1/", "events")
    async with running(exchange.run):
        assert not await exchange.publish([happened(1)])


@pytest.mark.parametrize("url", ["", "http://localhost/", "amqp://", "amqp://user:secret@[", "localhost:5672"])
def test_a_url_that_is_none_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        RabbitTransport(url)
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize("definition", ["x" * 400, "é" * 200, "a b\n\x00", ""])
def test_any_name_makes_a_routing_key_that_the_protocol_can_carry(definition: str) -> None:
    key = routing_key(happened(1, definition=definition))
    assert key.startswith("job.submitted.")
    assert len(key.encode()) <= 255


def test_what_a_schedule_missed_is_beside_what_happens_to_jobs() -> None:
    """Who is bound to ``job.#`` gets what it got before."""
    event = happened(1, None, type=EventType.SCHEDULE_MISSED, schedule="tick", definition="git.fetch")
    assert routing_key(event) == "schedule.missed.git.fetch"
