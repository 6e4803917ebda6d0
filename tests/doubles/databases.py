"""In-memory databases of MongoDB, for stores that need only a database."""

from typing import Any, cast

from mongomock_motor import AsyncMongoMockClient

from hascheduler.mongo.connection import Database


def mock_databases(*names: str) -> list[Database]:
    """Return empty databases of one client, by name."""
    client: Any = AsyncMongoMockClient()
    return [cast(Any, _NamedMockDatabase(client[name], name)) for name in names]


class _NamedMockDatabase:
    def __init__(self, database: Any, name: str) -> None:
        self._database = database
        self.name = name

    def __getitem__(self, name: str) -> "_OneMockCollection":
        return _OneMockCollection(self._database[name])


class _OneMockCollection:
    """A collection whose ``with_options`` returns itself, because the library's copy loses its asynchronous methods."""

    def __init__(self, collection: Any) -> None:
        self._collection = collection

    def with_options(self, **_: Any) -> "_OneMockCollection":
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._collection, name)
