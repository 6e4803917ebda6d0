"""``/v1/definitions``: the named types of job and their limits. A job of an unknown one has the defaults."""

from http import HTTPStatus

from fastapi import APIRouter, Response

from hascheduler.api.body import JsonRoute
from hascheduler.api.definition_schemas import DefinitionBody, DefinitionResponse, show_definition
from hascheduler.api.pages import Page, Paging, page
from hascheduler.api.refusals import Unreadable
from hascheduler.api.services import Services
from hascheduler.api.texts import Name
from hascheduler.errors import InvalidInput, NotFound
from hascheduler.ports import StoredDocument

router = APIRouter(prefix="/definitions", tags=["definitions"], route_class=JsonRoute)


@router.put("/{name}", responses={HTTPStatus.CREATED: {"model": DefinitionResponse, "description": "Created"}})
async def put_definition(
    name: Name, body: DefinitionBody, services: Services, response: Response
) -> DefinitionResponse:
    """Create (201) or replace (200) a definition."""
    document, created = await services.definitions.put(body.definition(name))
    if created:
        response.status_code = HTTPStatus.CREATED
        response.headers["Location"] = f"/v1/definitions/{name}"
    return _shown(document)


@router.get("")
async def list_definitions(paging: Paging, services: Services) -> Page[DefinitionResponse]:
    """Definitions by name, a page at a time."""
    documents = await services.definitions.list(paging.after, paging.limit + 1)
    return page(documents, paging.limit, show_definition)


@router.get("/{name}")
async def get_definition(name: str, services: Services) -> DefinitionResponse:
    document = await services.definitions.get(name)
    if document is None:
        raise NotFound("definition", name)
    return _shown(document)


@router.delete("/{name}", status_code=HTTPStatus.NO_CONTENT)
async def delete_definition(name: str, services: Services) -> None:
    """Delete a definition. Its jobs go on, with the default limits."""
    if not await services.definitions.delete(name):
        raise NotFound("definition", name)


def _shown(document: StoredDocument) -> DefinitionResponse:
    try:
        return show_definition(document)
    except InvalidInput as error:
        raise Unreadable("definition", str(document["_id"]), error) from error
