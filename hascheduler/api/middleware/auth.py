"""Authentication, before a byte of the body is read, and authorization: each route names what it requires.

`identified` refuses every request whose token is missing or wrong. 401 reveals to a stranger only what strangers
know; only the holder of an expired token learns that it has expired. A replica whose mirror is not complete and fresh
knows neither new tokens nor revoked ones, and answers 503. A route then takes one of the callers below; a caller
without the power gets 403.

A caller shows a token in the header ``Authorization`` or, if there is none and tokens are required, a session of the
dashboard in its cookie; neither is accepted in the place of the other. A session is good for as long as its parent is,
and may do the same, except taking work; the settings that restrict callers from a page restrict sessions, and requests
without a token that a page sends (see `PageTerms`).

The callers below are named for the `Power` that they have, and those ``…OfAll`` have it for all tenants. The text of
the API's document (`hascheduler.api.app`) lists what each role may do. A token of one tenant reads and changes only
that tenant's jobs and schedules; other tenants' are invisible to it. If no tokens are required (see the setting AUTH),
every caller is an admin of all tenants.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hmac import compare_digest
from http import HTTPStatus
from typing import Annotated

from fastapi import Depends, Request
from fastapi.openapi.models import HTTPBearer as BearerModel
from fastapi.security.base import SecurityBase
from starlette.types import Scope

from hascheduler.api.http.limits import Party, address_party
from hascheduler.api.http.problems import Path, ProblemError
from hascheduler.api.middleware.session_cookie import session_secrets
from hascheduler.errors import InvalidInput
from hascheduler.model.token import ALL_TENANTS, POWERS, SECRET, SETTINGS_TOKEN_ID, Power, Role, digest_of
from hascheduler.model.values.error_texts import quoted
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import Clock, ClusterView
from hascheduler.schema.tenant import DEFAULT_TENANT
from hascheduler.schema.token import Token


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a request.

    ``id`` is the public id of the token, None without one. ``name`` is for people and the audit log. ``expires_at_ms``
    is when the token expires, None if never. ``session_of`` is the public id of a session's parent. A caller that does
    not see payloads gets neither those of jobs and schedules nor results and tracebacks.
    """

    role: Role
    tenant: str
    name: str
    id: str | None = None
    expires_at_ms: WallMs | None = None
    session_of: str | None = None
    sees_payloads: bool = True

    @property
    def is_session(self) -> bool:
        return self.session_of is not None

    def may(self, power: Power) -> bool:
        """Return True if the caller has the power, for its own tenant or for all."""
        if power is Power.WORK and (self.only is not None or self.is_session or not self.sees_payloads):
            return False
        return self.role.may(power)

    def require_payloads(self) -> None:
        """Refuse with 403 a caller that does not see payloads, if a route shows nothing else."""
        if not self.sees_payloads:
            raise forbidden("payloads are hidden in the dashboard by the setting UI_PAYLOADS")

    def require_token(self) -> None:
        """Refuse a session with 403: what it makes would outlive it."""
        if self.is_session or not self.sees_payloads:
            raise forbidden("a session of the dashboard can't do this; expected a token in the header Authorization")

    @property
    def only(self) -> str | None:
        """Return the one tenant that the caller sees; None if it sees all."""
        return None if self.tenant == ALL_TENANTS else self.tenant

    def sees(self, tenant: object) -> bool:
        """Return True if jobs and schedules of ``tenant`` are visible to this caller."""
        return self.only is None or tenant == self.only

    def tenant_of(self, named: str | None, path: Path = ("tenant",)) -> str:
        """Return the tenant that a body names at ``path``, by default the caller's own; 403 if it is another."""
        if named is None:
            return self.only or DEFAULT_TENANT
        if self.only is None or named == self.only:
            return named
        raise ProblemError(
            HTTPStatus.FORBIDDEN,
            "forbidden",
            f"the token is for tenant {quoted(self.only)}, not for {quoted(named)}",
            errors=[
                InvalidInput(
                    path, f"{quoted(named)} is not the tenant of the token", f"{quoted(self.only)}, or no tenant"
                )
            ],
        )

    def filter_of(self, named: str | None) -> str | None:
        """Return the tenant by which to filter a list if the request gives ``named``; 403 if it is another's."""
        return self.only if named is None else self.tenant_of(named)


ANONYMOUS = Caller(Role.ADMIN, ALL_TENANTS, "anonymous")
"""Every caller if no tokens are required."""


class _Bearer(SecurityBase):
    """The scheme for OpenAPI, and the dependency that returns the caller found by `identified`."""

    def __init__(self) -> None:
        self.model = BearerModel(
            bearerFormat="hsk_…", description="A token from `POST /v1/tokens`. On loopback none is needed."
        )
        self.scheme_name = "token"

    async def __call__(self, request: Request) -> Caller:
        caller = request.scope["state"].get("caller")
        assert isinstance(caller, Caller), "the edge must identify the caller"
        return caller


