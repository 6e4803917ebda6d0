"""The application with its doubles, and a client that speaks to it without a network."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from hascheduler.api.edge import Edge
from tests.unit.api.doubles import World, the_app
from tests.unit.api.requests import Client
from tests.unit.api.tokens import Guarded


@pytest.fixture(scope="session")
def app() -> Edge:
    return the_app()


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
async def client(app: Edge, world: World) -> AsyncIterator[Client]:
    app.services = world.services()
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://api") as client:
        yield client


@pytest.fixture
def guarded(app: Edge, world: World) -> Guarded:
    return Guarded(app, world)


@pytest.fixture
async def boss(guarded: Guarded) -> AsyncIterator[Client]:
    async with await guarded.client("admin") as client:
        yield client


@pytest.fixture
async def acme(guarded: Guarded) -> AsyncIterator[Client]:
    async with await guarded.client("operator", "acme") as client:
        yield client


@pytest.fixture
async def other(guarded: Guarded) -> AsyncIterator[Client]:
    async with await guarded.client("operator", "other") as client:
        yield client
