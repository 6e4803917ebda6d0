"""The servers that tests run on: this machine's own, started once a session, or those that the environment names."""

import os
import secrets
from collections.abc import AsyncIterator

import pytest
from pymongo import AsyncMongoClient

from hascheduler.embedded.mongod import start_mongod
from hascheduler.embedded.rabbitmq import start_rabbitmq


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


@pytest.fixture
async def database_name(mongodb_uri: str) -> AsyncIterator[str]:
    """A database of the test's own, dropped afterwards."""
    name = f"test-{secrets.token_hex(6)}"
    yield name
    async with AsyncMongoClient[dict[str, object]](mongodb_uri) as client:
        await client.drop_database(name)
