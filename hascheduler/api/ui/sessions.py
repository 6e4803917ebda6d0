"""``/ui/session``: log in to the dashboard with a token, ask for one's identity, log out.

::

    token ─► POST ─► is it good? ─► a session, stored as a token that ends ─► this mirror knows it ─► cookie
                        401                  │
                                             └─► the change stream ─► the mirrors of all replicas

So any replica accepts a session, and none does once it is ended, or its parent is revoked: the rules are in
`hascheduler.api.middleware.auth`. The response to a login waits until this replica knows the session; another one may
learn of it a moment later, and until then answers 401 with ``Retry-After``, which other 401s do not have.

A login ignores any cookie that comes with it: the secret of a session is always a new one, made here. A token has at
most `SESSIONS_MAX` live sessions; one more ends the oldest. Sessions make no sessions, and no tokens.
"""

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from secrets import token_hex, token_urlsafe
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import BeforeValidator, Field, model_validator

from hascheduler.api.admission.logins import SESSIONS_MAX
from hascheduler.api.middleware.audit import SESSION_PATH, Noted
from hascheduler.api.middleware.auth import (
    Authenticated,
    Caller,
    PageTerms,
    forbidden,
    holder_of,
    require_ready,
    unavailable,
)
from hascheduler.api.middleware.session_cookie import session_secrets, set_cookie
from hascheduler.api.resources.access import WhoamiResponse, identity_of
from hascheduler.api.routing.route_rules import JsonRoute
from hascheduler.api.services import ApiServices, Services
from hascheduler.errors import Conflict
from hascheduler.model.token import SECRET_BYTES, SECRET_PREFIX, Power, digest_of, session_id
from hascheduler.model.values.instants import LATEST_MS, WallMs
from hascheduler.schema.forms import wrong
from hascheduler.schema.noun import AS_REQUEST, Part
from hascheduler.schema.token import Token

LOGIN = ("POST", SESSION_PATH)
"""The request that needs no caller: it has its token in the body."""
_BODY_BYTES_MAX = 4 * 1024
_TOKEN_LENGTH_MAX = 1_024
_POLLS_MAX = 250
_POLL_S = 0.02


class _SmallJsonRoute(JsonRoute):
    bytes_max = _BODY_BYTES_MAX


def _token(value: object) -> object:
    # Never quote it: it may be a secret in a form that no redaction detects.
    if not isinstance(value, str) or not 0 < len(value) <= _TOKEN_LENGTH_MAX:
        raise wrong("not the text of a token", f"a text of 1 to {_TOKEN_LENGTH_MAX} characters")
    return value


class LoginBody(Part):
    token: Annotated[str, BeforeValidator(_token)] = Field(description="The secret of a token", repr=False)

    @model_validator(mode="before")
    @classmethod
    def _an_object(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            raise wrong("not an object", "an object with a token")
        return given


class SessionResponse(WhoamiResponse):
    """The caller's identity at this replica, and the terms on which the page shows things."""

    session: bool = Field(description="Whether the caller shows a session")
    read_only: bool = Field(description="Whether the page changes nothing, whatever the token's role")
    payloads: Literal["on_request", "never"] = Field(description="Whether the page shows payloads and results")
    environment: str = Field(description="What people call this deployment; may be empty")


router = APIRouter(include_in_schema=False, route_class=_SmallJsonRoute)


@router.post(SESSION_PATH)
async def log_in(
    body: Annotated[LoginBody, AS_REQUEST], services: Services, request: Request, response: Response, note: Noted
) -> SessionResponse:
    """Begin a session; its cookie is in the response."""
    config = services.auth
    if not config.required:
        note.unaudited = True
        raise Conflict("this replica demands no tokens: there is nothing to log in to")
    require_ready(services.view)  # otherwise it could not learn of the session either
    parent = holder_of(body.token, config, services.view, services.clock)
    request.state.caller = parent  # for the audit log
    assert parent.id is not None
    if not parent.may(Power.READ):
        raise forbidden(f"a token with the role {parent.role} may not read; expected viewer or more")
    services.logins.require(parent.id, services.clock.mono_ms())
    secret = f"{SECRET_PREFIX}{token_urlsafe(SECRET_BYTES)}"
    now = services.clock.wall_ms()
    session = _session(secret, digest_of(body.token), parent, config.pages, now)
    note.target = session.id
    await services.tokens.begin_session(session, SESSIONS_MAX, now)
    if not await _comes_true(lambda: services.view.token(session.digest) is not None):
        await services.tokens.revoke(session.id, None)
        raise unavailable("this replica did not learn of the session in time; log in again")
    assert session.expires_at_ms is not None
    response.headers["Set-Cookie"] = set_cookie(secret, (session.expires_at_ms - now) // 1_000, request.scope)
    response.headers["Cache-Control"] = "no-store"
    caller = Caller(parent.role, parent.tenant, parent.name, session.id, session.expires_at_ms, parent.id)
    return _described(config.pages.limited(caller), services)


@router.get(SESSION_PATH)
async def describe_session(services: Services, caller: Authenticated, response: Response) -> SessionResponse:
    """Return the caller's identity: in a session, with a token, or without one if none is required."""
    response.headers["Cache-Control"] = "no-store"
    return _described(caller, services)


@router.delete(SESSION_PATH, status_code=HTTPStatus.NO_CONTENT)
async def log_out(services: Services, caller: Authenticated, request: Request, response: Response, note: Noted) -> None:
    """End the session, if there is one, and make the browser forget it."""
    response.headers["Set-Cookie"] = set_cookie("", 0, request.scope)
    if not caller.is_session:
        note.unaudited = True
        return
    assert caller.id is not None
    note.target = caller.id
    await services.tokens.revoke(caller.id, None)
    [secret] = session_secrets(request.scope)
    digest = digest_of(secret)
    # If the stream is slow, do not wait longer: the mirror forgets a deleted session in any case.
    await _comes_true(lambda: services.view.token(digest) is None)


def _session(secret: str, parent_digest: str, parent: Caller, pages: PageTerms, now: WallMs) -> Token:
    assert parent.id is not None
    ends_at_ms = min(now + pages.session_life_ms, LATEST_MS)
    if parent.expires_at_ms is not None:
        ends_at_ms = min(ends_at_ms, parent.expires_at_ms)
    return Token(
        digest=digest_of(secret),
        id=session_id(parent.id, token_hex(6)),
        name=parent.name,
        role=parent.role,
        tenant=parent.tenant,
        created_at_ms=now,
        created_by=parent.name,
        expires_at_ms=WallMs(ends_at_ms),
        session_of=parent_digest,
    )


async def _comes_true(is_so: Callable[[], bool]) -> bool:
    """Return True if ``is_so`` holds within some five seconds. Logins are rare enough to poll."""
    for _ in range(_POLLS_MAX):
        if is_so():
            return True
        await asyncio.sleep(_POLL_S)
    return False


def _described(caller: Caller, services: ApiServices) -> SessionResponse:
    pages = services.auth.pages
    return SessionResponse(
        **identity_of(caller, services),
        session=caller.is_session,
        read_only=pages.read_only,
        payloads="on_request" if pages.shows_payloads else "never",
        environment=pages.environment,
    )
