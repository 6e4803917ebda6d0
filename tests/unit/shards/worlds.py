"""Several shards in memory, each with the real routes, behind one gateway of a test; and replicas that host a shard."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import httpx2
from starlette.types import ASGIApp, Receive, Scope, Send

from hascheduler.api.app import with_edge
from hascheduler.api.http.limits import HOLDING, Holding
from hascheduler.api.middleware.auth import ANONYMOUS
from hascheduler.shards.layout import Layout
from tests.unit.api.doubles import World, the_routes

NAMES = ("default", "0001", "0002")
LAYOUT = Layout.even(NAMES)
TENANTS = [next(f"t{n}" for n in range(999) if LAYOUT.index_of(f"t{n}") == index) for index in range(3)]
"""One for each shard."""
Answer = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass
class WorldPlace:
    """A shard with a world of its own. A test may have it answer otherwise."""

    name: str
    world: World = field(default_factory=World)
    answer: Answer | None = None
    asked: int = 0

    def __post_init__(self) -> None:
        self.services = self.world.services()
        self.app: ASGIApp = with_edge(the_routes(), self.services)

    async def ask(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.asked += 1
        own = {**scope, "state": {**scope["state"], "services": self.services}}
        await (self.answer or self.app)(own, receive, send)


def shards() -> list[WorldPlace]:
    """Three whose new ids never meet."""
    places = [WorldPlace(name) for name in NAMES]
    for index, place in enumerate(places):
        place.world._job_count = index * 1_000
    return places


def in_front(home: World, answer: Answer) -> Answer:
    """What the edge does: it names who asks, and brings the services of the home."""
    app = SimpleNamespace(state=SimpleNamespace(services=home.services()))

    async def front(scope: Scope, receive: Receive, send: Send) -> None:
        scope["app"] = app
        scope["state"] = {"services": app.state.services, "edge": app.state.services, "caller": ANONYMOUS}
        holding = Holding(home.limits, (), home.metrics, privileged=True)
        scope["state"][HOLDING] = holding
        try:
            await answer(scope, receive, send)
        finally:
            holding.release()

    return front


@asynccontextmanager
async def asking(answer: Answer) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(answer), base_url="http://api") as client:
        yield client


async def submit(place: WorldPlace, **body: Any) -> str:
    async with asking(place.app) as client:
        answer = await client.post("/v1/jobs", json={"definition": "log", **body})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])
