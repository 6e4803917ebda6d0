"""``/docs``: the API's description for people; every asset comes from the package.

The page may load nothing from other hosts: its Content-Security-Policy names this replica alone, and no inline script
or style runs. The README in `swagger_ui/` says what is there and where it comes from.
"""

from functools import cache
from importlib.resources import files

from fastapi import APIRouter, Response

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
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>hascheduler</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<div id="swagger-ui"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
"""

router = APIRouter(include_in_schema=False)


@router.get(DOCS_PATH)
async def docs() -> Response:
    return Response(_PAGE, headers=_HEADERS, media_type="text/html")


@cache
def _asset(name: str) -> bytes:
    return (files("hascheduler.api") / "swagger_ui" / name).read_bytes()


def _add(name: str) -> None:
    async def asset() -> Response:
        return Response(_asset(name), headers=_HEADERS, media_type=ASSETS[name])

    router.add_api_route(f"{DOCS_PATH}/{name}", asset, name=f"docs_{name}")


for _name in ASSETS:
    _add(_name)
