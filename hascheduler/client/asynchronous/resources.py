"""``scheduler.definitions``, ``.lanes``, ``.tenants`` and ``.tokens``: what operators set."""

from collections.abc import AsyncIterator, Mapping
from typing import Any, Generic, TypeVar, Unpack

from hascheduler.client.asynchronous.asking import Ask, each
from hascheduler.client.bodies import encoded, plain
from hascheduler.client.requests import Request, body_of, deleted, matching, named, not_there
from hascheduler.client.wire import (
    DefinitionBody,
    DefinitionResponse,
    LaneBody,
    LaneResponse,
    NewTokenResponse,
    Role,
    TenantBody,
    TenantResponse,
    TokenResponse,
)

T = TypeVar("T")
_MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}


class _AsyncNamedApi(Generic[T]):
    """What definitions, lanes and tenants have in common; ``if_match`` is the ``rev`` that a change is meant for."""

    _collection: str

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def get(self, name: str) -> T:
        request: Request[T] = Request("GET", named(self._collection, name), body_of)
        return await self._ask(request)

    async def list(self) -> AsyncIterator[T]:
        """All, by name."""
        async for one in each(self._ask, f"/v1/{self._collection}", []):
            yield one

    async def patch(self, name: str, changes: Mapping[str, Any], *, if_match: str | int | None = None) -> T:
        """Parts of it, as a JSON merge patch on what `get` shows: objects merge, None removes."""
        headers = {**_MERGE_PATCH, **matching(if_match)}
        path, content = named(self._collection, name), encoded(dict(changes))
        request: Request[T] = Request("PATCH", path, body_of, headers=headers, content=content)
        return await self._ask(request)

    async def delete(self, name: str, *, if_match: str | int | None = None) -> bool:
        """False where there was none. What refers to the name has the defaults from then on."""
        path = named(self._collection, name)
        return await self._ask(Request("DELETE", path, deleted, headers=matching(if_match), absent=not_there))

    async def _put(self, name: str, fields: Mapping[str, Any], if_match: str | int | None) -> T:
        path, content = named(self._collection, name), encoded(dict(fields))
        request: Request[T] = Request("PUT", path, body_of, headers=matching(if_match), content=content)
        return await self._ask(request)


class AsyncDefinitionsApi(_AsyncNamedApi[DefinitionResponse]):
    _collection = "definitions"

    async def put(
        self, name: str, *, if_match: str | int | None = None, **fields: Unpack[DefinitionBody]
    ) -> DefinitionResponse:
        """Make or replace the named type of job: what is left out has its default."""
        return await self._put(name, fields, if_match)


class AsyncLanesApi(_AsyncNamedApi[LaneResponse]):
    _collection = "lanes"

    async def put(self, name: str, *, if_match: str | int | None = None, **fields: Unpack[LaneBody]) -> LaneResponse:
        """Make or replace the class of work: what is left out has its default."""
        return await self._put(name, fields, if_match)


class AsyncTenantsApi(_AsyncNamedApi[TenantResponse]):
    _collection = "tenants"

    async def put(
        self, name: str, *, if_match: str | int | None = None, **fields: Unpack[TenantBody]
    ) -> TenantResponse:
        """Make or replace the tenant's limits: what is left out is unlimited."""
        return await self._put(name, fields, if_match)


class AsyncTokensApi:
    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def create(
        self, name: str, role: Role, tenant: str = "*", *, expires_in: str | float | None = None
    ) -> NewTokenResponse:
        """The only answer that shows the token itself. Sent once: after `Unavailable` look with `list` for one to
        revoke."""
        body = plain(name=name, role=role, tenant=tenant, expires_in=expires_in)
        return await self._ask(Request("POST", "/v1/tokens", body_of, content=encoded(body), is_repeatable=False))

    async def list(self) -> AsyncIterator[TokenResponse]:
        async for token in each(self._ask, "/v1/tokens", []):
            yield token

    async def revoke(self, token_id: str) -> bool:
        """False where there was none."""
        return await self._ask(Request("DELETE", named("tokens", token_id), deleted, absent=not_there))
