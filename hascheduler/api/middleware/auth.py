"""Authentication, before a byte of the body is read, and authorization: each route names what it requires.

`identified` lets no request through whose token is missing or wrong. 401 tells a stranger only what strangers
know; only the holder of an expired token learns that it has expired. A replica whose mirror is not complete and fresh
knows neither new tokens nor revoked ones, and answers 503. A route then takes one of the callers below; a caller
without the power gets 403.

==================  ==================================================================================
caller              may
==================  ==================================================================================
`Authenticated`     ask for its own identity
`Viewer`            read jobs, schedules, events, its own tenant; definitions, lanes, calendars, the cluster
`Submitter`         submit and cancel jobs, trigger schedules
`Operator`          write, pause and backfill schedules; retry and reprioritize jobs
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

from dataclasses import dataclass
from hmac import compare_digest
from http import HTTPStatus
from typing import Annotated

from fastapi import Depends, Request
from fastapi.openapi.models import HTTPBearer as BearerModel
from fastapi.security.base import SecurityBase
from starlette.types import Scope

from hascheduler.api.http.problems import FieldError, Path, ProblemError
from hascheduler.model.instants import WallMs
from hascheduler.model.repr_limits import quoted
from hascheduler.model.tenant import DEFAULT_TENANT
from hascheduler.model.token import ALL_TENANTS, POWERS, SECRET, Power, Role, digest_of
from hascheduler.ports import Clock, ClusterView


@dataclass(frozen=True, slots=True)
class Caller:
    """``id`` is the public id of the token, None without one; ``name`` is for people and the audit log.

    ``expires_at_ms`` is when the token expires; None: never.
    """

    role: Role
    tenant: str
    name: str
    id: str | None = None
    expires_at_ms: WallMs | None = None

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
            errors=[FieldError(path, f"{quoted(named)} is not the token's", f"{quoted(self.only)}, or nothing")],
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
        caller = request.state.caller
        assert isinstance(caller, Caller)
        return caller


bearer = _Bearer()


class RequiredPower:
    """A dependency: the caller, if it has ``power`` (None: any) and, with ``of_all``, has it for all tenants.

    `hascheduler.api.routing.body.JsonRoute` finds it among the dependencies of its route, and checks it before reading
    the body.
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
            raise _forbidden(f"a token with the role {caller.role} may not do this; expected {enough}")
        if self.of_all and caller.only is not None:
            raise _forbidden(f"this takes a token for all tenants, and yours is for {quoted(caller.only)}")


def _forbidden(detail: str) -> ProblemError:
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
_RETRY_AFTER_S = "2"
SETTINGS_TOKEN_ID = "settings"  # noqa: S105  # an id
"""The public id of the admin token in the settings."""


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


def identified(scope: Scope, config: AuthConfig, view: ClusterView, clock: Clock) -> Caller:
    """The caller of a request; without waiting, so that no request holds anything before it is charged to its caller.
    `ProblemError` 401 or 503."""
    given = [value.decode("latin-1") for name, value in scope["headers"] if name == b"authorization"]
    if not given:
        if config.required:
            raise _unknown(_HOW_TO_SHOW_ONE, error=None)
        return ANONYMOUS
    scheme, _, secret = given[0].partition(" ")
    secret = secret.strip()
    if len(given) > 1 or len(secret) > _CREDENTIALS_LENGTH_MAX or scheme.lower() != "bearer" or not secret:
        raise _unknown("the Authorization header is malformed; expected Bearer and one token")
    digest = digest_of(secret)
    if config.admin_digest is not None and compare_digest(digest, config.admin_digest):
        return Caller(Role.ADMIN, ALL_TENANTS, "HASCHEDULER_ADMIN_TOKEN", SETTINGS_TOKEN_ID)
    if not SECRET.fullmatch(secret):
        raise _unknown("the token is unknown")
    if not view.ready:
        raise ProblemError(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "unavailable",
            f"this replica can't tell who you are now: {view.unready_reason}",
            headers={"Retry-After": _RETRY_AFTER_S},
        )
    token = view.token(digest)
    if token is None:
        raise _unknown("the token is unknown")
    if token.has_expired(clock.wall_ms()):
        raise _unknown("the token has expired")
    return Caller(token.role, token.tenant, token.name, token.id, token.expires_at_ms)


def _unknown(detail: str, error: str | None = "invalid_token") -> ProblemError:
    challenge = _REALM if error is None else f'{_REALM}, error="{error}"'
    return ProblemError(HTTPStatus.UNAUTHORIZED, "unauthorized", detail, headers={"WWW-Authenticate": challenge})
