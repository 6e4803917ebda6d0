"""The application: every route, every refusal, one guard."""

from typing import Any

import orjson
from fastapi import FastAPI, Response

from hascheduler import __version__
from hascheduler.api import (
    audit,
    cluster,
    definitions,
    docs_page,
    events,
    failovers,
    health,
    job_batch,
    job_changes,
    job_filters,
    job_submit,
    jobs,
    lanes,
    metrics,
    processors,
    recording,
    refusals,
    schedule_backfill,
    schedule_pauses,
    schedule_previews,
    schedule_trigger,
    schedule_verdicts,
    schedules,
    tenants,
    tokens,
    whoami,
    work,
)
from hascheduler.api.access_door import Door
from hascheduler.api.audit_trail import AuditTrail
from hascheduler.api.body import MERGE_PATCH
from hascheduler.api.browser_door import BrowserDoor
from hascheduler.api.guard import Guard
from hascheduler.api.meter import Meter
from hascheduler.api.problems import MEDIA_TYPE
from hascheduler.api.query_once import EACH_ONCE
from hascheduler.api.responses import ANY_REFUSAL
from hascheduler.api.services import ApiServices
from hascheduler.api.turnstile import Turnstile

__all__ = ["ApiServices", "create_app"]

_DESCRIPTION = """\
Durations are texts such as `"90s"`, `"1m30s"`, `"200ms"`, or numbers of seconds; instants are RFC 3339 with an offset.
Unknown fields and query parameters are refused. An answer with one schedule, definition, lane or tenant has
its revision as `ETag`; what changes it takes `If-Match`. Ids of jobs hold `:` and may stand in a path as they are.
Every refusal is `application/problem+json` (RFC 9457) and names each field, what is wrong and what would be right.

Where tokens are demanded (the setting AUTH; not on loopback by default), requests carry `Authorization: Bearer hsk_…`.
A token has a role and a tenant, and sees and touches what is of that tenant alone; all else is 404 to it. `*` is all.

| role | may |
|---|---|
| viewer | read jobs, schedules, events; definitions, lanes, the cluster |
| submitter | also submit and cancel jobs, and trigger schedules |
| operator | also write, pause and backfill schedules, and retry and reprioritize jobs; for all tenants: write definitions, drain processors, record |
| admin | also make and revoke tokens, and read the audit log; for all tenants: write lanes and tenants |
| worker | only take and end jobs (`/v1/work`), for all tenants |

Metrics and processors tell of all tenants, and are shown to tokens for all tenants alone.

A token has half of what one replica can do at once, and an address three quarters, so a proxy should not be the only
address: requests in flight, submits that wait, fetches, event streams, recordings and large bodies. Beyond that any
route answers 429 (`share-used-up`), or 503 (`too-busy`) where there is no room at all, with `Retry-After`; only a
submit with `wait` is answered 202 at once. Bodies must arrive at 16 KiB a second or more, after a grace of 2 s."""  # noqa: E501  # a row is a line

_SCHEDULES = (schedules, schedule_pauses, schedule_trigger, schedule_backfill, schedule_previews, schedule_verdicts)
_JOBS = (job_submit, job_batch, job_filters, jobs, job_changes)
_PROBLEM = {"$ref": "#/components/schemas/Problem"}


class _Api(FastAPI):
    def openapi(self) -> dict[str, Any]:
        """As FastAPI makes it, but with problems and merge patches under their own media types."""
        if self.openapi_schema is None:
            for path in super().openapi()["paths"].values():
                for method, operation in path.items():
                    for answer in operation["responses"].values():
                        content = answer.get("content", {})
                        for media_type in [name for name, each in content.items() if each.get("schema") == _PROBLEM]:
                            content[MEDIA_TYPE] = content.pop(media_type)
                    if method == "patch":
                        content = operation["requestBody"]["content"]
                        content[MERGE_PATCH] = content["application/json"]
        return super().openapi()


def create_app(services: ApiServices) -> FastAPI:
    app = _Api(
        title="hascheduler",
        version=__version__,
        description=_DESCRIPTION,
        redirect_slashes=False,
        openapi_url=None,  # `_describe` has it ready
        docs_url=None,  # `docs_page` has its own, which takes nothing from elsewhere
        redoc_url=None,
        # Our spans are of jobs; those that FastAPI makes by itself are of probes and of its own insides too.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.services = services
    # The last one added is the outermost.
    app.add_middleware(Turnstile)
    app.add_middleware(Door)
    app.add_middleware(BrowserDoor)
    app.add_middleware(AuditTrail)
    app.add_middleware(Guard)
    app.add_middleware(Meter)
    refusals.install(app)
    # Routes are tried in this order: those that are asked most come first.
    for noun in (
        *_JOBS,
        work,
        *_SCHEDULES,
        definitions,
        lanes,
        tenants,
        processors,
        cluster,
        failovers,
        recording,
        events,
        tokens,
        whoami,
        audit,
    ):
        app.include_router(noun.router, prefix="/v1", responses=ANY_REFUSAL, dependencies=[EACH_ONCE])
    app.include_router(docs_page.router)
    app.include_router(health.router)
    app.include_router(metrics.router, responses=ANY_REFUSAL)
    _describe(app)
    return app


def _describe(app: FastAPI) -> None:
    """Serve ``/openapi.json``. It is made now: strangers may ask for it, and making it holds the loop up for long."""

    async def openapi() -> Response:
        return Response(description, media_type="application/json")

    app.add_api_route("/openapi.json", openapi, include_in_schema=False)
    description = orjson.dumps(app.openapi())  # after the last route: a further one would have it made again
