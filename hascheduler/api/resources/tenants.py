"""``/v1/tenants``: the owners of jobs, and how many of their jobs may run. An unknown tenant has no quota."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.middleware.auth import AdminOfAll, Viewer
from hascheduler.api.resources.definitions import RateLimitBody, RateLimitResponse, show_rate_limit
from hascheduler.api.resources.handler import GET, PATCH, ResourceHandler, patch_body, put_answers
from hascheduler.api.routing.body import JsonRoute
from hascheduler.api.routing.field_types import JOBS_MAX, Name, StrictModel
from hascheduler.api.routing.queries import Page, Paging
from hascheduler.api.routing.revisions import IfMatch, IfNoneMatch
from hascheduler.api.services import Services
from hascheduler.errors import NotFound
from hascheduler.model.documents.tenant import decode_tenant
from hascheduler.model.tenant import Tenant

_EXAMPLE: dict[str, Any] = {
    "max_running": 10,
    "max_pending": 10_000,
    "submit_rate": {"count": 100, "per": "1s"},
    "max_schedules": 200,
    "fire_rate": {"count": 600, "per": "1m"},
}


class TenantBody(StrictModel):
    """Who owns jobs; what is left out gets its default."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    max_running: int | None = Field(
        default=None, ge=1, le=JOBS_MAX, description="How many of its jobs run at once; null: no limit"
    )
    max_pending: int | None = Field(
        default=None,
        ge=1,
        le=JOBS_MAX,
        description="How many of its jobs wait at once, those of its schedules among them; null: no limit",
    )
    submit_rate: RateLimitBody | None = Field(
        default=None, description="How fast its jobs are accepted; null: no limit"
    )
    max_schedules: int | None = Field(
        default=None, ge=1, le=JOBS_MAX, description="How many schedules it has; null: the deployment's limit"
    )
    fire_rate: RateLimitBody | None = Field(
        default=None,
        description="How fast its schedules fire, all together; times beyond it are throttled; null: no limit",
    )

    def resource(self, name: str, rev: int = 0) -> Tenant:
        submits, fires = self.submit_rate, self.fire_rate
        return Tenant(
            name,
            rev,
            max_running=self.max_running,
            max_pending=self.max_pending,
            submit_rate=None if submits is None else submits.limit(),
            max_schedules=self.max_schedules,
            fire_rate=None if fires is None else fires.limit(),
        )


class TenantResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "acme", "rev": 2, **_EXAMPLE}]})

    name: str
    rev: int = Field(description="Grows with every edit")
    max_running: int | None
    max_pending: int | None
    submit_rate: RateLimitResponse | None
    max_schedules: int | None
    fire_rate: RateLimitResponse | None


def show_tenant(tenant: Tenant) -> TenantResponse:
    return TenantResponse(
        name=tenant.name,
        rev=tenant.rev,
        max_running=tenant.max_running,
        max_pending=tenant.max_pending,
        submit_rate=show_rate_limit(tenant.submit_rate),
        max_schedules=tenant.max_schedules,
        fire_rate=show_rate_limit(tenant.fire_rate),
    )


router = APIRouter(prefix="/tenants", tags=["tenants"], route_class=JsonRoute)

_tenants = ResourceHandler("tenant", lambda services: services.tenants, TenantBody, decode_tenant, show_tenant)

Patch = Annotated[dict[str, Any], patch_body("a tenant", {"max_running": None})]


@router.put("/{name}", responses=put_answers(TenantResponse))
async def put_tenant(
    name: Name,
    body: TenantBody,
    services: Services,
    caller: AdminOfAll,
    response: Response,
    *,
    precondition: IfMatch,
    unless: IfNoneMatch,
) -> TenantResponse:
    """Create (201) or replace (200) a tenant; with If-Match only replace, with If-None-Match: * only create it."""
    return await _tenants.put(name, body, services, response, precondition=precondition, unless=unless)


@router.get("", responses=problem_responses(422))
async def list_tenants(paging: Paging, services: Services, caller: Viewer) -> Page[TenantResponse]:
    """Tenants by name, a page at a time; with a token of one tenant, that one."""
    if caller.only is not None:
        return await _tenants.one(caller.only, paging, services)
    return await _tenants.list(paging, services)


@router.get("/{name}", response_model=TenantResponse, responses=GET)
async def get_tenant(
    name: str, services: Services, caller: Viewer, response: Response, known: IfNoneMatch
) -> TenantResponse | Response:
    """One tenant."""
    if not caller.sees(name):
        raise NotFound("tenant", name)
    return await _tenants.get(name, services, response, known)


@router.patch("/{name}", responses=PATCH)
async def patch_tenant(
    name: Name, body: Patch, services: Services, caller: AdminOfAll, response: Response, *, precondition: IfMatch
) -> TenantResponse:
    """Change parts of a tenant: a JSON merge patch on what GET shows, which is then checked like a PUT."""
    return await _tenants.patch(name, body, services, response, precondition=precondition)


@router.delete("/{name}", status_code=HTTPStatus.NO_CONTENT, responses=problem_responses(404, 409, 412, 422))
async def delete_tenant(name: str, services: Services, caller: AdminOfAll, precondition: IfMatch) -> None:
    """Delete a tenant. Its jobs go on, without a quota."""
    await _tenants.delete(name, services, precondition)
