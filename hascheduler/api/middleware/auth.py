"""Authentication, before a byte of the body is read, and authorization: each route names what it requires.

`identified` lets no request through whose token is missing or wrong. 401 tells a stranger only what strangers
know; only the holder of an expired token learns that it has expired. A replica whose mirror is not complete and fresh
knows neither new tokens nor revoked ones, and answers 503. A route then takes one of the callers below; a caller
without the power gets 403.

A caller shows a token in the header ``Authorization`` or, where there is none and tokens are required, a session of the
dashboard in its cookie; neither is good in the place of the other. A session is good for as long as its parent is, and
may do what that one may, but for taking work; what the settings take from those who come by a page, they take from
sessions, and from requests without a token that a page sends (see `PageTerms`).

==================  ==================================================================================
caller              may
==================  ==================================================================================
`Authenticated`     ask for its own identity
`Viewer`            read jobs, schedules, events, its own tenant; definitions, lanes, calendars, the cluster
`Submitter`         submit and cancel jobs, trigger schedules
`Operator`          write, pause, reset and backfill schedules; retry and reprioritize jobs
`Admin`             create and revoke tokens, read the audit log
`Worker`            use ``/v1/work``
`ViewerOfAll`       read processors and metrics, which show the jobs of all tenants
`OperatorOfAll`     write definitions, drain processors, record the leader
`AdminOfAll`        write lanes, calendars and tenants
==================  ==================================================================================

The callers ``…OfAll`` require a token for all tenants. A token of one tenant reads and changes only that tenant's jobs
and schedules; other tenants' are invisible to it. Where no tokens are required (see the setting AUTH), every caller is
an admin of all tenants.
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
    """``id`` is the public id of the token, None without one; ``name`` is for people and the audit log.

    ``expires_at_ms`` is when the token expires; None: never. Of a session, ``session_of`` is the public id of its
    parent. A caller that does not see payloads gets neither those of jobs and schedules nor results and tracebacks.
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
        """Whether the caller has the power, for its own tenant or for all."""
        if power is Power.WORK and (self.only is not None or self.is_session or not self.sees_payloads):
            return False
        return self.role.may(power)

    def require_payloads(self) -> None:
        """403 for who does not see payloads, where a route would show them and nothing else."""
        if not self.sees_payloads:
            raise forbidden("this shows payloads, and by the setting UI_PAYLOADS the dashboard shows none")

    def require_token(self) -> None:
        """403 for a session: what it made would go on when it is ended."""
        if self.is_session or not self.sees_payloads:
            raise forbidden("this takes a token itself; expected the header Authorization, not the dashboard's session")

    @property
    def only(self) -> str | None:
        """The one tenant that the caller sees; None: all of them."""
        return None if self.tenant == ALL_TENANTS else self.tenant

    def sees(self, tenant: object) -> bool:
        """Whether jobs and schedules of ``tenant`` are visible to this caller."""
        return self.only is None or tenant == self.only

    def tenant_of(self, named: str | None, path: Path = ("tenant",)) -> str:
        """The tenant that a body means by ``named`` at ``path``; None: the caller's own. 403 where it is another."""
        if named is None:
            return self.only or DEFAULT_TENANT
        if self.only is None or named == self.only:
            return named
        raise ProblemError(
            HTTPStatus.FORBIDDEN,
            "forbidden",
            f"the token is for tenant {quoted(self.only)} and can't act for {quoted(named)}",
            errors=[InvalidInput(path, f"{quoted(named)} is not the token's", f"{quoted(self.only)}, or nothing")],
        )

    def filter_of(self, named: str | None) -> str | None:
        """The tenant by which to filter a list where the request says ``named``; 403 where it is another's."""
        return self.only if named is None else self.tenant_of(named)


ANONYMOUS = Caller(Role.ADMIN, ALL_TENANTS, "anonymous")
"""Every caller where no tokens are required."""


class _Bearer(SecurityBase):
    """For OpenAPI; gives the caller that `identified` has found."""

    def __init__(self) -> None:
        self.model = BearerModel(
            bearerFormat="hsk_…", description="A token, as `POST /v1/tokens` gives it. On loopback none is needed."
        )
        self.scheme_name = "token"

    async def __call__(self, request: Request) -> Caller:
        caller = request.scope["state"].get("caller")
        assert isinstance(caller, Caller), "the edge lets no such request through"
        return caller


bearer = _Bearer()


class RequiredPower:
    """A dependency: the caller, if it has ``power`` (None: any) and, with ``of_all``, has it for all tenants.

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
        """403 unless ``caller`` has the power."""
        if self.power is not None and not caller.role.may(self.power):
            enough = " or ".join(role for role in Role if self.power in POWERS[role])
            raise forbidden(f"a token with the role {caller.role} may not do this; expected {enough}")
        if self.of_all and caller.only is not None:
            raise forbidden(f"this takes a token for all tenants, and yours is for {quoted(caller.only)}")
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
_HOW_TO_SHOW_ONE = "a token is demanded; expected the header Authorization with the word Bearer, a blank and the token"
"""In words: an example would be taken for a token and redacted."""
_CREDENTIALS_LENGTH_MAX = 1_024
_OF_SETTINGS = Caller(Role.ADMIN, ALL_TENANTS, "HASCHEDULER_ADMIN_TOKEN", SETTINGS_TOKEN_ID)
SESSION_LIFE_MS = 12 * 3_600_000
_PRIVILEGED = frozenset({Role.OPERATOR, Role.ADMIN, Role.WORKER})
_WORK = "/v1/work/"
EDGE = "edge"
"""The key in ``scope["state"]`` of the edge's own services, whichever services answer the request."""
PAGES = "/ui"
"""The dashboard, and all below it."""


@dataclass(frozen=True, slots=True)
class PageTerms:
    """Whether this replica serves the dashboard, and on which terms.

    They hold for callers that use a page: sessions, and where no tokens are required the requests that a browser's
    page sends. With ``read_only`` these are viewers at most; unless it ``shows_payloads`` they see none.
    ``environment`` is for people: which deployment the page shows.
    """

    enabled: bool = True
    session_life_ms: int = SESSION_LIFE_MS
    read_only: bool = False
    shows_payloads: bool = True
    environment: str = ""

    def limited(self, caller: Caller) -> Caller:
        """``caller`` with what it may do through a page."""
        if self.shows_payloads and not self.read_only:
            return caller
        role = Role.VIEWER if self.read_only and caller.role.may(Power.READ) else caller.role
        return replace(caller, role=role, sees_payloads=self.shows_payloads)


@dataclass(frozen=True, slots=True)
class AuthConfig:
    """Whether requests need a token, and the digest of the admin token in the settings, where there is one.

    Where they need none, their ``Host`` may be one of ``hosts`` besides loopback's names, or with ``any_address`` any
    address.
    """

    required: bool = False
    admin_digest: str | None = None
    hosts: frozenset[str] = frozenset()
    any_address: bool = False
    pages: PageTerms = PageTerms()


def is_page_path(path: str) -> bool:
    """Whether it is the dashboard's, or below it."""
    return path == PAGES or path.startswith(f"{PAGES}/")


def shows_session(scope: Scope, config: AuthConfig) -> bool:
    """Whether a session would identify the caller, a good one or not: the header Authorization wins."""
    if not (config.required and config.pages.enabled):
        return False
    return bool(session_secrets(scope)) and all(name != b"authorization" for name, _ in scope["headers"])


def identified(scope: Scope, config: AuthConfig, view: ClusterView, clock: Clock) -> Caller:
    """The caller of a request; without waiting, so that no request holds anything before it is charged to its caller.
    `ProblemError` 401 or 503."""
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
    """Who holds the token with that secret, which may be any text; a session's is none. `ProblemError` 401 or 503."""
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
    """Whether what a long request showed at its beginning is still good: its token, or its session and the parent of
    that. A replica without a fresh mirror goes by what it knew last. The edge's view knows the tokens."""
    edge = scope["state"][EDGE]
    if caller.id is None or not edge.view.ready:
        return True
    try:
        identified(scope, edge.auth, edge.view, edge.clock)
    except ProblemError:
        return False
    return True


def charged(scope: Scope) -> tuple[Sequence[Party], bool]:
    """Return to whom a request is charged, and whether it may have of the reserves.

    The sessions of one token are that token: a login must not multiply its share. Those who operate, administer or work
    for all tenants keep the system going, and so does ``/v1/work`` where no tokens are required.
    """
    caller, client = scope["state"].get("caller"), scope.get("client")
    address = address_party(client[0] if client else "")
    if not isinstance(caller, Caller) or caller.id is None:
        return (address,), caller is not None and scope["path"].startswith(_WORK)
    token = "token", caller.session_of or caller.id
    return (token, address), caller.only is None and caller.role in _PRIVILEGED


def _in_session(shown: list[str], config: AuthConfig, view: ClusterView, clock: Clock) -> Caller:
    """The owner of the session that the one cookie in ``shown`` names; `ProblemError` 401 or 503."""
    if len(shown) > 1 or not SECRET.fullmatch(shown[0]):
        raise _unknown("the session is unknown")
    require_ready(view)
    session = view.token(digest_of(shown[0]))
    if session is None:
        # It may have begun at another replica a moment ago, and come here with the next of the stream.
        raise _unknown("the session is unknown here, or has ended", retry_after_s="1")
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
            raise _unknown("the token that the session was made with is not good any more")
        parent = _caller(token)
    return replace(parent, id=session.id, expires_at_ms=session.expires_at_ms, session_of=parent.id)


def _caller(token: Token) -> Caller:
    return Caller(token.role, token.tenant, token.name, token.id, token.expires_at_ms)


def _comes_by_page(scope: Scope) -> bool:
    """Browsers add these headers, and no page can take them away; programs send neither."""
    if is_page_path(scope["path"]):
        return True
    return any(name in (b"sec-fetch-site", b"origin") for name, _ in scope["headers"])


def require_ready(view: ClusterView) -> None:
    """503 from a replica whose mirror knows neither new tokens nor revoked ones."""
    if not view.ready:
        raise unavailable(f"this replica can't tell who you are now: {view.unready_reason}")


def unavailable(detail: str) -> ProblemError:
    return ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, "unavailable", detail, headers={"Retry-After": "2"})


def _unknown(detail: str, error: str | None = "invalid_token", *, retry_after_s: str | None = None) -> ProblemError:
    challenge = _REALM if error is None else f'{_REALM}, error="{error}"'
    headers = {"WWW-Authenticate": challenge} | ({} if retry_after_s is None else {"Retry-After": retry_after_s})
    return ProblemError(HTTPStatus.UNAUTHORIZED, "unauthorized", detail, headers=headers)
