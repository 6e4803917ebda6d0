"""The application: every route, every refusal, one guard."""

from typing import Any

from fastapi import APIRouter, FastAPI

from hascheduler import __version__
from hascheduler.api import cluster, definitions, health, jobs, processors, refusals, schedules
from hascheduler.api.guard import Guard
from hascheduler.api.problems import MEDIA_TYPE, Problem
from hascheduler.api.services import ApiServices

__all__ = ["ApiServices", "create_app"]

_DESCRIPTION = """\
Durations are texts such as `"90s"`, `"1m30s"`, `"200ms"`, or numbers of seconds; instants are RFC 3339 with an offset.
Unknown fields and query parameters are refused. Ids of jobs hold `:` and may stand in a path as they are.
Every refusal is `application/problem+json` (RFC 9457) and names each field, what is wrong and what would be right."""

_REFUSALS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": Problem, "description": "Refused; nothing was written"},
    "5XX": {"model": Problem, "description": "Not answered; with Retry-After where another try may succeed"},
}


class _Api(FastAPI):
    def openapi(self) -> dict[str, Any]:
        """As FastAPI makes it, but with problems under their own media type, for which it has no setting."""
        if self.openapi_schema is None:
            for path in super().openapi()["paths"].values():
                for operation in path.values():
                    for status in _REFUSALS.keys() & operation["responses"].keys():
                        content = operation["responses"][status]["content"]
                        content[MEDIA_TYPE] = content.pop("application/json")
        return super().openapi()


def create_app(services: ApiServices) -> FastAPI:
    app = _Api(
        title="hascheduler",
        version=__version__,
        description=_DESCRIPTION,
        redirect_slashes=False,
        redoc_url=None,
    )
    app.state.services = services
    app.add_middleware(Guard)
    refusals.install(app)
    v1 = APIRouter(prefix="/v1", responses=_REFUSALS)
    for noun in (schedules, definitions, jobs, processors, cluster):
        v1.include_router(noun.router)
    app.include_router(v1)
    app.include_router(health.router)
    return app
