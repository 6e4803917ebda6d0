"""Who is cancelled while the broker refuses ends at once, whenever that is: a driver may lose a cancellation."""

import asyncio
import json
import random
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest
import structlog
from yarl import URL

from hascheduler.embedded.servers import start_rabbitmq
from hascheduler.errors import BrokerUnavailable
from hascheduler.model.message import Message, MessageKind
from hascheduler.ports import Delivery
from hascheduler.rabbitmq.deliveries import RabbitDeliveries
from hascheduler.rabbitmq.publisher import RabbitEventExchange, RabbitTransport
from tests.tiers import in_tier

LIMIT_S = 30
TIMES = in_tier(check=10, test=20, long=300)
WITHIN_S = 0.03
"""In that time a refusal comes, and the first pause begins."""
_ALL = {"configure": ".*", "write": ".*", "read": ".*"}
DEFINITIONS = {
    "users": [{"name": name, "password": name, "tags": ""} for name in ("guest", "bare")],
    "vhosts": [{"name": "/"}, {"name": "full"}],
    "permissions": [
        {"user": "guest", "vhost": "/", **_ALL},
        {"user": "guest", "vhost": "full", **_ALL},
        {"user": "bare", "vhost": "/", "configure": "", "write": "", "read": ""},
    ],
    "parameters": [
        {"component": "vhost-limits", "vhost": "full", "name": "limits", "value": {"max-connections": 0}},
    ],
}


@pytest.fixture(scope="module")
async def broker() -> AsyncIterator[URL]:
    async with start_rabbitmq(definitions=json.dumps(DEFINITIONS)) as node:
        yield URL(node.url)


@pytest.fixture(params=["nothing listens", "hangs up", "password", "no vhost", "vhost is full", "no rights"])
async def refusing(request: pytest.FixtureRequest, broker: URL) -> AsyncIterator[str]:
    """The URL of a broker that refuses in this way."""

    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
            urls = {
                "nothing listens": broker.with_port(silent.getsockname()[1]),
                "hangs up": broker.with_port(server.sockets[0].getsockname()[1]),
                "password": broker.with_password("wrong"),
                "no vhost": broker.with_path("/none"),
                "vhost is full": broker.with_path("/full"),
                "no rights": broker.with_user("bare").with_password("bare"),
            }
            yield str(urls[request.param])


async def nowhere(_: Delivery) -> None:
    """Nothing is sent here."""


async def publishing(url: str) -> None:
    """As the leader's publisher does: the connection, and messages that it does not take."""
    transport = RabbitTransport(url)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(transport.run())
        while True:
            await transport.publish([("p", Message(MessageKind.RUN, "a", 1))])
            await asyncio.sleep(0)


async def parking(url: str) -> None:
    queue = RabbitDeliveries(url, "p", 1)
    while True:
        with suppress(BrokerUnavailable):
            await queue.park(b"?", "it can't be read")
        await asyncio.sleep(0)


LOOPS: dict[str, Callable[[str], Coroutine[Any, Any, None]]] = {
    "publisher": publishing,
    "events": lambda url: RabbitEventExchange(url, "events").run(),
    "deliveries": lambda url: RabbitDeliveries(url, "p", 1).run(nowhere),
    "parking": parking,
}


@pytest.mark.parametrize("loop", LOOPS)
async def test_a_loop_that_is_cancelled_while_the_broker_refuses_ends(refusing: str, loop: str) -> None:
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    with structlog.testing.capture_logs():
        for turn in range(TIMES):
            task = asyncio.create_task(LOOPS[loop](refusing))
            await asyncio.sleep(chance.uniform(0, WITHIN_S))
            task.cancel()
            await asyncio.wait({task}, timeout=LIMIT_S)
            if not task.done():
                task.cancel()
                await asyncio.wait({task}, timeout=LIMIT_S)
                pytest.fail(f"the cancellation of turn {turn} was lost; seed {seed}")
            assert task.cancelled()