bearer = _Bearer()


class RequiredPower:
    """A dependency: the caller, if it has ``power`` (None allows any) and, with ``of_all``, has it for all tenants.

    `hascheduler.api.routing.route_rules.JsonRoute` finds it among the dependencies of its route, and checks it before
    reading the body.
    """

    def __init__(self, power: Power | None, *, of_all: bool = False) -> None:
        self.power = power
        self.of_all = of_all

    async def __call__(self, caller: Annotated[Caller, Depends(bearer)]) -> Caller:
        self.check(caller)
        return caller

    def check(self, caller: Caller) -> None:
        """Refuse with 403 unless ``caller`` has the power."""
        if self.power is not None and not caller.role.may(self.power):
            enough = " or ".join(role for role in Role if self.power in POWERS[role])
            raise forbidden(f"a token with the role {caller.role} may not do this; expected {enough}")
        if self.of_all and caller.only is not None:
            raise forbidden(f"the token is for tenant {quoted(caller.only)}; expected a token for all tenants")
        if self.power is Power.WORK:
            caller.require_token()


def forbidden(detail: str) -> ProblemError:
    return ProblemError(HTTPStatus.FORBIDDEN, "forbidden", detail)


Authenticated = Annotated[Caller, Depends(RequiredPower(None))]
Viewer = Annotated[Caller, Depends(RequiredPower(Power.READ))]
Submitter = Annotated[Caller, Depends(RequiredPower(Power.SUBMIT))]
Operator = Annotated[Caller, Depends(RequiredPower(Power.OPERATE))]
Admin = Annotated[Caller, Depends(RequiredPower(Power.ADMINISTER))]
Worker = Annotated[Caller, Depends(RequiredPower(Power.WORK, of_all=True))]
ViewerOfAll = Annotated[Caller, Depends(RequiredPower(Power.READ, of_all=True))]
OperatorOfAll = Annotated[Caller, Depends(RequiredPower(Power.OPERATE, of_all=True))]
AdminOfAll = Annotated[Caller, Depends(RequiredPower(Power.ADMINISTER, of_all=True))]


_REALM = 'Bearer realm="hascheduler"'
_HOW_TO_SHOW_ONE = "a token is required; expected the header Authorization with the word Bearer, a blank and the token"
"""In words: an example would be taken for a token and redacted."""
_CREDENTIALS_LENGTH_MAX = 1_024
_OF_SETTINGS = Caller(Role.ADMIN, ALL_TENANTS, "HASCHEDULER_ADMIN_TOKEN", SETTINGS_TOKEN_ID)
SESSION_LIFE_MS = 12 * 3_600_000
_PRIVILEGED = frozenset({Role.OPERATOR, Role.ADMIN, Role.WORKER})
_WORK = "/v1/work/"
EDGE = "edge"
"""The key in ``scope["state"]`` of the edge's own services, whichever services answer the request."""
PAGES = "/ui"
"""The dashboard, and all paths below it."""


@dataclass(frozen=True, slots=True)
class PageTerms:
    """The terms on which this replica serves the dashboard, if it does.

    They hold for callers that use a page: sessions and, if no tokens are required, the requests that a browser's
    page sends. With ``read_only`` these are viewers at most; unless it ``shows_payloads`` they see none.
    ``environment`` is for people: the name of the deployment that the page shows.
    """

    enabled: bool = True
    session_life_ms: int = SESSION_LIFE_MS
    read_only: bool = False
    shows_payloads: bool = True
    environment: str = ""

    def limited(self, caller: Caller) -> Caller:
        """Return ``caller`` with the rights it has through a page."""
        if self.shows_payloads and not self.read_only:
            return caller
        role = Role.VIEWER if self.read_only and caller.role.may(Power.READ) else caller.role
        return replace(caller, role=role, sees_payloads=self.shows_payloads)


@dataclass(frozen=True, slots=True)
class AuthConfig:
    """The settings of authentication, with the digest of the admin token in them, if there is one.

    If requests need no token, their ``Host`` may be one of ``hosts`` besides loopback's names, or with ``any_address``
    any address.
    """

    required: bool = False
    admin_digest: str | None = None
    hosts: frozenset[str] = frozenset()
    any_address: bool = False
    pages: PageTerms = PageTerms()


def is_page_path(path: str) -> bool:
    """Return True if the path is the dashboard's, or below it."""
    return path == PAGES or path.startswith(f"{PAGES}/")


def shows_session(scope: Scope, config: AuthConfig) -> bool:
    """Return True if a session, good or not, would identify the caller: the header Authorization wins."""
    if not (config.required and config.pages.enabled):
        return False
    return bool(session_secrets(scope)) and all(name != b"authorization" for name, _ in scope["headers"])


