"""A database of the test's own without any defect."""

from collections.abc import AsyncIterator

import pytest

from hascheduler.mongo.connection import Database, connect, open_database
from hascheduler.mongo.schema.indexes import ensure_collections_and_indexes
from tests.integration.check.healthy import Healthy


@pytest.fixture
async def database(mongodb_uri: str, database_name: str) -> AsyncIterator[Database]:
    client = connect(mongodb_uri)
    database = open_database(client, database_name)
    await ensure_collections_and_indexes(database)
    yield database
    await client.close()


@pytest.fixture
async def healthy(database: Database) -> Healthy:
    return await Healthy.make(database)
