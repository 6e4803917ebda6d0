"""Both schedulers against the real API: one over a port of this machine, one inside this process."""

from collections.abc import AsyncIterator

import httpx
import pytest
from structlog.testing import capture_logs

from hascheduler.client import AsyncScheduler, Scheduler
from tests.unit.api.doubles import World, app_of
from tests.unit.api.served import *  # noqa: F403  # fixtures are found by their names in this module
from tests.unit.client.faces import Face, Threaded


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture(params=["sync", "async"])
async def face(request: pytest.FixtureRequest, world: World, served: str) -> AsyncIterator[Face]:
    app = app_of(world)
    with capture_logs():
        if request.param == "async":
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app)) as http:
                yield Face(AsyncScheduler("http://api", http=http))
            return
        with Scheduler(served) as scheduler:
            yield Face(Threaded(scheduler))
