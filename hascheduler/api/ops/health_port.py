"""The health port of a process, open from its start to its end, and its responses.

Replicas and processors use the same one, so it depends on the state of a process and not on the API.
"""

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus

import structlog
from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from hascheduler.api.http.server import ApiServer
from hascheduler.telemetry.health import Health
from hascheduler.telemetry.registry import CONTENT_TYPE, text_of

log = structlog.get_logger(__name__)

_CONNECTIONS_MAX = 64


class HealthPort:
    """The server of the health port, unless ``port`` is None.

    It opens before the first request to the database, so that a process that waits for the database can be
    distinguished from a dead one.
    """

    def __init__(
        self, host: str, port: int | None, health: Health, registry: CollectorRegistry, *, leads: bool
    ) -> None:
        self._server = (
            None
            if port is None
            else ApiServer(
                health_application(health, registry, leads=leads),
                host,
                port,
                setting="HEALTH",
                connections_max=_CONNECTIONS_MAX,
                connections_reserve=0,
            )
        )
        self._host = host
        self._serving: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Answer from now on; raise `InvalidInput` if the port is not available."""
        if self._server is not None:
            await self._server.bind()
            log.info("health_server_started", health=f"{self._host}:{self._server.port}")
            self._serving = asyncio.create_task(self._server.run(), name="health port")

    async def close(self) -> None:
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.wait([self._serving])


def health_application(health: Health, registry: CollectorRegistry, *, leads: bool) -> Starlette:
    """Return the routes ``/livez``, ``/readyz`` and ``/metrics``, and ``/leaderz`` if the process can lead."""

    async def metrics(_: Request) -> Response:
        return Response(text_of(registry), headers={"Content-Type": CONTENT_TYPE})

    routes = [
        Route("/livez", _answering("alive", health.not_alive)),
        Route("/readyz", _answering("ready", health.not_ready)),
        Route("/metrics", metrics),
    ]
    if leads:
        routes.append(Route("/leaderz", _answering("leading", health.not_leading)))
    return Starlette(routes=routes)


def _answering(name: str, why_not: Callable[[], str]) -> Callable[[Request], Awaitable[Response]]:
    async def answer(_: Request) -> Response:
        reason = why_not()
        status = HTTPStatus.SERVICE_UNAVAILABLE if reason else HTTPStatus.OK
        return JSONResponse({name: not reason, "reason": reason}, status, {"Cache-Control": "no-store"})

    return answer
