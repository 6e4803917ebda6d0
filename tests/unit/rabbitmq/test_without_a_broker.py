"""Messages and events without a broker, and what is made of its refusal: by its code and its words, which are kept."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiormq import spec
from pamqp import frame
from pamqp.header import ProtocolHeader

from hascheduler.errors import BrokerUnavailable, InvalidInput
from hascheduler.model.event import EventType
from hascheduler.ports import Confirm
from hascheduler.rabbitmq.connection import require_access
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


LOGIN, OPEN = "login", "open"
STAYS = [
    (LOGIN, 403, "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN.", "refuses user 'me'"),
    (OPEN, 403, "ACCESS_REFUSED - no access", "refuses user 'me'"),
    (OPEN, 530, "NOT_ALLOWED - vhost 'place' not found", "has no virtual host 'place' for user 'me'"),
    (OPEN, 530, "NOT_ALLOWED - vhost 'that's the limit' not found", "has no virtual host 'place' for user 'me'"),
    (
        OPEN,
        530,
        "NOT_ALLOWED - access to vhost 'the limit' refused for user 'down'",
        "denies user 'me' the virtual host 'place'",
    ),
]  # fmt: skip
PASSES = [
    (OPEN, 530, "NOT_ALLOWED - access to vhost 'place' refused for user 'me': connection limit (1) is reached"),
    (OPEN, 530, "NOT_ALLOWED - access to vhost 'not found' refused for user 'me': vhost 'not found' is down"),
    (LOGIN, 530, "NOT_ALLOWED - connection refused: node connection limit (9) is reached"),
    (OPEN, 541, "INTERNAL_ERROR - access to vhost 'place' refused for user 'me': vhost 'place' is down"),
    (OPEN, 320, "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'"),
    (OPEN, 506, "RESOURCE_ERROR - file\r\ndescriptors"),
]


@asynccontextmanager
async def refusing(at: str, code: int, words: str) -> AsyncIterator[str]:
    """The URL of a broker that closes each connection when it is told who comes, or where to."""

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def heard() -> None:
            head = await reader.readexactly(7)
            await reader.readexactly(int.from_bytes(head[3:], "big") + 1)

        def say(method: frame.FrameTypes) -> None:
            writer.write(frame.marshal(method, 0))

        await reader.readexactly(len(ProtocolHeader().marshal()))
        say(spec.Connection.Start(mechanisms="PLAIN", server_properties={}))
        await heard()
        if at == OPEN:
            say(spec.Connection.Tune(9, 4096, 60))
            await heard()
            await heard()
        say(spec.Connection.Close(code, words, 10, 40))
        await reader.read()
        writer.close()

    server = await asyncio.start_server(meet, "127.0.0.1", 0)
    async with server:
        yield f"amqp://me:sEcret@127.0.0.1:{server.sockets[0].getsockname()[1]}/place"


@pytest.mark.parametrize(("at", "code", "words", "problem"), STAYS)
async def test_a_refusal_that_no_waiting_mends_ends_the_start_at_once(
    at: str, code: int, words: str, problem: str
) -> None:
    async with refusing(at, code, words) as url:
        with pytest.raises(InvalidInput) as refused:
            await require_access(url)
    assert f"{problem}: {words} ({code}); expected " in str(refused.value)
    assert "sEcret" not in str(refused.value)


@pytest.mark.parametrize(("at", "code", "words"), PASSES)
async def test_a_refusal_that_waiting_mends_is_waited_for_and_told_in_the_words_of_the_broker(
    at: str, code: int, words: str
) -> None:
    async with refusing(at, code, words) as url:
        await require_access(url)
        with pytest.raises(InvalidInput) as refused:
            await require_access(url, must_answer=True)
    told = f"refuses the connection: {' '.join(words.split())} ({code}); expected "
    assert told in str(refused.value)
    assert "sEcret" not in str(refused.value)
