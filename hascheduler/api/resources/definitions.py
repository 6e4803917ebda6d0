"""``/v1/definitions``: the named types of job and their limits. A job of an unknown type has the defaults."""

from functools import partial
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Response

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.middleware.auth import OperatorOfAll, Viewer
from hascheduler.api.resources.handler import GET, PATCH, ResourceHandler, patch_body, put_answers
from hascheduler.api.routing.queries import CheckedPathName, Page, Paging, PathName
from hascheduler.api.routing.revisions import IfMatch, IfNoneMatch
from hascheduler.api.routing.route_rules import JsonRoute
from hascheduler.api.services import Services
from hascheduler.schema.definition import Definition
from hascheduler.schema.noun import read_document
from hascheduler.wire.definition import DefinitionBody, DefinitionResponse

router = APIRouter(prefix="/definitions", tags=["definitions"], route_class=JsonRoute)

_definitions = ResourceHandler(
    "definition",
    lambda services: services.definitions,
    DefinitionBody,
    partial(read_document, Definition),
    DefinitionResponse.of,
    over=DefinitionBody.over,
)

Patch = Annotated[
    dict[str, Any], patch_body("a definition", {"max_concurrency": None, "tier": 10, "retry": {"attempts": 3}})
]


@router.put("/{name}", responses=put_answers(DefinitionResponse))
async def put_definition(
    name: CheckedPathName,
    body: DefinitionBody,
    services: Services,
    caller: OperatorOfAll,
    response: Response,
    *,
    precondition: IfMatch,
    unless: IfNoneMatch,
) -> DefinitionResponse:
    """Create (201) or replace (200) a definition; with If-Match only replace, with If-None-Match: * only create it."""
    return await _definitions.put(name, body, services, response, precondition=precondition, unless=unless)


@router.get("", responses=problem_responses(422))
async def list_definitions(paging: Paging, services: Services, caller: Viewer) -> Page[DefinitionResponse]:
    """Definitions by name, a page at a time."""
    return await _definitions.list(paging, services)


@router.get("/{name}", response_model=DefinitionResponse, responses=GET)
async def get_definition(
    name: PathName, services: Services, caller: Viewer, response: Response, known: IfNoneMatch
) -> DefinitionResponse | Response:
    """One definition."""
    return await _definitions.get(name, services, response, known)


@router.patch("/{name}", responses=PATCH)
async def patch_definition(
    name: CheckedPathName,
    body: Patch,
    services: Services,
    caller: OperatorOfAll,
    response: Response,
    *,
    precondition: IfMatch,
) -> DefinitionResponse:
    """Change parts of a definition: a JSON merge patch on what GET shows, which is then checked like a PUT."""
    return await _definitions.patch(name, body, services, response, precondition=precondition)


@router.delete("/{name}", status_code=HTTPStatus.NO_CONTENT, responses=problem_responses(404, 409, 412, 422))
async def delete_definition(name: PathName, services: Services, caller: OperatorOfAll, precondition: IfMatch) -> None:
    """Delete a definition. Its jobs go on, with the default limits."""
    await _definitions.delete(name, services, precondition)
