"""A database that nobody else uses meanwhile, without any defect."""

from collections.abc import AsyncIterator

import pytest

from hascheduler.mongo.connection import Database, connect, open_database
from tests.integration.check.healthy import Healthy


@pytest.fixture
async def database(mongodb_uri: str, ready_database: str) -> AsyncIterator[Database]:
    client = connect(mongodb_uri)
    yield open_database(client, ready_database)
    await client.close()


@pytest.fixture
async def healthy(database: Database) -> Healthy:
    return await Healthy.make(database)
