"""Both schedulers against the real API: one over a port of this machine, one inside this process."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import httpx
import pytest
from structlog.testing import capture_logs

from hascheduler.api.http.server import ApiServer
from hascheduler.client import AsyncScheduler, Scheduler
from tests.unit.api.doubles import World, app_of
from tests.unit.client.faces import Face, Threaded


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture(params=["sync", "async"])
async def face(request: pytest.FixtureRequest, world: World) -> AsyncIterator[Face]:
    app = app_of(world)
    with capture_logs():
        if request.param == "async":
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app)) as http:
                yield Face(AsyncScheduler("http://api", http=http))
            return
        server = ApiServer(app, "127.0.0.1", 0)
        await server.bind()
        serving = asyncio.create_task(server.run())
        with Scheduler(f"http://127.0.0.1:{server.port}") as scheduler:
            yield Face(Threaded(scheduler))
        serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving
