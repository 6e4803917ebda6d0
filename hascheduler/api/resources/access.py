"""``/v1/tokens``: create, list and revoke tokens. ``/v1/whoami``: the caller that a token identifies.

No token can create one with more rights than its own: an admin of one tenant creates and sees only tokens of that
tenant, and an admin whose own token expires creates none that is valid for longer, so a token can't renew itself. Every
replica knows a new token, and no longer accepts a revoked one, as soon as the change stream has delivered the change.

Revoking a token does not revoke those that it created: ``created_by`` names it, and each is revoked by its own id. But
it ends the sessions of the dashboard that began with it (`hascheduler.api.ui.sessions`); they are listed here too, and
each may be ended by its own id. A session creates no token, which would outlive it.

The first token is created with the one in the settings: replicas that were started with ``HASCHEDULER_ADMIN_TOKEN`` (or
``…_FILE``) accept it as an admin of all tenants, and it is stored nowhere::

    HASCHEDULER_TOKEN=$HASCHEDULER_ADMIN_TOKEN hascheduler token create ops --role admin --tenant '*'

After that the setting may be removed.

``/v1/audit``: the changes, made or attempted, of each caller. `hascheduler.api.middleware.audit` writes it.
"""

from http import HTTPStatus
from secrets import token_hex, token_urlsafe
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, Field

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.middleware.audit import Noted
from hascheduler.api.middleware.auth import Admin, Authenticated, Caller
from hascheduler.api.routing.queries import Page, PageQuery, Paging, page
from hascheduler.api.routing.route_rules import JsonRoute
from hascheduler.api.services import ApiServices, Services
from hascheduler.errors import InvalidInput, NotFound
from hascheduler.model.token import ALL_TENANTS, SECRET_BYTES, SECRET_PREFIX, Power, Role, digest_of
from hascheduler.model.values.error_texts import quoted
from hascheduler.model.values.instants import WallMs, format_duration, format_instant
from hascheduler.ports import AuditFilter, StoredDocument
from hascheduler.schema.audit import AuditRecord
from hascheduler.schema.forms import Instant
from hascheduler.schema.noun import AS_REQUEST, read_document
from hascheduler.schema.token import CreateTokenBody, NewTokenResponse, Token, TokenResponse, show_token

router = APIRouter(tags=["access"], route_class=JsonRoute)


@router.post("/tokens", status_code=HTTPStatus.CREATED, responses=problem_responses(403, 413, 422))
async def create_token(
    body: Annotated[CreateTokenBody, AS_REQUEST], services: Services, caller: Admin, response: Response, note: Noted
) -> NewTokenResponse:
    """Create a token. Only this response has the secret.

    A repeated request creates another token: after a 503 (`outcome-unknown`) revoke the `id` that it names, then retry.
    A token expires no later than the token that creates it, and stays valid if that one is revoked. A session of the
    dashboard can't create tokens.
    """
    caller.require_token()
    role, tenant = body.role, caller.tenant_of(body.tenant)
    if role.may(Power.WORK) and not role.may(Power.READ) and tenant != ALL_TENANTS:
        raise InvalidInput(
            ("tenant",), f"{quoted(tenant)} is not allowed, because workers serve all tenants", quoted(ALL_TENANTS)
        )
    secret = f"{SECRET_PREFIX}{token_urlsafe(SECRET_BYTES)}"
    now = services.clock.wall_ms()
    token = Token(
        digest=digest_of(secret),
        id=f"token-{token_hex(6)}",
        name=body.name,
        role=role,
        tenant=tenant,
        created_at_ms=now,
        created_by=caller.name,
        expires_at_ms=_expires_at_ms(body, caller, now),
    )
    note.location = response.headers["Location"] = f"/v1/tokens/{token.id}"
    await services.tokens.create(token)
    response.headers["Cache-Control"] = "no-store"
    return NewTokenResponse(**dict(show_token(token, now)), token=secret)


