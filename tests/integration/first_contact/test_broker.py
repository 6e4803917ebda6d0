"""The first try with a broker that refuses us ends at once; one that does not answer is waited for, and told of."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import structlog

from hascheduler.errors import InvalidInput
from hascheduler.rabbitmq.connection import BrokerConnection, Session, require_access
from tests.chaos.servers import Broker
from tests.integration.first_contact.test_mongodb import LIMIT_S, PROCESSES, check, said


def with_user(url: str, user: str) -> str:
    return urlsplit(url)._replace(netloc=f"{user}@{urlsplit(url).netloc.rpartition('@')[2]}").geturl()


@pytest.mark.parametrize("process", PROCESSES, ids=lambda process: process[0])
async def test_credentials_that_are_wrong(mongodb_uri: str, amqp_url: str, process: list[str]) -> None:
    url = with_user(amqp_url, "somebody:sEcret")
    told = await said(
        *process, HASCHEDULER_MONGODB_URI=mongodb_uri, HASCHEDULER_AMQP_URL=url, HASCHEDULER_TRANSPORT="rabbitmq"
    )
    check(told, f"HASCHEDULER_AMQP_URL: {urlsplit(amqp_url).netloc.rpartition('@')[2]} refuses user 'somebody'")


@pytest.mark.parametrize("process", PROCESSES, ids=lambda process: process[0])
async def test_a_virtual_host_that_there_is_not(mongodb_uri: str, amqp_url: str, process: list[str]) -> None:
    url = urlsplit(amqp_url)._replace(path="/no%20where").geturl()
    told = await said(
        *process, HASCHEDULER_MONGODB_URI=mongodb_uri, HASCHEDULER_AMQP_URL=url, HASCHEDULER_TRANSPORT="rabbitmq"
    )
    check(told, "has no virtual host 'no where' for user ")


async def test_a_broker_that_takes_us_or_is_away_ends_nothing(amqp_url: str) -> None:
    await require_access(amqp_url)
    await require_access("amqp://guest:guest@127.0.0.1:1/")


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("amqp://guest:sEcret@127.0.0.1:1/", "nothing listens at 127.0.0.1:1; expected the address of a broker"),
        ("amqp://guest:sEcret@no-such-host.invalid/", "there is no address for the host 'no-such-host.invalid'"),
    ],
)
async def test_dev_starts_nothing_beside_a_broker_that_is_not_there(
    mongodb_uri: str, tmp_path: Path, url: str, problem: str
) -> None:
    """Replicas would wait for it, each in its own log."""
    variables = {"HASCHEDULER_MONGODB_URI": mongodb_uri, "HASCHEDULER_AMQP_URL": url}
    told = await said("dev", "--folder", str(tmp_path), "--transport", "rabbitmq", **variables)
    check(told, f"HASCHEDULER_AMQP_URL: {problem}")


async def test_a_url_that_is_none() -> None:
    with pytest.raises(InvalidInput, match="HASCHEDULER_AMQP_URL: not an AMQP URL"):
        await require_access("http://127.0.0.1/")


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    """Whose limits may be set: one of its own, in a folder that its own user may enter."""
    broker = Broker(Path(tempfile.mkdtemp(prefix="hascheduler-broker-")))
    await broker.start()
    yield broker
    await broker.remove()


async def test_a_limit_of_connections_is_waited_for_until_it_is_lifted(broker: Broker) -> None:
    connected = asyncio.Event()

    async def use(_: Session) -> None:
        connected.set()
        await asyncio.Event().wait()

    limits = [
        ("set_vhost_limits", "-p", "/", '{"max-connections": 0}'),
        ("set_user_limits", "guest", '{"max-connections": 0}'),
    ]
    for limit, lift in zip(
        limits, (("clear_vhost_limits", "-p", "/"), ("clear_user_limits", "guest", "all")), strict=True
    ):
        connected.clear()
        await broker._control(*limit)
        await require_access(broker.url)
        with structlog.testing.capture_logs() as lines:
            running = asyncio.create_task(BrokerConnection(broker.url, "test").run(use))
            async with asyncio.timeout(LIMIT_S):
                while not lines:  # noqa: ASYNC110  # it says so in the log
                    await asyncio.sleep(0.01)
                assert not connected.is_set()
                await broker._control(*lift)
                await connected.wait()
        running.cancel()
        await asyncio.wait([running])
        assert f"127.0.0.1:{broker.port} refuses the connection: NOT_ALLOWED - " in lines[0]["error"]
        assert "limit (0) is reached (530)" in lines[0]["error"]


async def test_a_user_without_permissions_is_told_so_by_the_broker(broker: Broker) -> None:
    await broker._control("clear_permissions", "-p", "/", "guest")
    with pytest.raises(InvalidInput) as refused:
        await require_access(broker.url)
    assert (
        f"127.0.0.1:{broker.port} refuses user 'guest' the virtual host '/': "
        "NOT_ALLOWED - access to vhost '/' refused for user 'guest' (530); expected a user with permissions in it"
    ) in str(refused.value)
