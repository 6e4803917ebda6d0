"""``/v1/definitions``: the named types of job and their limits. A job of an unknown one has the defaults."""

from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Body, Response

from hascheduler.api.body import JsonRoute
from hascheduler.api.definition_schemas import DefinitionBody, DefinitionResponse, request_form, show_definition
from hascheduler.api.etags import TAGGED, IfMatch, IfNoneMatch, Precondition, etag, is_known
from hascheduler.api.merge_patch import merge_patch, whole
from hascheduler.api.pages import Page, Paging, page
from hascheduler.api.refusals import Unreadable
from hascheduler.api.responses import NOT_MODIFIED, refused
from hascheduler.api.services import ApiServices, Services
from hascheduler.api.texts import Name
from hascheduler.errors import Conflict, InvalidInput, NotFound, RevisionMismatch
from hascheduler.model.documents import decode_definition
from hascheduler.ports import StoredDocument

router = APIRouter(prefix="/definitions", tags=["definitions"], route_class=JsonRoute)

_TRIES_MAX = 5

Patch = Annotated[
    dict[str, Any],
    Body(
        description="Any part of a definition, as a JSON merge patch (RFC 7396): objects merge, null removes, that is, "
        "goes back to the default",
        examples=[{"max_concurrency": None, "retry": {"attempts": 3}}],
    ),
]


@router.put(
    "/{name}",
    responses={
        200: TAGGED,
        201: {"model": DefinitionResponse, "description": "Created", **TAGGED},
        **refused(409, 412, 413, 422),
    },
)
async def put_definition(
    name: Name,
    body: DefinitionBody,
    services: Services,
    response: Response,
    *,
    precondition: IfMatch,
    unless: IfNoneMatch,
) -> DefinitionResponse:
    """Create (201) or replace (200) a definition; with If-Match only replace, with If-None-Match: * only create it."""
    if precondition.tags is not None:
        try:
            return _show(await _edit(name, services, precondition, lambda _: body), response)
        except NotFound:
            raise RevisionMismatch("definition", name, None) from None
    if unless is not None:
        created = await services.definitions.create(body.definition(name))
        if created is None:
            raise RevisionMismatch("definition", name, (await _stored(name, services)).get("rev"))
        document, is_new = created, True
    else:
        stored = await services.definitions.get(name)
        if stored is not None and _is_same(stored, body):
            return _show(stored, response)
        document, is_new = await services.definitions.put(body.definition(name))
    if is_new:
        response.status_code = HTTPStatus.CREATED
        response.headers["Location"] = f"/v1/definitions/{name}"
    return _show(document, response)


@router.get("", responses=refused(422))
async def list_definitions(paging: Paging, services: Services) -> Page[DefinitionResponse]:
    """Definitions by name, a page at a time."""
    documents = await services.definitions.list(paging.after, paging.limit + 1)
    return page(documents, paging.limit, show_definition)


@router.get("/{name}", response_model=DefinitionResponse, responses={200: TAGGED, **NOT_MODIFIED, **refused(404, 422)})
async def get_definition(
    name: str, services: Services, response: Response, known: IfNoneMatch
) -> DefinitionResponse | Response:
    """One definition."""
    document = await _stored(name, services)
    if is_known(known, document):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers={"ETag": etag(document)})
    return _show(document, response)


@router.patch("/{name}", responses={200: TAGGED, **refused(404, 409, 412, 413, 422)})
async def patch_definition(
    name: Name, body: Patch, services: Services, response: Response, precondition: IfMatch
) -> DefinitionResponse:
    """Change parts of a definition: a JSON merge patch on what GET shows, which is then checked like a PUT."""

    def change(stored: StoredDocument) -> DefinitionBody:
        return whole(DefinitionBody, merge_patch(request_form(stored), body))

    return _show(await _edit(name, services, precondition, change), response)


@router.delete("/{name}", status_code=HTTPStatus.NO_CONTENT, responses=refused(404, 409, 412, 422))
async def delete_definition(name: str, services: Services, precondition: IfMatch) -> None:
    """Delete a definition. Its jobs go on, with the default limits."""
    if precondition.tags is None:
        if not await services.definitions.delete(name):
            raise NotFound("definition", name)
        return
    for _ in range(_TRIES_MAX):
        stored = await _stored(name, services)
        precondition.demand("definition", name, stored)
        if await services.definitions.delete(name, stored.get("rev")):
            return
    raise _changed_by_others(name)


async def _stored(name: str, services: ApiServices) -> StoredDocument:
    document = await services.definitions.get(name)
    if document is None:
        raise NotFound("definition", name)
    return document


async def _edit(
    name: str,
    services: ApiServices,
    precondition: Precondition,
    change: Callable[[StoredDocument], DefinitionBody],
) -> StoredDocument:
    """Write what ``change`` makes of the stored definition, or anew where somebody else was first; nothing if that is
    what it says already."""
    for _ in range(_TRIES_MAX):
        stored = await _stored(name, services)
        precondition.demand("definition", name, stored)
        try:
            body = change(stored)
        except InvalidInput as error:
            raise Unreadable("definition", name, error) from error
        if _is_same(stored, body):
            return stored
        document = await services.definitions.replace(body.definition(name), stored["rev"])
        if document is not None:
            return document
    raise _changed_by_others(name)


def _is_same(stored: StoredDocument, body: DefinitionBody) -> bool:
    try:
        definition = decode_definition(stored["_id"], stored)
    except InvalidInput:
        return False
    return definition == replace(body.definition(definition.name), rev=definition.rev)


def _changed_by_others(name: str) -> Conflict:
    return Conflict(f"definition {name!r} is being changed by others; try again")


def _show(document: StoredDocument, response: Response) -> DefinitionResponse:
    try:
        shown = show_definition(document)
    except InvalidInput as error:
        raise Unreadable("definition", str(document["_id"]), error) from error
    response.headers["ETag"] = etag(document)
    return shown