def identified(scope: Scope, config: AuthConfig, view: ClusterView, clock: Clock) -> Caller:
    """Return the caller of a request, or raise `ProblemError` 401 or 503.

    It does not wait, so that no request holds anything before it is charged to its caller.
    """
    given = [value.decode("latin-1") for name, value in scope["headers"] if name == b"authorization"]
    if not given:
        if not config.required:
            return config.pages.limited(ANONYMOUS) if _comes_by_page(scope) else ANONYMOUS
        shown = session_secrets(scope) if config.pages.enabled else []
        if not shown:
            raise _unknown(_HOW_TO_SHOW_ONE, error=None)
        return config.pages.limited(_in_session(shown, config, view, clock))
    scheme, _, secret = given[0].partition(" ")
    secret = secret.strip()
    if len(given) > 1 or len(secret) > _CREDENTIALS_LENGTH_MAX or scheme.lower() != "bearer" or not secret:
        raise _unknown("the Authorization header is malformed; expected Bearer and one token")
    return holder_of(secret, config, view, clock)


def holder_of(secret: str, config: AuthConfig, view: ClusterView, clock: Clock) -> Caller:
    """Return the holder of the token with that secret, which may be any text, but not a session's.

    Raise `ProblemError` 401 or 503.
    """
    digest = digest_of(secret)
    if config.admin_digest is not None and compare_digest(digest, config.admin_digest):
        return _OF_SETTINGS
    if not SECRET.fullmatch(secret):
        raise _unknown("the token is unknown")
    require_ready(view)
    token = view.token(digest)
    if token is None or token.is_session:
        raise _unknown("the token is unknown")
    if token.has_expired(clock.wall_ms()):
        raise _unknown("the token has expired")
    return _caller(token)


def still_identified(scope: Scope, caller: Caller) -> bool:
    """Return True if the credentials of a long request are still good: its token, or its session and that one's parent.

    A replica without a fresh mirror goes by its last knowledge. The edge's view knows the tokens.
    """
    edge = scope["state"][EDGE]
    if caller.id is None or not edge.view.ready:
        return True
    try:
        identified(scope, edge.auth, edge.view, edge.clock)
    except ProblemError:
        return False
    return True


def charged(scope: Scope) -> tuple[Sequence[Party], bool]:
    """Return the parties to which a request is charged, and True if it may use the reserves.

    The sessions of one token are that token: a login must not multiply its share. Those who operate, administer or work
    for all tenants keep the system going, and so does ``/v1/work`` if no tokens are required.
    """
    caller, client = scope["state"].get("caller"), scope.get("client")
    address = address_party(client[0] if client else "")
    if not isinstance(caller, Caller) or caller.id is None:
        return (address,), caller is not None and scope["path"].startswith(_WORK)
    token = "token", caller.session_of or caller.id
    return (token, address), caller.only is None and caller.role in _PRIVILEGED


def _in_session(shown: list[str], config: AuthConfig, view: ClusterView, clock: Clock) -> Caller:
    """Return the owner of the session that the one cookie in ``shown`` names; raise `ProblemError` 401 or 503."""
    if len(shown) > 1 or not SECRET.fullmatch(shown[0]):
        raise _unknown("the session is unknown")
    require_ready(view)
    session = view.token(digest_of(shown[0]))
    if session is None:
        # It may have begun at another replica a moment ago, and its event may arrive here soon.
        raise _unknown("the session is unknown or has ended", retry_after_s="1")
    now = clock.wall_ms()
    if session.session_of is None:
        raise _unknown("the session is unknown")
    if session.has_expired(now):
        raise _unknown("the session has expired")
    if session.session_of == config.admin_digest:
        parent = _OF_SETTINGS
    else:
        token = view.token(session.session_of)
        if token is None or token.is_session or token.has_expired(now):
            raise _unknown("the token of the session is no longer valid")
        parent = _caller(token)
    return replace(parent, id=session.id, expires_at_ms=session.expires_at_ms, session_of=parent.id)


def _caller(token: Token) -> Caller:
    return Caller(token.role, token.tenant, token.name, token.id, token.expires_at_ms)


def _comes_by_page(scope: Scope) -> bool:
    """Return True if the path or a header shows a page. No page can remove the headers, and programs send neither."""
    if is_page_path(scope["path"]):
        return True
    return any(name in (b"sec-fetch-site", b"origin") for name, _ in scope["headers"])


def require_ready(view: ClusterView) -> None:
    """Refuse with 503 if this replica's mirror knows neither new tokens nor revoked ones."""
    if not view.ready:
        raise unavailable(f"this replica can't check tokens now: {view.unready_reason}")


def unavailable(detail: str) -> ProblemError:
    return ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, "unavailable", detail, headers={"Retry-After": "2"})


def _unknown(detail: str, error: str | None = "invalid_token", *, retry_after_s: str | None = None) -> ProblemError:
    challenge = _REALM if error is None else f'{_REALM}, error="{error}"'
    headers = {"WWW-Authenticate": challenge} | ({} if retry_after_s is None else {"Retry-After": retry_after_s})
    return ProblemError(HTTPStatus.UNAUTHORIZED, "unauthorized", detail, headers=headers)
