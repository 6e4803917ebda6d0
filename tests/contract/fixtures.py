"""The fixtures of the backends, on databases that nobody else uses; a ``conftest`` that needs them imports all."""

from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from mongomock.collection import Collection as MockCollection
from mongomock_motor import AsyncMongoMockClient
from motor.motor_asyncio import AsyncIOMotorClient
from pymongo import ReturnDocument

import hascheduler.kubernetes.api as api_module
from hascheduler.kubernetes.leases import KubernetesLeaseStore
from hascheduler.mongo.connection import CLIENT_OPTIONS, Client, connect, open_database
from hascheduler.testing.memory.database import MemoryConnection, MemoryDatabase
from tests.contract.backends import Backend, kubernetes_backend, memory_backend, mongo_backend
from tests.doubles.kubernetes.api_server import ApiServerDouble
from tests.doubles.kubernetes.fixtures import account, api, authority, certificate, cluster, leases

__all__ = [
    "account",
    "api",
    "authority",
    "backend",
    "certificate",
    "cluster",
    "kubernetes_backend_fixture",
    "leases",
    "memory_backend_fixture",
    "mongomock_backend",
    "motor_backend",
    "motor_client",
    "pymongo_backend",
    "pymongo_client",
]


@pytest.fixture
def backend(request: pytest.FixtureRequest) -> Backend:
    """The one that the suite's `on` names."""
    return cast(Backend, request.getfixturevalue(f"{request.param}_backend"))


@pytest.fixture(name="memory_backend")
def memory_backend_fixture() -> Backend:
    return memory_backend(MemoryConnection(MemoryDatabase()))


@pytest.fixture(name="kubernetes_backend")
def kubernetes_backend_fixture(
    leases: KubernetesLeaseStore, cluster: ApiServerDouble, monkeypatch: pytest.MonkeyPatch
) -> Backend:
    monkeypatch.setattr(api_module, "EXCHANGE_LIMIT_S", 60)  # fifty handshakes at once, in one process
    return kubernetes_backend(leases, cluster)


@pytest.fixture
async def pymongo_backend(pymongo_client: Client, ready_database: str) -> Backend:
    return mongo_backend(open_database(pymongo_client, ready_database))


@pytest.fixture
async def motor_backend(motor_client: Any, ready_database: str) -> Backend:
    return mongo_backend(open_database(motor_client, ready_database))


@pytest.fixture
def mongomock_backend(monkeypatch: pytest.MonkeyPatch) -> Backend:
    # It refuses hints; they say by which index a server should look, and change no answer.
    update: Any = MockCollection._update

    def without_hint(*args: Any, hint: object = None, **options: Any) -> Any:
        return update(*args, **options)

    monkeypatch.setattr(MockCollection, "_update", without_hint)
    return mongo_backend(cast(Any, _MockDatabase()))


@pytest.fixture(scope="session")
async def pymongo_client(mongodb_uri: str) -> AsyncIterator[Client]:
    async with connect(mongodb_uri) as client:
        yield client


@pytest.fixture(scope="session")
async def motor_client(mongodb_uri: str) -> AsyncIterator[Any]:
    client: Any = AsyncIOMotorClient(mongodb_uri, **CLIENT_OPTIONS)
    yield client
    client.close()


class _MockDatabase:
    """mongomock-motor, which knows neither our codec options nor read concerns."""

    codec_options = None

    def __init__(self) -> None:
        self._database: Any = AsyncMongoMockClient()["test"]

    async def command(self, command: dict[str, Any], *, codec_options: None) -> dict[str, Any]:
        """The one that the stores send as it is."""
        found = await self[command["findAndModify"]].find_one_and_update(
            command["query"], command["update"], command["fields"], return_document=ReturnDocument.AFTER
        )
        return {"value": found}

    def __getitem__(self, name: str) -> "_MockCollection":
        return _MockCollection(self._database[name])


class _MockCollection:
    """Its collections lose their asynchronous half in ``with_options``: these stay as they are."""

    def __init__(self, collection: Any) -> None:
        self._collection = collection

    def with_options(self, **_: Any) -> "_MockCollection":
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._collection, name)
