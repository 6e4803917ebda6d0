"""The application with its doubles, and a client that speaks to it without a network."""

from collections.abc import AsyncIterator

import httpx
import pytest

from hascheduler.api.app import create_app
from tests.api.doubles import World


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
async def client(world: World) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(create_app(world.services()))
    async with httpx.AsyncClient(transport=transport, base_url="http://api") as client:
        yield client
