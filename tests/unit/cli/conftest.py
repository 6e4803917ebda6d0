"""A replica's API on memory stores, served on a port of this machine."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from hascheduler.api.http.server import ApiServer
from tests.unit.api.doubles import World, app_of
from tests.unit.cli.invoking import Replica


@pytest.fixture(autouse=True)
def reader_in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
async def url(world: World) -> AsyncIterator[str]:
    server = ApiServer(app_of(world), "127.0.0.1", 0)
    await server.bind()
    serving = asyncio.create_task(server.run())
    with capture_logs():  # what a replica says is no part of what a command does, which has the same streams here
        yield f"http://127.0.0.1:{server.port}"
    serving.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await serving


@pytest.fixture
def replica(url: str) -> Replica:
    return Replica(url)
