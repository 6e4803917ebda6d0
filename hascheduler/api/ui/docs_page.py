"""``/docs``: the API's description for people; the page and every asset come from the package.

The page may load nothing from other hosts: its Content-Security-Policy names this replica alone, and no inline script
or style runs. The README in `swagger_ui/` says what is there and where it comes from.
"""

from functools import cache
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hascheduler.api.ui.pages import SAFE

DOCS_PATH = "/docs"
ASSETS = {
    "swagger-ui-bundle.js": "text/javascript",
    "swagger-ui.css": "text/css",
    "start.js": "text/javascript",
}
"""The assets of the page, each at ``/docs/<name>``, and their media types."""
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {**SAFE, "Content-Security-Policy": _POLICY, "Cache-Control": "no-cache"}


@cache
def _read(name: str) -> bytes:
    return (files("hascheduler.api") / "swagger_ui" / name).read_bytes()


async def _show(request: Request) -> Response:
    name = request.scope["path"].removeprefix(DOCS_PATH).lstrip("/") or "page.html"
    return Response(_read(name), headers=_HEADERS, media_type=ASSETS.get(name, "text/html"))


def routes() -> list[Route]:
    return [Route(path, _show, methods=["GET"]) for path in (DOCS_PATH, *(f"{DOCS_PATH}/{name}" for name in ASSETS))]
