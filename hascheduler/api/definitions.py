"""``/v1/definitions``: the named types of job and their limits. A job of an unknown one has the defaults."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Response

from hascheduler.api.access import OperatorOfAll, Viewer
from hascheduler.api.body import JsonRoute
from hascheduler.api.definition_schemas import DefinitionBody, DefinitionResponse, show_definition
from hascheduler.api.etags import IfMatch, IfNoneMatch
from hascheduler.api.nouns import GET, PATCH, Nouns, patch_body, put_answers
from hascheduler.api.pages import Page, Paging
from hascheduler.api.responses import refused
from hascheduler.api.services import Services
from hascheduler.api.texts import Name
from hascheduler.model.documents.definition import decode_definition

router = APIRouter(prefix="/definitions", tags=["definitions"], route_class=JsonRoute)

_definitions = Nouns(
    "definition",
    lambda services: services.definitions,
    DefinitionBody,
    decode_definition,
    show_definition,
    over=DefinitionBody.over,
)

Patch = Annotated[
    dict[str, Any], patch_body("a definition", {"max_concurrency": None, "tier": 10, "retry": {"attempts": 3}})
]


@router.put("/{name}", responses=put_answers(DefinitionResponse))
async def put_definition(
    name: Name,
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


@router.get("", responses=refused(422))
async def list_definitions(paging: Paging, services: Services, caller: Viewer) -> Page[DefinitionResponse]:
    """Definitions by name, a page at a time."""
    return await _definitions.list(paging, services)


@router.get("/{name}", response_model=DefinitionResponse, responses=GET)
async def get_definition(
    name: str, services: Services, caller: Viewer, response: Response, known: IfNoneMatch
) -> DefinitionResponse | Response:
    """One definition."""
    return await _definitions.get(name, services, response, known)


@router.patch("/{name}", responses=PATCH)
async def patch_definition(
    name: Name, body: Patch, services: Services, caller: OperatorOfAll, response: Response, *, precondition: IfMatch
) -> DefinitionResponse:
    """Change parts of a definition: a JSON merge patch on what GET shows, which is then checked like a PUT."""
    return await _definitions.patch(name, body, services, response, precondition=precondition)


@router.delete("/{name}", status_code=HTTPStatus.NO_CONTENT, responses=refused(404, 409, 412, 422))
async def delete_definition(name: str, services: Services, caller: OperatorOfAll, precondition: IfMatch) -> None:
    """Delete a definition. Its jobs go on, with the default limits."""
    await _definitions.delete(name, services, precondition)
