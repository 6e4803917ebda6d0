"""Both schedulers against the real API: one over a port of this machine, one inside this process."""

from collections.abc import AsyncIterator, Iterator

import httpx2
import pytest
from structlog.testing import capture_logs

from hascheduler.client import Scheduler
from tests.tiers import spread
from tests.unit.api.doubles import World, app_of
from tests.unit.api.test_server import serving
from tests.unit.client.faces import Face, Threaded, scheduler_over


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """What the API logs is no part of what its caller gets."""
    with capture_logs():
        yield


@pytest.fixture(params=spread(["async", "sync"], check=1))
async def face(request: pytest.FixtureRequest, world: World) -> AsyncIterator[Face]:
    app = app_of(world)
    if request.param == "async":
        yield Face(scheduler_over(httpx2.ASGITransport(app), "http://api"))
        return
    async with serving(world) as server:
        with Scheduler(f"http://127.0.0.1:{server.port}") as scheduler:
            yield Face(Threaded(scheduler))
