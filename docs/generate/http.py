"""The rules of the API, a table of its routes from OpenAPI, and its problem types."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute

from docs.generate import problems
from docs.generate.markdown import code, head, table
from hascheduler.api.app import create_routes, description_of
from hascheduler.model.token import POWERS, Role

_RULES = """\
Every replica serves the API, its OpenAPI description at `/openapi.json`, and a viewer at `/docs` in which you can try
each route. That description is the contract: it has every parameter, body and response with bounds, defaults and
examples ([openapi.json](openapi.json) is for this release). This page has the rules for all routes.

## Rules

**Values.** Durations are texts such as `"90s"`, `"1m30s"` or `"200ms"`, or numbers of seconds. Instants are RFC 3339
with an offset. Unknown fields and query parameters are refused, not ignored. Job ids contain `:` and may stand in a
path as they are.

**Authentication.** If the replica demands tokens (`HASCHEDULER_AUTH`), send `Authorization: Bearer hsk_…`. A token has
a role and a tenant. It sees and changes only that tenant's jobs and schedules; those of others are 404. Each role may
do what the ones before it may: `viewer`, `submitter`, `operator`, `admin`. A `worker` token may only use `/v1/work`.
Routes marked *all tenants* need a token for all tenants (`*`). See [Access and TLS](../operations/access.md).

**Errors.** Every refusal is a [problem](#problem-types). A refused request has changed nothing, with one exception:
503 `outcome-unknown` means that it may have. 429 and 503 carry `Retry-After` in seconds.

**Idempotency.** The routes that create or start something take the header `Idempotency-Key`, 1 to 255 printable ASCII
characters: {keyed}. The last one requires it. For a day, the same body under the same key is answered with what the
first request made; another body under that key is 409 `conflict`. Routes that do not support the header refuse it.

**Revisions.** A schedule, definition, lane, calendar or tenant has its revision as `ETag`. Send it as `If-Match` to
change only that revision (otherwise 412 `revision-mismatch`), or `If-None-Match: *` with PUT to only create. GET
answers 304 if `If-None-Match` names the current revision. PATCH is a JSON merge patch: null removes a field, and a
list is replaced as a whole.

**Pages.** Lists take `limit` (100 by default, at most 200) and answer with `items` and `next`. Send `next` back as
`after` until it is null; a page may have fewer than `limit` items, or none, and still have a `next`.

**Waiting.** With `?wait=30s`, at most `5m`, a submit or `GET /v1/jobs/{{id}}` answers as soon as the job has ended,
with its result. A submit whose job has not ended by then is answered with 202.

**Bulk changes.** `jobs:cancel`, `jobs:retry`, `jobs:reprioritize`, `jobs:delete`, `schedules:pause`,
`schedules:resume`, `schedules:reset` and `schedules:trigger` take a filter. Repeat the request until the answer is
`complete`.

**Limits.** One token may use half of what a replica can do at once and one address three quarters: requests in flight,
waits, fetches, event streams, large bodies. Beyond that the answer is 429 `share-used-up`, or 503 `too-busy` if
nothing is free. Request heads and bodies must arrive within 10 s.

**Warnings.** A `Warning` header (code 299) names input that is accepted but probably not meant, such as a lane that is
not defined.
"""
_TITLES = {
    "jobs": "Jobs",
    "schedules": "Schedules",
    "definitions": "Definitions",
    "lanes": "Lanes",
    "calendars": "Calendars",
    "tenants": "Tenants",
    "cluster": "Cluster",
    "events": "Events",
    "work": "Work",
    "access": "Tokens and the audit log",
    "health": "Health and metrics",
}
_FIRST_CLAUSE = re.compile(r".+?(?=[.;:](?:\s|\Z))", re.DOTALL)


def page() -> str:
    app = _application()
    roles = {route.name: _role(route) for route in _routes(app.routes)}
    rows: dict[str, list[tuple[str, str, str]]] = {tag: [] for tag in _TITLES}
    keyed: list[str] = []
    for path, methods in app.openapi()["paths"].items():
        for method, operation in methods.items():
            asked = f"{method.upper()} {path}"
            role = roles.get(operation["operationId"], "")
            rows[operation["tags"][0]].append((code(asked), _phrase(operation), role))
            if any(each["name"] == "Idempotency-Key" for each in operation.get("parameters", ())):
                keyed.append(code(asked))
    parts = [
        head("HTTP", "the API's OpenAPI description", _RULES.format(keyed=", ".join(keyed))),
        "## Routes\n",
        "The role is the least one that may call the route.\n",
    ]
    for tag, routes in rows.items():
        parts += [f"### {_TITLES[tag]}\n", table(("route", "what it does", "role"), routes)]
    return "\n".join([*parts, problems.section()])


def description() -> str:
    """Return the OpenAPI document, as the package has it and replicas serve it."""
    return description_of(_application())


@cache
def _application() -> FastAPI:
    return create_routes()


def _routes(routes: Any) -> Iterator[APIRoute]:
    for route in routes:
        if isinstance(route, APIRoute):
            yield route
        elif hasattr(route, "original_router"):
            yield from _routes(route.original_router.routes)


def _role(route: APIRoute) -> str:
    """Return the least role that may call the route; empty if it needs none."""
    pending = [route.dependant]
    while pending:
        dependant = pending.pop()
        demand: Any = dependant.call
        if hasattr(demand, "power") and hasattr(demand, "of_all"):
            if demand.power is None:
                return "any"
            least, *_ = sorted((role for role in Role if role.may(demand.power)), key=lambda role: len(POWERS[role]))
            return code(least.value) + (", *all tenants*" if demand.of_all else "")
        pending += dependant.dependencies
    return ""


def _phrase(operation: dict[str, Any]) -> str:
    """Return the first clause of the description."""
    found = _FIRST_CLAUSE.match(operation.get("description", operation["summary"]))
    return found.group() if found else str(operation["summary"])
