"""An empty database on a real mongod for each test; the contracts test the ports."""

from collections.abc import AsyncIterator

import pytest

from hascheduler.mongo.connection import Database, connect, open_database


@pytest.fixture
async def database(mongodb_uri: str, ready_database: str) -> AsyncIterator[Database]:
    client = connect(mongodb_uri)
    yield open_database(client, ready_database)
    await client.close()
