"""``/v1/tenants``: the owners of jobs, and how many of their jobs may run. An unknown tenant has no quota."""

from functools import partial
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Response

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.middleware.auth import AdminOfAll, Viewer
from hascheduler.api.resources.handler import GET, PATCH, ResourceHandler, patch_body, put_answers
from hascheduler.api.routing.queries import CheckedPathName, Page, Paging, PathName
from hascheduler.api.routing.revisions import IfMatch, IfNoneMatch
from hascheduler.api.routing.route_rules import JsonRoute
from hascheduler.api.services import Services
from hascheduler.errors import NotFound
from hascheduler.schema.noun import read_document
from hascheduler.schema.tenant import Tenant
from hascheduler.wire.tenant import TenantBody, TenantResponse

router = APIRouter(prefix="/tenants", tags=["tenants"], route_class=JsonRoute)

_tenants = ResourceHandler(
    "tenant", lambda services: services.tenants, TenantBody, partial(read_document, Tenant), TenantResponse.of
)

Patch = Annotated[dict[str, Any], patch_body("a tenant", {"max_running": None})]


@router.put("/{name}", responses=put_answers(TenantResponse))
async def put_tenant(
    name: CheckedPathName,
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
    name: PathName, services: Services, caller: Viewer, response: Response, known: IfNoneMatch
) -> TenantResponse | Response:
    """One tenant."""
    if not caller.sees(name):
        raise NotFound("tenant", name)
    return await _tenants.get(name, services, response, known)


@router.patch("/{name}", responses=PATCH)
async def patch_tenant(
    name: CheckedPathName,
    body: Patch,
    services: Services,
    caller: AdminOfAll,
    response: Response,
    *,
    precondition: IfMatch,
) -> TenantResponse:
    """Change parts of a tenant: a JSON merge patch on what GET shows, which is then checked like a PUT."""
    return await _tenants.patch(name, body, services, response, precondition=precondition)


@router.delete("/{name}", status_code=HTTPStatus.NO_CONTENT, responses=problem_responses(404, 409, 412, 422))
async def delete_tenant(name: PathName, services: Services, caller: AdminOfAll, precondition: IfMatch) -> None:
    """Delete a tenant. Its jobs go on, without a quota."""
    await _tenants.delete(name, services, precondition)
