"""Counts every request, also those that are refused before they reach a route: the outermost middleware."""

from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hascheduler.telemetry.metrics_http import HttpMetrics


class MetricsMiddleware:
    """Labels a request with the pattern of its route, never with its path: paths hold names and ids."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        metrics: HttpMetrics = scope["app"].state.services.metrics
        with metrics.request(scope["method"]) as measured:

            async def watched_send(message: Message) -> None:
                if message["type"] == "http.response.start":
                    measured.status = int(message["status"])
                await send(message)

            try:
                await self._app(scope, receive, watched_send)
            finally:
                measured.route = pattern_of(scope)


def pattern_of(scope: Scope) -> str | None:
    """The whole pattern that the path matched; the route object may hold only the part that its router adds."""
    route = scope.get("route")
    if not isinstance(route, Route):
        return None
    end = route.path_format.format_map(scope.get("path_params") or {})
    path: str = scope["path"]
    return path[: -len(end)] + route.path_format if end and path.endswith(end) else route.path_format
