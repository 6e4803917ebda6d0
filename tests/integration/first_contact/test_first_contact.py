"""The first try with servers that can't be used: one line says which address, what is wrong and what to do."""

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from itertools import cycle
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import structlog

from hascheduler.errors import InvalidInput
from hascheduler.rabbitmq.connection import BrokerConnection, Session, require_access
from tests.chaos.servers import Broker
from tests.integration.mongods import mongod

PROCESSES = [["serve", "--http-port", "0"], ["processor", "hascheduler.handlers.log"]]
LIMIT_S = 60
PASSWORD = "sEcret"  # what must not be shown


async def said(*arguments: str, **variables: str) -> tuple[int | None, str]:
    """As a user starts it by hand, with nothing that would start it again: the status and what it printed."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("HASCHEDULER_") and name not in ("KUBERNETES_SERVICE_HOST", "INVOCATION_ID")
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "hascheduler", *arguments),
        env={**inherited, "HASCHEDULER_TRANSPORT": "mongo", **variables},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await asyncio.wait_for(process.communicate(), LIMIT_S)
    return process.returncode, out.decode()


def check(told: tuple[int | None, str], problem: str) -> None:
    status, out = told
    assert (status, out.count("\n"), out.startswith("hascheduler: ")) == (2, 1, True), told
    assert problem in out
    assert PASSWORD not in out


@pytest.fixture(scope="module")
async def standalone(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[int]:
    async with mongod(tmp_path_factory.mktemp("standalone")) as port:
        yield port


@pytest.fixture(scope="module")
async def uninitiated(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[int]:
    async with mongod(tmp_path_factory.mktemp("uninitiated"), "--replSet", "rs0") as port:
        yield port


NO_DATABASE: dict[str, tuple[str, str]] = {
    "standalone": (
        "mongodb://127.0.0.1:{standalone}/?replicaSet=rs0",
        "127.0.0.1:{standalone} is not a member of a replica set: start mongod with --replSet rs0",
    ),
    "not initiated": (
        "mongodb://127.0.0.1:{uninitiated}/?replicaSet=rs0",
        "the replica set of 127.0.0.1:{uninitiated} is not initiated",
    ),
    "another set": ("{other_set}", "is a member of the replica set 'rs0', not of 'rs7'"),
    "no such user": ("{other_user}", "refuses user 'somebody'"),
    "no SRV records": (
        "mongodb+srv://me:sEcret@no-such-host.invalid/",
        "HASCHEDULER_MONGODB_URI: the DNS records of 'no-such-host.invalid' can't be resolved",
    ),
    "nothing listens": (
        "mongodb://somebody:sEcret@127.0.0.1:1/?replicaSet=rs0",
        "HASCHEDULER_MONGODB_URI: nothing listens at 127.0.0.1:1",
    ),
    "of three, none": (
        "mongodb://127.0.0.1:1,127.0.0.1:2,no-such-host.invalid/?replicaSet=rs0",
        "nothing listens at 127.0.0.1:1, 127.0.0.1:2; there is no address for the host 'no-such-host.invalid'",
    ),
    "no URI": ("mongodb:/127.0.0.1", "HASCHEDULER_MONGODB_URI: not a MongoDB URI (Invalid URI scheme"),
    "an @ in the password": ("mongodb://somebody:sEc@ret@127.0.0.1/", "not a MongoDB URI (InvalidURI)"),
}
"""The URI, and what is said of it."""


@pytest.mark.parametrize(("row", "process"), [*zip(NO_DATABASE, cycle(PROCESSES), strict=False)])
async def test_a_database_that_can_not_be_used(
    standalone: int, uninitiated: int, mongodb_uri: str, process: list[str], row: str
) -> None:
    places = {
        "standalone": standalone,
        "uninitiated": uninitiated,
        "other_set": mongodb_uri.replace("replicaSet=rs0", "replicaSet=rs7"),
        "other_user": mongodb_uri.replace("://", f"://somebody:{PASSWORD}@"),
    }
    uri, problem = (text.format(**places) for text in NO_DATABASE[row])
    check(await said(*process, HASCHEDULER_MONGODB_URI=uri), problem)


@pytest.mark.parametrize("command", ["dev", "demo"])
async def test_it_is_told_before_anything_is_started(standalone: int, tmp_path: Path, command: str) -> None:
    for uri, problem in (
        ("mongodb://127.0.0.1:1/?replicaSet=rs0", "nothing listens at 127.0.0.1:1"),
        (f"mongodb://127.0.0.1:{standalone}/", "is not a member of a replica set"),
    ):
        told = await said(command, "--folder", str(tmp_path / "run"), HASCHEDULER_MONGODB_URI=uri)
        check(told, problem)


def with_user(url: str, user: str) -> str:
    return urlsplit(url)._replace(netloc=f"{user}@{urlsplit(url).netloc.rpartition('@')[2]}").geturl()


@pytest.mark.parametrize("process", PROCESSES, ids=lambda process: process[0])
async def test_a_broker_that_does_not_let_it_in(mongodb_uri: str, amqp_url: str, process: list[str]) -> None:
    place = urlsplit(amqp_url).netloc.rpartition("@")[2]
    for url, problem in (
        (with_user(amqp_url, "somebody:sEcret"), f"HASCHEDULER_AMQP_URL: {place} refuses user 'somebody'"),
        (urlsplit(amqp_url)._replace(path="/no%20where").geturl(), "has no virtual host 'no where' for user "),
    ):
        told = await said(
            *process, HASCHEDULER_MONGODB_URI=mongodb_uri, HASCHEDULER_AMQP_URL=url, HASCHEDULER_TRANSPORT="rabbitmq"
        )
        check(told, problem)


async def test_dev_starts_nothing_beside_a_broker_that_is_not_there(mongodb_uri: str, tmp_path: Path) -> None:
    """Replicas would wait for it, each in its own log."""
    for url, problem in (
        ("amqp://guest:sEcret@127.0.0.1:1/", "nothing listens at 127.0.0.1:1; expected the address of a"),
        ("amqp://guest:sEcret@no-such-host.invalid/", "the host 'no-such-host.invalid' can't be resolved"),
    ):
        variables = {"HASCHEDULER_MONGODB_URI": mongodb_uri, "HASCHEDULER_AMQP_URL": url}
        told = await said("dev", "--folder", str(tmp_path), "--transport", "rabbitmq", **variables)
        check(told, f"HASCHEDULER_AMQP_URL: {problem}")


@pytest.fixture(scope="module")
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
        f"127.0.0.1:{broker.port} denies user 'guest' the virtual host '/': "
        "NOT_ALLOWED - access to vhost '/' refused for user 'guest' (530); expected a user with permissions on it"
    ) in str(refused.value)
