"""The application: its middlewares, its routers in their order, its OpenAPI document.

The document is a file of the package, written by `make reference`: generating it takes most of a second and 11 MB.
"""

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import orjson
from fastapi import Depends, FastAPI, Response
from fastapi.routing import APIRoute
from starlette.middleware.errors import ServerErrorMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from hascheduler import __version__
from hascheduler.api import hot_routes
from hascheduler.api.edge import Edge
from hascheduler.api.http.problems import ANY_PROBLEM, MEDIA_TYPE
from hascheduler.api.jobs import all_that_match, batch, changes, errors, read, submit
from hascheduler.api.middleware.audit import tell_match
from hascheduler.api.middleware.overload import TurnedAway
from hascheduler.api.ops import cluster, events, health, processors
from hascheduler.api.resources import access, named
from hascheduler.api.routing import route_rules
from hascheduler.api.routing.route_rules import MERGE_PATCH, honours_key, only_declared
from hascheduler.api.schedules import actions, backfill, previews, recent, selection, timeline, verdicts
from hascheduler.api.schedules import all_that_match as all_schedules_that_match
from hascheduler.api.schedules import routes as schedules
from hascheduler.api.services import ApiServices
from hascheduler.api.ui import live, pages, sessions
from hascheduler.api.work import routes as work
from hascheduler.schema.noun import Noun

__all__ = ["DESCRIPTION", "ApiServices", "create_app", "create_routes", "description_of", "with_edge"]

DESCRIPTION = "openapi.json"
"""The name of the OpenAPI document, a file next to this module."""

_DESCRIPTION = """\
Durations are texts such as `"90s"`, `"1m30s"`, `"200ms"`, or numbers of seconds; instants are RFC 3339 with an offset.
Unknown fields, query parameters and bodies are refused, and so is an `Idempotency-Key` that the route does not support.
A response with one schedule, definition, lane or tenant has its revision as `ETag`; changes accept `If-Match`.
The `:` in a job id needs no escape in a path.
A header `Warning` (code 299) reports accepted input that is probably a mistake, such as a lane that is not defined.
Every error is `application/problem+json` (RFC 9457) and names each wrong field, the problem and what is expected.

If tokens are required (the setting AUTH; by default not on loopback), send `Authorization: Bearer hsk_…`.
A token has a role and a tenant (`*`: all). It can only see and change what belongs to its tenant; all else is 404.

| role | may |
|---|---|
| viewer | read jobs, schedules, events; definitions, lanes, calendars, the cluster |
| submitter | also submit and cancel jobs, and trigger schedules |
| operator | also write, pause and backfill schedules, and retry and reprioritize jobs; for all tenants: write definitions, record |
| admin | also create and revoke tokens, and read the audit log; for all tenants: write lanes, calendars and tenants, drain processors, pause everything |
| worker | only fetch and finish jobs (`/v1/work`), for all tenants |

Metrics and processors concern all tenants, so only tokens for all tenants can read them.

One token may use half of a replica's capacity, and one address three quarters, so a proxy should not be the only
address. This holds for requests in flight, submits that wait, fetches, event streams, recordings and large bodies.
Beyond that any route answers 429 (`share-used-up`), or 503 (`too-busy`) if the replica is full, with `Retry-After`;
only a submit with `wait` returns 202 at once. A head or a body must arrive within 10 s."""  # noqa: E501  # a row is a line

OPEN_PATHS = pages.open_paths() | frozenset(
    {
        "/livez",
        "/readyz",
        "/leaderz",
        "/openapi.json",
        pages.DOCS_PATH,
        *(f"{pages.DOCS_PATH}/{asset}" for asset in pages.ASSETS),
    }
)
"""Paths that need no token, because their responses have no tenant's data."""
PUBLIC_PAGES = pages.PAGES | {pages.DOCS_PATH}
"""Pages that other sites may link to, even if no tokens are required."""
_ROUTERS = (
    # Routes are matched in this order: the most frequent come first.
    submit.router,
    batch.router,
    all_that_match.router,
    read.router,
    changes.router,
    errors.router,
    work.router,
    schedules.router,
    selection.router,
    actions.router,
    all_schedules_that_match.router,
    backfill.router,
    previews.router,
    verdicts.router,
    timeline.router,
    recent.router,
    *named.ROUTERS,
    processors.router,
    cluster.router,
    live.router,
    events.router,
    access.router,
)
_PREFIX = "/v1"
_SCHEMAS = "#/components/schemas/"
_PROBLEM = {"$ref": f"{_SCHEMAS}ProblemDetails"}
_PUBLISHED_NAMES = {
    "AttemptProgress": "Report",
    "AuditRecord": "AuditResponse",
    "BatchJobBody": "BatchJob",
    "BatchJobResponse": "BatchResult",
    "BlockReason": "Rule",
    "Failover": "FailoverResponse",
    "FieldErrorDetails": "FieldProblem",
    "JobFilter-Input": "FilterBody",
    "JobFilter-Output": "ErrorGroupFilter",
    "ProblemDetails": "Problem",
    "RetryPolicy-Input": "RetryBody",
    "RetryPolicy-Output": "RetryResponse",
    "Uniqueness-Input": "UniqueBody",
    "Uniqueness-Output": "UniqueResponse",
    "ScheduleFilter": "ScheduleFilterBody",
}
"""The names of these models in the document: generated clients name their classes after them."""
_ITEM_ENDS = ("Response", "Summary", "Record", "")


