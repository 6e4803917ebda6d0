# Written by scripts/generate-client from hascheduler/client/asynchronous/resources.py: change that one.
"""``scheduler.definitions``, ``.lanes``, ``.calendars``, ``.tenants`` and ``.tokens``: what operators set."""

from collections.abc import Iterator
from typing import Literal, Unpack

from hascheduler.client.bodies import encoded, plain
from hascheduler.client.requests import Request, body_of, delete_again, deleted, named, not_there, take_back
from hascheduler.client.synchronous.asking import Ask, each
from hascheduler.client.synchronous.named import NamedApi
from hascheduler.client.wire import (
    CalendarBody,
    CalendarResponse,
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


class DefinitionsApi(NamedApi[DefinitionResponse]):
    """Jobs of a definition that is deleted have the defaults from then on."""

    _collection = "definitions"

    def put(
        self,
        name: str,
        *,
        if_match: str | int | None = None,
        if_none_match: Literal["*"] | None = None,
        **fields: Unpack[DefinitionBody],
    ) -> DefinitionResponse:
        """Make or replace the named type of job: what is left out has its default."""
        return self.put_document(name, fields, if_match=if_match, if_none_match=if_none_match)


class LanesApi(NamedApi[LaneResponse]):
    """Jobs of a lane that is deleted are in one with the defaults from then on."""

    _collection = "lanes"

    def put(
        self,
        name: str,
        *,
        if_match: str | int | None = None,
        if_none_match: Literal["*"] | None = None,
        **fields: Unpack[LaneBody],
    ) -> LaneResponse:
        """Make or replace the class of work: what is left out has its default."""
        return self.put_document(name, fields, if_match=if_match, if_none_match=if_none_match)


class CalendarsApi(NamedApi[CalendarResponse]):
    """A calendar that schedules use can't be deleted."""

    _collection = "calendars"

    def put(
        self,
        name: str,
        *,
        if_match: str | int | None = None,
        if_none_match: Literal["*"] | None = None,
        **fields: Unpack[CalendarBody],
    ) -> CalendarResponse:
        """Make or replace the calendar: what is left out is empty."""
        return self.put_document(name, fields, if_match=if_match, if_none_match=if_none_match)


class TenantsApi(NamedApi[TenantResponse]):
    """A tenant that is deleted has no limits from then on."""

    _collection = "tenants"

    def put(
        self,
        name: str,
        *,
        if_match: str | int | None = None,
        if_none_match: Literal["*"] | None = None,
        **fields: Unpack[TenantBody],
    ) -> TenantResponse:
        """Make or replace the tenant's limits: what is left out is unlimited."""
        return self.put_document(name, fields, if_match=if_match, if_none_match=if_none_match)


class TokensApi:
    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def create(
        self, name: str, role: Role, tenant: str = "*", *, expires_in: str | float | None = None
    ) -> NewTokenResponse:
        """The only answer that shows the token itself. Where it is unknown whether a try made one, and its id is told,
        that is revoked before the next; without an id it is sent once: after `Unavailable` look with `list` for one to
        revoke."""
        body = plain(name=name, role=role, tenant=tenant, expires_in=expires_in)
        return self._ask(Request("POST", "/v1/tokens", body_of, content=encoded(body), look=take_back("tokens")))

    def list(self) -> Iterator[TokenResponse]:
        for token in each(self._ask, "/v1/tokens", []):
            yield token

    def revoke(self, token_id: str) -> bool:
        """False where there was none."""
        path = named("tokens", token_id)
        return self._ask(Request("DELETE", path, deleted, look=delete_again(path), absent=not_there))
