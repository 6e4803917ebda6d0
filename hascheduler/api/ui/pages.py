"""``/ui`` and ``/docs``: the dashboard's page, the API's description for people, and their assets.

Every file comes from the package, and ``/`` redirects browsers to the dashboard.

The dashboard is one document for all its views, and requests its data from the API. The path of each asset contains a
digest of all assets, so browsers cache them forever and never mix two releases. The files are the same for everybody
and hold no tenant's data, so they need no token.

What must hold: the pages load nothing from other hosts and run no inline script or style (their Content-Security-Policy
forbids it), and no text of the dashboard becomes markup (Trusted Types). The README in `swagger_ui/` says where the
assets of ``/docs`` come from.
"""

import gzip
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import PurePath

from fastapi import Response
from starlette.requests import Request
from starlette.routing import Route

from hascheduler.api.http.problems import problem
from hascheduler.api.services import services_of

ROOT = "/"
PAGE = "/ui"
_MEDIA_TYPES = {
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "json": "application/json",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " base-uri 'none'; frame-ancestors 'none'"
)
SAFE = {
    "Content-Security-Policy": f"{_POLICY}; form-action 'self'; require-trusted-types-for 'script'; trusted-types",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_FOR_GOOD = "public, max-age=31536000, immutable"
_DIGEST_CHARACTERS = 16


@dataclass(frozen=True, slots=True)
class Asset:
    """A file to serve; ``packed`` is ``body`` in gzip."""

    body: bytes
    packed: bytes
    media_type: str


@cache
def assets() -> Mapping[str, Asset]:
    """Return the assets by path below ``static/``."""
    return dict(_read(files("hascheduler.api.ui") / "static", ""))


def _read(folder: Traversable, prefix: str) -> Iterator[tuple[str, Asset]]:
    for entry in sorted(folder.iterdir(), key=lambda each: each.name):
        ending = entry.name.rpartition(".")[2]
        if entry.is_dir():
            yield from _read(entry, f"{prefix}{entry.name}/")
        elif ending in _MEDIA_TYPES:
            body = entry.read_bytes()
            yield f"{prefix}{entry.name}", Asset(body, gzip.compress(body, mtime=0), _MEDIA_TYPES[ending])


PAGES = frozenset(
    {ROOT, PAGE}
    | {f"{PAGE}/{path.stem.replace('_', '-')}" for path in map(PurePath, assets()) if path.parent.name == "views"}
)
"""Paths that other sites may link to. Each view has an address of its own, in which the query selects the object."""


@cache
def _digest() -> str:
    whole = hashlib.sha256()
    for name, asset in assets().items():
        whole.update(f"{name}\0{len(asset.body)}\0".encode())
        whole.update(asset.body)
    return whole.hexdigest()[:_DIGEST_CHARACTERS]


def asset_path(name: str) -> str:
    return f"{PAGE}/{_digest()}/{name}"


@cache
def _page() -> Asset:
    text = (files("hascheduler.api.ui") / "static" / "page.html").read_text(encoding="utf-8")
    # Preload all modules at once: a browser would find them one after the other.
    preloads = "\n".join(
        f'<link rel="modulepreload" href="{asset_path(name)}">' for name in assets() if name.endswith(".js")
    )
    body = text.replace("{assets}", f"{PAGE}/{_digest()}").replace("{preloads}", preloads).encode()
    return Asset(body, gzip.compress(body, mtime=0), "text/html; charset=utf-8")


async def _root(request: Request) -> Response:
    """Redirect browsers to the dashboard if it is enabled; answer all other requests as for an unknown path."""
    has_dashboard = services_of(request.scope).auth.pages.enabled
    if not has_dashboard or "text/html" not in request.headers.get("accept", ""):
        return problem(HTTPStatus.NOT_FOUND, "not-found", "there is nothing at /; expected /v1/…, /ui or /docs")
    return Response(status_code=HTTPStatus.TEMPORARY_REDIRECT, headers={"Location": PAGE, "Cache-Control": "no-store"})


@cache
def _served() -> Mapping[str, tuple[Asset, str]]:
    """Return by path what is served without a token, and for how long browsers may keep it."""
    return {
        **dict.fromkeys(PAGES - {ROOT}, (_page(), "no-cache")),
        **{asset_path(name): (asset, _FOR_GOOD) for name, asset in assets().items()},
    }


def open_paths() -> frozenset[str]:
    """Return all paths of `routes`."""
    return frozenset({ROOT, *_served()})


async def _show(request: Request) -> Response:
    asset, cache_control = _served()[request.scope["path"]]
    headers = {**SAFE, "Cache-Control": cache_control, "Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(asset.packed, headers={**headers, "Content-Encoding": "gzip"}, media_type=asset.media_type)
    return Response(asset.body, headers=headers, media_type=asset.media_type)


def routes() -> list[Route]:
    """Return plain Starlette routes: only the page reads a view's query, so OpenAPI does not describe it."""
    return [Route(ROOT, _root, methods=["GET"]), *(Route(path, _show, methods=["GET"]) for path in _served())]


DOCS_PATH = "/docs"
ASSETS = {
    "swagger-ui-bundle.js": "text/javascript",
    "swagger-ui.css": "text/css",
    "start.js": "text/javascript",
}
"""The assets of the page, each at ``/docs/<name>``, and their media types."""
_HEADERS = {**SAFE, "Content-Security-Policy": f"{_POLICY}; form-action 'none'", "Cache-Control": "no-cache"}


@cache
def _read_docs(name: str) -> bytes:
    return (files("hascheduler.api") / "swagger_ui" / name).read_bytes()


async def _show_docs(request: Request) -> Response:
    name = request.scope["path"].removeprefix(DOCS_PATH).lstrip("/") or "page.html"
    return Response(_read_docs(name), headers=_HEADERS, media_type=ASSETS.get(name, "text/html"))


def docs_routes() -> list[Route]:
    return [
        Route(path, _show_docs, methods=["GET"]) for path in (DOCS_PATH, *(f"{DOCS_PATH}/{name}" for name in ASSETS))
    ]
