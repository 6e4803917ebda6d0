"""``/v1/audit``: which caller changed what, or tried to. `hascheduler.api.middleware.audit` writes it."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.middleware.auth import Admin
from hascheduler.api.routing.queries import Page, PageQuery, page
from hascheduler.api.services import Services
from hascheduler.model.values.fields import integer, text, text_or_none
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import AuditFilter, StoredDocument
from hascheduler.wire.fields import InstantMs, instant_text


class AuditQuery(PageQuery):
    who: str | None = Field(default=None, max_length=256, description="Only of the token with this name, or id")
    tenant: str | None = Field(default=None, max_length=256, description="Only of tokens of this tenant")
    path: str | None = Field(
        default=None, max_length=512, description="Only of paths that begin so", examples=["/v1/schedules"]
    )
    since: InstantMs | None = Field(default=None, description="Only from this instant on")

    def filter(self, tenant: str | None) -> AuditFilter:
        since_ms = None if self.since is None else WallMs(self.since)
        return AuditFilter(who=self.who, tenant=tenant, path=self.path, since_ms=since_ms)


class AuditResponse(BaseModel):
    """One request that was to change something."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "1893456000000.000001.5f2c9a01",
                    "at": "2030-01-01T00:00:00.000Z",
                    "who": "deployer",
                    "token": "token-3f9a0c11d2e4",
                    "role": "operator",
                    "tenant": "acme",
                    "address": "10.0.0.7",
                    "method": "POST",
                    "path": "/v1/schedules/nightly/pause",
                    "route": "/v1/schedules/{name}/pause",
                    "target": "nightly",
                    "status": 200,
                    "request": "8c1f0a6be2d94c37",
                    "because": "the printer is on fire",
                    "left_out": 0,
                }
            ]
        }
    )

    id: str = Field(description="Later ones are greater; begins with `at` in milliseconds")
    at: str = Field(description="When it was answered, by the clock of the replica that did")
    who: str = Field(description="The token's name; `anonymous` without one")
    token: str | None = Field(description="The token's public id")
    role: str | None = Field(description="The token's role; `admin` without one")
    tenant: str | None = Field(description="Of the token, not of what it changed; `*`: all tenants")
    address: str = Field(description="Where the request came from; behind a proxy, the proxy's")
    method: str = Field(description="POST, PUT, PATCH or DELETE")
    path: str = Field(description="As it was asked for, without the query")
    route: str | None = Field(description="The pattern that the path matched")
    target: str | None = Field(description="What it was about, where that was one thing")
    status: int = Field(description="Of the answer; 4xx: nothing was changed")
    request: str = Field(description="The `X-Request-Id` of the answer")
    because: str | None = Field(description="Why, as the caller said, who paused something")
    left_out: int = Field(description="Refusals of the same caller before this one that are not recorded: too many")


def show_audit_record(document: StoredDocument) -> AuditResponse:
    return AuditResponse(
        id=text(document, "_id"),
        at=instant_text(WallMs(integer(document, "at_ms"))),
        who=text(document, "who"),
        token=text_or_none(document, "token_id"),
        role=text_or_none(document, "role"),
        tenant=text_or_none(document, "tenant"),
        address=text(document, "address", empty=True),
        method=text(document, "method"),
        path=text(document, "path"),
        route=text_or_none(document, "route"),
        target=text_or_none(document, "target"),
        status=integer(document, "status"),
        request=text(document, "request_id"),
        because=text_or_none(document, "because"),
        left_out=integer(document, "left_out", default=0),
    )


router = APIRouter(prefix="/audit", tags=["access"])


@router.get("", responses=problem_responses(403, 422))
async def list_audit_records(
    query: Annotated[AuditQuery, Query()], services: Services, caller: Admin
) -> Page[AuditResponse]:
    """The newest first, a page at a time. An admin of one tenant sees what that tenant's tokens did.

    A record is here some tenths of a second after its request, and stays for the retention time.
    """
    which = query.filter(caller.filter_of(query.tenant))
    documents = await services.audit.list(which, query.after, query.limit + 1)
    return page(documents, query.limit, show_audit_record)
