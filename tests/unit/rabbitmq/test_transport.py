"""The transport without a broker."""

import pytest

from hascheduler.errors import BrokerUnavailable, InvalidInput
from hascheduler.ports import Confirm
from hascheduler.rabbitmq.deliveries import RabbitDeliveries
from hascheduler.rabbitmq.publisher import RabbitTransport
from tests.integration.rabbitmq.conftest import run_message, running


async def test_without_a_broker_nothing_raises_and_nothing_is_confirmed() -> None:
    transport = RabbitTransport("amqp://guest:guest@127.0.0.1:1/")
    async with running(transport.run):
        assert not transport.accepting
        assert await transport.publish([("p", run_message("a"))]) == [Confirm.UNKNOWN]
    with pytest.raises(BrokerUnavailable) as refusal:
        await RabbitDeliveries("amqp://guest:secret@127.0.0.1:1/", "p", slots=1).delete()
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize("url", ["", "http://localhost/", "amqp://", "amqp://user:secret@[", "localhost:5672"])
def test_a_url_that_is_none_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        RabbitTransport(url)
    assert "secret" not in str(refusal.value)
