"""The application behind the health port: plain HTTP, no tokens, nothing but what probes and Prometheus ask for."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus

from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from hascheduler.telemetry.health import Health
from hascheduler.telemetry.registry import CONTENT_TYPE, text_of


def health_application(health: Health, registry: CollectorRegistry, *, leads: bool) -> Starlette:
    """``/livez``, ``/readyz`` and ``/metrics``; ``/leaderz`` too where a process ``leads`` or not."""

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
