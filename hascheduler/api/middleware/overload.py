"""Which submits are turned away before their bodies are read, as the leader can't keep up."""

from collections.abc import Callable
from http import HTTPStatus

from starlette.responses import Response
from starlette.types import Scope

from hascheduler.api.http.problems import problem
from hascheduler.api.middleware.auth import Caller
from hascheduler.errors import Overloaded

TurnedAway = Callable[[str | None, int], Overloaded | None]
"""As `hascheduler.ports.Admission.turned_away`."""
_SUBMITS = frozenset({"/v1/jobs", "/v1/jobs:batch"})
_SHORT_BYTES = 8 * 1024
"""So short a body has come with its head: it is passed over, and the connection stays."""
_LENGTH_DIGITS_MAX = 9
_LENGTH_UNKNOWN = 64 * 1024


def overload_of(scope: Scope, turned_away: TurnedAway) -> Response | None:
    """Return 503 for a submit that would be refused once it is read, of a caller who is identified."""
    if scope["method"] != "POST" or scope["path"] not in _SUBMITS:
        return None
    caller = scope.get("state", {}).get("caller")
    if not isinstance(caller, Caller):
        return None
    header = dict(scope["headers"]).get(b"content-length", b"")
    length = int(header) if header.isdigit() and len(header) <= _LENGTH_DIGITS_MAX else _LENGTH_UNKNOWN
    overloaded = turned_away(caller.only, length)
    if overloaded is None:
        return None
    headers = {"Retry-After": str(overloaded.retry_after_s)}
    if length > _SHORT_BYTES:
        headers["Connection"] = "close"
    return problem(HTTPStatus.SERVICE_UNAVAILABLE, "overloaded", str(overloaded), headers=headers)
