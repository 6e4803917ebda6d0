"""The operations that definitions, lanes and tenants have in common: each is written as a whole, under its name.

The file of a resource says what it looks like; `ResourceHandler` reads, writes and shows it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Generic, Protocol, TypeVar

from fastapi import Body, Response
from pydantic import BaseModel

from hascheduler.api.http.problems import NOT_MODIFIED, Responses, problem_responses
from hascheduler.api.routing import revisions
from hascheduler.api.routing.merge_patch import merge_patch, whole
from hascheduler.api.routing.queries import Page, PageQuery, page
from hascheduler.api.routing.revisions import TAGGED, Precondition, Tags, etag, is_known
from hascheduler.api.routing.route_rules import UnreadableDocument
from hascheduler.api.services import ApiServices
from hascheduler.errors import InvalidInput, NotFound, RevisionMismatch
from hascheduler.ports import ResourceStore, StoredDocument
from hascheduler.wire.fields import StrictModel

GET: Responses = {200: TAGGED, **NOT_MODIFIED, **problem_responses(404, 409, 422)}
PATCH: Responses = {200: TAGGED, **problem_responses(404, 409, 412, 413, 422)}

Resource = TypeVar("Resource")
Shown = TypeVar("Shown", bound=BaseModel)
Resource_co = TypeVar("Resource_co", covariant=True)


class ResourceBody(Protocol[Resource_co]):
    """The body of a request with everything about a resource but its name."""

    def resource(self, name: str, rev: int = 0) -> Resource_co: ...


@dataclass(frozen=True, slots=True)
class ResourceHandler(Generic[Resource, Shown]):
    """``body`` is the model of a request, a `ResourceBody`; ``show`` gives the answer, with at least
    the body's fields.

    ``decode`` reads a stored document, or raises `InvalidInput`. ``over`` completes a body with the fields that keep
    their stored values when they are left out; it gets the stored resource, or None where none can be read.
    """

    kind: str
    store: Callable[[ApiServices], ResourceStore[Resource]]
    body: type[StrictModel]
    decode: Callable[[object, StoredDocument], Resource]
    show: Callable[[Resource], Shown]
    over: Callable[[Any, Resource | None], Any] = lambda body, _: body

    async def put(
        self,
        name: str,
        body: ResourceBody[Resource],
        services: ApiServices,
        response: Response,
        *,
        precondition: Precondition,
        unless: Tags | None,
    ) -> Shown:
        """Create (201) or replace (200); with ``If-Match`` only replace, with ``If-None-Match: *`` only create.

        A request that changes nothing is not written.
        """
        store = self.store(services)
        if precondition.tags is not None:
            try:
                return self._answer(await self._edit(name, services, precondition, lambda _: body), response)
            except NotFound:
                raise RevisionMismatch(self.kind, name, None) from None
        if unless is not None:
            created = await store.create(body.resource(name))
            if created is None:
                raise RevisionMismatch(self.kind, name, (await revisions.stored(self.kind, name, store)).get("rev"))
            document, is_new = created, True
        else:
            stored = await store.get(name)
            body = self._over(stored, body)
            if stored is not None:
                revisions.revision(self.kind, stored)
                if self._is_same(stored, body):
                    return self._answer(stored, response)
            document, is_new = await store.put(body.resource(name))
        if is_new:
            response.status_code = HTTPStatus.CREATED
            response.headers["Location"] = f"/v1/{self.kind}s/{name}"
        return self._answer(document, response)

    async def list(self, paging: PageQuery, services: ApiServices) -> Page[Shown]:
        documents = await self.store(services).list(paging.after, paging.limit + 1)
        return page(documents, paging.limit, self.shown)

    async def one(self, name: str, paging: PageQuery, services: ApiServices) -> Page[Shown]:
        """The list for a caller who sees ``name`` alone."""
        stored = await self.store(services).get(name)
        is_there = stored is not None and (paging.after is None or name > paging.after)
        return page([stored] if stored is not None and is_there else [], paging.limit, self.shown)

    async def get(self, name: str, services: ApiServices, response: Response, known: Tags | None) -> Shown | Response:
        document = await revisions.stored(self.kind, name, self.store(services))
        if is_known(known, document):
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers={"ETag": etag(document)})
        return self._answer(document, response)

    async def patch(
        self,
        name: str,
        patch: Mapping[str, Any],
        services: ApiServices,
        response: Response,
        *,
        precondition: Precondition,
    ) -> Shown:
        """A merge patch on the request that would have created the stored resource, then validated like a PUT."""

        def change(stored: StoredDocument) -> Any:
            form = self.shown(stored).model_dump(mode="json", include=set(self.body.model_fields))
            return whole(self.body, merge_patch(form, patch))

        return self._answer(await self._edit(name, services, precondition, change), response)

    async def delete(self, name: str, services: ApiServices, precondition: Precondition) -> None:
        await revisions.delete(self.kind, name, self.store(services), precondition)

    async def _edit(
        self,
        name: str,
        services: ApiServices,
        precondition: Precondition,
        change: Callable[[StoredDocument], ResourceBody[Resource]],
    ) -> StoredDocument:
        store = self.store(services)

        async def write(stored: StoredDocument) -> StoredDocument | None:
            try:
                body = change(stored)
            except InvalidInput as error:
                raise UnreadableDocument(self.kind, name, error) from error
            body = self._over(stored, body)
            if self._is_same(stored, body):
                return stored
            return await store.replace(body.resource(name), revisions.revision(self.kind, stored))

        return await revisions.at_revision(self.kind, name, store, precondition, write)

    def _over(self, stored: StoredDocument | None, body: ResourceBody[Resource]) -> ResourceBody[Resource]:
        try:
            known = None if stored is None else self.decode(stored["_id"], stored)
        except InvalidInput:
            known = None
        completed: ResourceBody[Resource] = self.over(body, known)
        return completed

    def _is_same(self, stored: StoredDocument, body: ResourceBody[Resource]) -> bool:
        try:
            return self.decode(stored["_id"], stored) == body.resource(stored["_id"], stored["rev"])
        except InvalidInput:
            return False

    def shown(self, document: StoredDocument) -> Shown:
        return self.show(self.decode(document["_id"], document))

    def _answer(self, document: StoredDocument, response: Response) -> Shown:
        """The answer that shows it, with its tag."""
        try:
            shown = self.shown(document)
        except InvalidInput as error:
            raise UnreadableDocument(self.kind, str(document["_id"]), error) from error
        response.headers["ETag"] = etag(document)
        return shown


def put_answers(model: type[BaseModel]) -> Responses:
    """How OpenAPI describes the answers to a PUT."""
    created = {"model": model, "description": "Created", **TAGGED}
    return {200: TAGGED, 201: created, **problem_responses(409, 412, 413, 422)}


def patch_body(what: str, example: dict[str, Any]) -> Any:
    """How OpenAPI describes the body of a PATCH."""
    return Body(
        description=f"Any part of {what}, as a JSON merge patch (RFC 7396): objects merge, null removes, that is, "
        "goes back to the default",
        examples=[example],
    )
