"""The application on a port of this machine, for tests that speak to it over a socket."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from hascheduler.api.http.server import ApiServer
from tests.unit.api.doubles import the_app


@pytest.fixture(scope="session")
async def served() -> AsyncIterator[str]:
    """The URL of one server for all tests: to start and stop one takes longer than most of them. `app_of` gives it the
    services of a test's own world."""
    server = ApiServer(the_app(), "127.0.0.1", 0)
    await server.bind()
    serving = asyncio.create_task(server.run())
    yield f"http://127.0.0.1:{server.port}"
    serving.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await serving
