"""``/v1/tokens``: make them, list them, revoke them.

Nobody gives what he has not: an admin of one tenant makes and sees tokens of that tenant alone, and one whose own token
expires makes none that is good for longer; so it can't renew itself. A token is known at every replica, and a revoked
one forgotten, as soon as the change stream has told of it.

To revoke a token does not revoke those that it made: ``created_by`` names it, and each is revoked by its own id.

The first one is made with the token that the settings hold: replicas that were started with ``HASCHEDULER_ADMIN_TOKEN``
(or ``…_FILE``) let it in as an admin of all tenants, and it is stored nowhere::

    HASCHEDULER_TOKEN=$HASCHEDULER_ADMIN_TOKEN hascheduler token create ops --role admin --tenant '*'

After that the setting may go.
"""

from http import HTTPStatus
from secrets import token_hex, token_urlsafe

from fastapi import APIRouter, Response

from hascheduler.api.access import Admin, Caller
from hascheduler.api.body import JsonRoute
from hascheduler.api.pages import Page, Paging, page
from hascheduler.api.responses import refused
from hascheduler.api.services import Services
from hascheduler.api.token_schemas import CreateTokenBody, NewTokenResponse, TokenResponse, show_token
from hascheduler.errors import InvalidInput, NotFound
from hascheduler.model.documents.token import decode_token
from hascheduler.model.durations import format_duration
from hascheduler.model.instants import WallMs, format_instant
from hascheduler.model.repr_limits import quoted
from hascheduler.model.token import ALL_TENANTS, SECRET_BYTES, SECRET_PREFIX, Power, Role, Token, digest_of
from hascheduler.ports import StoredDocument

router = APIRouter(prefix="/tokens", tags=["access"], route_class=JsonRoute)


@router.post("", status_code=HTTPStatus.CREATED, responses=refused(403, 413, 422))
async def create_token(
    body: CreateTokenBody, services: Services, caller: Admin, response: Response
) -> NewTokenResponse:
    """Make a token. The answer alone has the secret; a request that is repeated makes another one.

    It is good for no longer than the token that makes it, and lives on when that one is revoked.
    """
    role = Role(body.role)
    tenant = caller.tenant_of(body.tenant)
    if role.may(Power.WORK) and not role.may(Power.READ) and tenant != ALL_TENANTS:
        raise InvalidInput(("tenant",), f"{quoted(tenant)}, and workers serve all tenants", quoted(ALL_TENANTS))
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
    await services.tokens.create(token)
    response.headers["Location"] = f"/v1/tokens/{token.id}"
    response.headers["Cache-Control"] = "no-store"
    return NewTokenResponse(**dict(show_token(token, now)), token=secret)


def _expires_at_ms(body: CreateTokenBody, caller: Caller, now: WallMs) -> WallMs | None:
    """No later than the token that makes it: by default at the same time."""
    asked = body.expires_at_ms(now)
    latest = caller.expires_at_ms
    if latest is None or asked is None:
        return latest if asked is None else asked
    if asked > latest:
        problem = f"it would outlive the token that makes it, which expires at {format_instant(latest)}"
        raise InvalidInput(("expires_in",), problem, f"at most {format_duration(latest - now)}, or nothing")
    return asked


@router.get("", responses=refused(422))
async def list_tokens(paging: Paging, services: Services, caller: Admin) -> Page[TokenResponse]:
    """Tokens by id, a page at a time, without their secrets; also those that have expired."""
    documents = await services.tokens.list(caller.only, paging.after, paging.limit + 1)
    now = services.clock.wall_ms()

    def show(document: StoredDocument) -> TokenResponse:
        return show_token(decode_token(document["_id"], document), now)

    # The cursor is the public id, and so is what stands for a token that can't be read.
    public = [{**document, "_id": document.get("id")} for document in documents]
    return page(public, paging.limit, show)


@router.delete("/{id}", status_code=HTTPStatus.NO_CONTENT, responses=refused(404))
async def revoke_token(id: str, services: Services, caller: Admin) -> None:
    """Revoke a token: it opens nothing any more. What it has done stays, tokens that it made among that."""
    if not await services.tokens.revoke(id, caller.only):
        raise NotFound("token", id)