def _expires_at_ms(body: CreateTokenBody, caller: Caller, now: WallMs) -> WallMs | None:
    """Return when a new token expires: no later than the creating token, and by default at the same time."""
    asked = body.expires_at_ms(now)
    latest = caller.expires_at_ms
    if latest is None or asked is None:
        return latest if asked is None else asked
    if asked > latest:
        problem = f"would outlive the token that creates it, which expires at {format_instant(latest)}"
        raise InvalidInput(("expires_in",), problem, f"at most {format_duration(latest - now)}, or no expires_in")
    return asked


@router.get("/tokens", response_model=Page[TokenResponse], responses=problem_responses(422))
async def list_tokens(paging: Paging, services: Services, caller: Admin) -> Response:
    """List tokens by id, a page at a time, without secrets; expired tokens and sessions of the dashboard too."""
    documents = await services.tokens.list(caller.only, paging.after, paging.limit + 1)
    now = services.clock.wall_ms()

    def show(document: StoredDocument) -> TokenResponse:
        return show_token(read_document(Token, document["_id"], document), now)

    # The cursor is the public id, which also identifies a token that can't be read.
    public = [{**document, "_id": document.get("id")} for document in documents]
    return await page(public, paging.limit, None, show)


@router.delete("/tokens/{id}", status_code=HTTPStatus.NO_CONTENT, responses=problem_responses(404))
async def revoke_token(
    id: Annotated[str, Path(description="The public id of the token, not the secret")],
    services: Services,
    caller: Admin,
) -> None:
    """Revoke a token with its sessions, or end one session.

    Tokens that it created stay valid.
    """
    if not await services.tokens.revoke(id, caller.only):
        raise NotFound("token", id)


class WhoamiResponse(BaseModel):
    name: str = Field(description="The token's name; `anonymous` without a token")
    token: str | None = Field(description="The token's public id")
    role: Role = Field(description="The token's role; `admin` without a token")
    tenant: str = Field(description="The token's tenant; `*`: all tenants")
    may: list[Power] = Field(description="The powers of the role")
    tokens_demanded: bool = Field(description="True if this replica requires a token")


@router.get("/whoami")
async def whoami(services: Services, caller: Authenticated) -> WhoamiResponse:
    """Return the caller's identity and powers. Any token may ask."""
    return WhoamiResponse(**identity_of(caller, services))


def identity_of(caller: Caller, services: ApiServices) -> dict[str, Any]:
    """Return the fields of a `WhoamiResponse`."""
    return {
        "name": caller.name,
        "token": caller.id,
        "role": caller.role,
        "tenant": caller.tenant,
        "may": [power for power in Power if caller.may(power)],
        "tokens_demanded": services.auth.required,
    }


class AuditQuery(PageQuery):
    who: str | None = Field(default=None, max_length=256, description="Only records of the token with this name or id")
    tenant: str | None = Field(default=None, max_length=256, description="Only records of tokens of this tenant")
    path: str | None = Field(
        default=None, max_length=512, description="Only records of paths with this prefix", examples=["/v1/schedules"]
    )
    since: Instant | None = Field(default=None, description="Only records from this instant on")

    def filter(self, tenant: str | None) -> AuditFilter:
        return AuditFilter(who=self.who, tenant=tenant, path=self.path, since_ms=self.since)


@router.get("/audit", response_model=Page[AuditRecord], responses=problem_responses(403, 422))
async def list_audit_records(
    query: Annotated[AuditQuery, Query(), AS_REQUEST], services: Services, caller: Admin
) -> Response:
    """List the audit log, newest first, a page at a time. An admin of one tenant sees what that tenant's tokens did.

    A record appears a few tenths of a second after its request and is kept for the retention time.
    """
    which = query.filter(caller.filter_of(query.tenant))
    documents = await services.audit.list(which, query.after, query.limit + 1)
    return await page(documents, query.limit, None, lambda stored: read_document(AuditRecord, stored["_id"], stored))
