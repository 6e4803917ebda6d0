"""The door: nobody gets to a route whose token is missing or wrong, whatever the route itself demands.

It settles who asks, before a byte of the body is read; what they may do is the route's business
(`hascheduler.api.access`). Answers to 401 tell a stranger only what strangers know; that a token has expired is told
to who has it. A replica whose mirror is not complete and fresh knows neither new tokens nor revoked ones, and says 503.
"""

from dataclasses import dataclass
from hmac import compare_digest
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from hascheduler.api.access import ANYBODY, Caller
from hascheduler.api.docs_page import ASSETS, DOCS_PATH
from hascheduler.api.problems import Refusal, problem
from hascheduler.model.instants import WallMs
from hascheduler.model.token import ALL_TENANTS, SECRET, Role, digest_of
from hascheduler.ports import ClusterView

OPEN_PATHS = frozenset(
    {"/livez", "/readyz", "/leaderz", "/openapi.json", DOCS_PATH, *(f"{DOCS_PATH}/{asset}" for asset in ASSETS)}
)
"""They hold nothing of anybody's."""
_REALM = 'Bearer realm="hascheduler"'
_HOW_TO_SHOW_ONE = "a token is demanded; expected the header Authorization with the word Bearer, a blank and the token"
"""In words, as an example would be taken for a token and redacted."""
_CREDENTIALS_LENGTH_MAX = 1_024
_RETRY_AFTER_S = "2"
SETTINGS_TOKEN = "settings"  # noqa: S105  # an id
"""The public id of the token that the settings hold."""


@dataclass(frozen=True, slots=True)
class Lock:
    """Whether tokens are demanded, and what the settings' own admin token hashes to, where there is one.

    Where none is demanded, requests may ask for ``hosts`` besides loopback's names, and for ``any_address``.
    """

    demanded: bool = False
    admin_digest: str | None = None
    hosts: frozenset[str] = frozenset()
    any_address: bool = False


class Door:
    """Lets requests through with ``request.state.caller`` set, except for those to `OPEN_PATHS`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in OPEN_PATHS:
            services = scope["app"].state.services
            try:
                caller = _identified(Headers(scope=scope), services.lock, services.view, services.clock.wall_ms())
            except Refusal as refusal:
                answer = problem(refusal.status_code, refusal.kind, refusal.detail, headers=refusal.headers)
                await answer(scope, receive, send)
                return
            scope.setdefault("state", {})["caller"] = caller
        await self._app(scope, receive, send)


def _identified(headers: Headers, lock: Lock, view: ClusterView, now: WallMs) -> Caller:
    given = headers.getlist("authorization")
    if not given:
        if lock.demanded:
            raise _unknown(_HOW_TO_SHOW_ONE, error=None)
        return ANYBODY
    scheme, _, secret = given[0].partition(" ")
    secret = secret.strip()
    if len(given) > 1 or len(secret) > _CREDENTIALS_LENGTH_MAX or scheme.lower() != "bearer" or not secret:
        raise _unknown("the Authorization header is malformed; expected Bearer and one token")
    digest = digest_of(secret)
    if lock.admin_digest is not None and compare_digest(digest, lock.admin_digest):
        return Caller(Role.ADMIN, ALL_TENANTS, "HASCHEDULER_ADMIN_TOKEN", SETTINGS_TOKEN)
    if not SECRET.fullmatch(secret):
        raise _unknown("the token is unknown")
    if not view.ready:
        raise Refusal(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "unavailable",
            f"this replica can't tell who you are now: {view.unready_reason}",
            headers={"Retry-After": _RETRY_AFTER_S},
        )
    token = view.token(digest)
    if token is None:
        raise _unknown("the token is unknown")
    if token.has_expired(now):
        raise _unknown("the token has expired")
    return Caller(token.role, token.tenant, token.name, token.id, token.expires_at_ms)


def _unknown(detail: str, error: str | None = "invalid_token") -> Refusal:
    challenge = _REALM if error is None else f'{_REALM}, error="{error}"'
    return Refusal(HTTPStatus.UNAUTHORIZED, "unauthorized", detail, headers={"WWW-Authenticate": challenge})