def _published_name(model: str) -> str:
    """Return the name of a model in the document: a part of a noun has two, ``…Body`` and ``…Response``."""
    if model.startswith("Page_"):
        item = model.removeprefix("Page_").removesuffix("_")
        return next(item.removesuffix(end) for end in _ITEM_ENDS if item.endswith(end)) + "Page"
    if model in _PUBLISHED_NAMES:
        return _PUBLISHED_NAMES[model]
    name, _, mode = model.partition("-")
    if mode == "Input":
        return name if name.endswith(("Body", "Part")) else f"{name}Body"
    is_answer = mode == "Output" or model in {noun.__name__ for noun in Noun.__subclasses__()}
    return f"{name.removesuffix('Body')}Response" if is_answer else model


class _Api(FastAPI):
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            if scope["type"] == "http":
                tell_match(scope)

    def build_middleware_stack(self) -> ASGIApp:
        """Return Starlette's stack without its handler of unexpected errors: the edge handles those."""
        stack = super().build_middleware_stack()
        assert isinstance(stack, ServerErrorMiddleware)
        return stack.app

    def openapi(self) -> dict[str, Any]:
        """Return FastAPI's document with problems and merge patches under their own media types."""
        if self.openapi_schema is None:
            document = super().openapi()
            for path in document["paths"].values():
                for method, operation in path.items():
                    for answer in operation["responses"].values():
                        content = answer.get("content", {})
                        for media_type in [name for name, each in content.items() if each.get("schema") == _PROBLEM]:
                            content[MEDIA_TYPE] = content.pop(media_type)
                    if method == "patch":
                        content = operation["requestBody"]["content"]
                        content[MERGE_PATCH] = content["application/json"]
            self.openapi_schema = _with_published_names(document)
        return self.openapi_schema


def _with_published_names(document: dict[str, Any]) -> dict[str, Any]:
    schemas = {}
    for name, schema in document["components"]["schemas"].items():
        for example in schema.get("examples", ()):
            _put_nulls_back(example, schema, document["components"]["schemas"])
        published = _published_name(name)
        schemas[published] = {**schema, "title": published} if published != name else schema
    document["components"]["schemas"] = {name: schemas[name] for name in sorted(schemas)}
    renamed: dict[str, Any] = _with_published_references(document)
    return renamed


def _put_nulls_back(example: Any, schema: dict[str, Any], schemas: dict[str, Any]) -> None:
    """Restore the nulls that FastAPI drops from examples, and with them fields that every response has."""
    if isinstance(example, list):
        for item in example:
            _put_nulls_back(item, schema.get("items", {}), schemas)
    if not isinstance(example, dict):
        return
    if "discriminator" in schema:
        schema = {"$ref": schema["discriminator"]["mapping"][example[schema["discriminator"]["propertyName"]]]}
    schema = next((one for one in schema.get("anyOf", ()) if "$ref" in one), schema)
    if "$ref" in schema:
        schema = schemas[schema["$ref"].removeprefix(_SCHEMAS)]
    for field in schema.get("required", ()):
        example.setdefault(field)
    for field, inner in schema.get("properties", {}).items():
        _put_nulls_back(example.get(field), inner, schemas)


def _with_published_references(value: Any) -> Any:
    match value:
        case dict():
            return {key: _with_published_references(item) for key, item in value.items()}
        case list():
            return [_with_published_references(item) for item in value]
        case str() if value.startswith(_SCHEMAS):
            return _SCHEMAS + _published_name(value.removeprefix(_SCHEMAS))
        case _:
            return value


def create_app(services: ApiServices, *, hot: bool = True) -> Edge:
    """Return the application of one set of services: see `create_routes`."""
    return with_edge(create_routes(hot=hot), services)


def with_edge(app: ASGIApp, services: ApiServices, turned_away: TurnedAway | None = None) -> Edge:
    """Return ``app`` behind the edge, which puts ``services`` into each request.

    ``turned_away`` decides which submits are refused unread. By default their admission does.
    """
    return Edge(app, services, OPEN_PATHS, PUBLIC_PAGES, login=sessions.LOGIN, turned_away=turned_away)


def create_routes(*, hot: bool = True) -> FastAPI:
    """Return all routes, which stand behind an edge and use the services that come with each request.

    If not ``hot``, FastAPI answers everything, with the same responses.
    """
    app = _Api(
        title="hascheduler",
        version=__version__,
        description=_DESCRIPTION,
        redirect_slashes=False,
        dependencies=[Depends(only_declared(_honouring_keys()))],
        openapi_url=None,  # served by `_description`
        docs_url=None,  # served by `pages`, without assets of other hosts
        redoc_url=None,
        # Spans cover jobs; FastAPI's own would also cover probes and its internals.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
        generate_unique_id_function=lambda route: route.name,
    )
    route_rules.install(app)
    if hot:
        hot_routes.install(app)
    for router in _ROUTERS:
        app.include_router(router, prefix=_PREFIX, responses=ANY_PROBLEM)
    app.state.live = live.LivePictures()
    app.router.routes.extend([*pages.routes(), *pages.docs_routes()])
    app.include_router(sessions.router)
    app.include_router(health.router)
    app.include_router(health.metrics_router, responses=ANY_PROBLEM)
    app.add_api_route("/openapi.json", _description, include_in_schema=False)
    return app


def _honouring_keys() -> Sequence[str]:
    routes = [route for router in _ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    return [f"{' '.join(one.methods or ())} {_PREFIX}{one.path}" for one in routes if honours_key(one)]


def description_of(app: FastAPI) -> str:
    """Return the text that the file `DESCRIPTION` must hold."""
    return orjson.dumps(app.openapi(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


async def _description() -> Response:
    return Response(_stored_description(), media_type="application/json")


@cache
def _stored_description() -> bytes:
    return files(__package__).joinpath(DESCRIPTION).read_bytes()
