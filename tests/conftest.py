"""What tests run on: servers of this machine's own, started once, or those that the environment names; and logging as
each test finds it, whatever a test before it configured."""

import asyncio
import gc
import os
import secrets
import zoneinfo
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import pytest
import structlog
import uvloop
from pymongo import AsyncMongoClient
from structlog.dev import ConsoleRenderer, plain_traceback

from hascheduler.embedded.servers import start_mongod, start_rabbitmq
from hascheduler.gc_tuning import collect_seldom
from hascheduler.mongo.connection import connect
from tests.chance import load_profile
from tests.kept_database import KeptDatabase
from tests.surroundings import pytest_configure

__all__ = ["pytest_configure"]

load_profile()
collect_seldom()
zoneinfo.reset_tzpath(to=())  # second opinions by `zoneinfo` are by the data of the product

_KINDS = {
    "unit": ("unit",),
    "contract": ("contract",),
    "integration": ("integration", "real"),
    "system": ("system", "real"),
    "system/manifests": ("thorough",),
}
"""The folders of `tests`: each marks what is in it with its own name, and with what is true of all of it."""


_LEFT_BY_THE_KILLED = (
    "ignore:.*_SelectorTransport.__del__:pytest.PytestUnraisableExceptionWarning",
    "ignore:Exception ignored in. <socket.socket:pytest.PytestUnraisableExceptionWarning",
)
"""Where processes are killed, connections to them, or ones that the driver was about to make, are left in this one, and
the collector finds them in a later test, by chance. Tests without processes still fail for what they leave open."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    folder_of = cache(lambda path: path.relative_to(config.rootpath / "tests").parent.as_posix())
    for item in items:
        for marker in _markers_of(folder_of(item.path)):
            item.add_marker(marker)


@cache
def _markers_of(folder: str) -> list[pytest.MarkDecorator]:
    kinds = [markers for kind, markers in _KINDS.items() if folder == kind or folder.startswith(f"{kind}/")]
    names = [name for markers in kinds for name in markers]
    left_over = [pytest.mark.filterwarnings(each) for each in _LEFT_BY_THE_KILLED] if "real" in names else []
    return [getattr(pytest.mark, name) for name in names] + left_over


def pytest_collection_finish() -> None:
    """What is loaded now stays: no collection of garbage need look through it again, in each of thousands of tests."""
    gc.collect()
    gc.freeze()


if os.environ.get("TESTS_LOOP") == "uvloop":  # what replicas run on; asyncio's own otherwise

    def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
        return {"uvloop": uvloop.new_event_loop}


@pytest.fixture(scope="session", autouse=True)
def no_logger_is_cached() -> Iterator[None]:
    """A command that runs inside a test configures logging for its process. A logger that it had cached would go on
    with that configuration in all later tests."""
    configure = structlog.configure

    def never_caching(**options: Any) -> None:
        configure(**options | {"cache_logger_on_first_use": False})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structlog, "configure", never_caching)
        # By default rich draws each traceback with its sources in colour, which nobody reads of a test that passes.
        console = structlog.get_config()["processors"][-1]
        assert isinstance(console, ConsoleRenderer)
        patch.setattr(console, "exception_formatter", plain_traceback)
        yield


@pytest.fixture(autouse=True)
def logging_of_its_own(no_logger_is_cached: None) -> Iterator[None]:
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="session")
async def mongodb_uri() -> AsyncIterator[str]:
    """A real replica set."""
    given = os.environ.get("HASCHEDULER_MONGODB_URI")
    if given:
        yield given
        return
    async with start_mongod() as mongod:
        yield mongod.uri


@pytest.fixture(scope="session")
async def amqp_url() -> AsyncIterator[str]:
    """A real RabbitMQ. Where it is not installed the test fails, and says how to install it: it is not skipped."""
    given = os.environ.get("HASCHEDULER_AMQP_URL")
    if given:
        yield given
        return
    async with start_rabbitmq() as rabbitmq:
        yield rabbitmq.url


@pytest.fixture(scope="session")
async def kept_database(mongodb_uri: str) -> AsyncIterator[KeptDatabase]:
    async with connect(mongodb_uri) as client:
        kept = KeptDatabase(client)
        yield kept
        await kept.drop()


@pytest.fixture(scope="session")
async def kept_shards(kept_database: KeptDatabase) -> AsyncIterator[Sequence[KeptDatabase]]:
    """Three, of which the first is the one that other tests use."""
    more = [KeptDatabase(kept_database.client) for _ in range(2)]
    yield [kept_database, *more]
    for kept in more:
        await kept.drop()


@pytest.fixture
async def ready_databases(kept_shards: Sequence[KeptDatabase]) -> Sequence[str]:
    """As `ready_database`, for the shards of one deployment."""
    return [await kept.emptied() for kept in kept_shards]


@pytest.fixture
async def ready_database(kept_database: KeptDatabase) -> str:
    """The name of a database with all collections and indexes, empty; the next test that wants one has it too."""
    return await kept_database.emptied()


@pytest.fixture
async def new_database(kept_database: KeptDatabase) -> None:
    """For tests of query plans: in what `ready_database` is then, nothing was ever stored. An index in which an array
    once was serves no sort, even when the array is gone."""
    await kept_database.drop()


@pytest.fixture
async def database_name(mongodb_uri: str) -> AsyncIterator[str]:
    """A database of the test's own, dropped afterwards."""
    name = f"test-{secrets.token_hex(6)}"
    yield name
    async with AsyncMongoClient[dict[str, object]](mongodb_uri) as client:
        await client.drop_database(name)
