"""Requests that can't be answered in time: their time limits, the submits refused unread, writes of unknown outcome.

Most requests have 30 s, and those that are held open until something happens have longer. How many may be in flight or
held open is up to `hascheduler.api.http.limits`.
"""

from collections.abc import Callable
from http import HTTPStatus
from urllib.parse import quote

from starlette.datastructures import QueryParams
from starlette.responses import Response
from starlette.types import Scope

from hascheduler.api.http.problems import problem
from hascheduler.api.middleware.audit import id_in, named_in, note_of, pattern_of
from hascheduler.api.middleware.auth import Caller
from hascheduler.api.middleware.cross_site import READING
from hascheduler.errors import Overloaded

TurnedAway = Callable[[str | None, int], Overloaded | None]
"""The signature of `hascheduler.api.admission.control.AdmissionControl.turned_away`."""
_SUBMITS = frozenset({"/v1/jobs", "/v1/jobs:batch"})
_SHORT_BYTES = 8 * 1024
"""A body up to this size has come with its head: it is discarded, and the connection stays."""
_LENGTH_DIGITS_MAX = 9
_LENGTH_UNKNOWN = 64 * 1024


def overload_of(scope: Scope, turned_away: TurnedAway) -> Response | None:
    """Return 503 for a submit that would be refused once it is read, from an identified caller."""
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


WAIT_S_MAX = 300
"""The longest wait for the end of a job, or of a worker for work."""
RECORDING_S_MAX = 3_600
EVENTS_S_MAX = 3_600
_ANSWER_S_MAX = 30
_MARGIN_S = 30

_LONG_S_MAX = {
    ("GET", "/v1/cluster/recording"): RECORDING_S_MAX + _MARGIN_S,
    ("GET", "/v1/cluster/live"): EVENTS_S_MAX + _MARGIN_S,
    ("GET", "/v1/events"): EVENTS_S_MAX + _MARGIN_S,
    ("POST", "/v1/work/fetch"): WAIT_S_MAX + _MARGIN_S,
}


def long_request_s_max(scope: Scope) -> int | None:
    """Return the time limit of a request that may be held open; None for all others."""
    method, path = request = (scope["method"], scope["path"])
    waits_for_job = request == ("POST", "/v1/jobs") or (method == "GET" and path.startswith("/v1/jobs/"))
    # Decode it as the route does: a name may be percent-encoded.
    if waits_for_job and scope.get("query_string") and "wait" in QueryParams(scope["query_string"]):
        return WAIT_S_MAX + _MARGIN_S
    return _LONG_S_MAX.get(request)


def time_limit_s(scope: Scope) -> int:
    """Return the time limit of any request."""
    limit_s = long_request_s_max(scope)
    return _ANSWER_S_MAX if limit_s is None else limit_s


_KEY = b"idempotency-key"
_OF_WORKERS = "/v1/work/"


def outcome_unknown(scope: Scope, because: str) -> Response | None:
    """Return the 503 of a request that was cut off, with the id and the place to ask whether it was carried out.

    None if it changes nothing, or is a worker's, which may be repeated as it is. A route that creates something knows
    its id before it writes, and notes where to ask (`AuditNote.location`); for all others the path names what they
    change.
    """
    note = note_of(scope)
    if scope["method"] in READING or note.unaudited:
        return None
    location = note.location
    if location is None:
        if scope["path"].startswith(_OF_WORKERS):
            return None
        location = _named_by_path(scope)
    id = None if location is None else note.target or id_in(location)
    ways = []
    if any(name == _KEY for name, _ in scope["headers"]):
        ways.append("retry with the same Idempotency-Key")
    if location is not None:
        ways.append(f"look up {id!r} at {location} before a retry")
    detail = f"outcome unknown: {because}; {', or '.join(ways) or 'check before a retry'}"
    headers = {"Retry-After": "2"} | ({} if location is None else {"Location": location})
    return problem(HTTPStatus.SERVICE_UNAVAILABLE, "outcome-unknown", detail, headers=headers, id=id)


def _named_by_path(scope: Scope) -> str | None:
    """Return the path of the object that the request changes, without the verb; None if the path names none."""
    pattern = pattern_of(scope)
    if pattern is None:
        return None
    if "}" not in pattern:
        return None if scope["method"] == "POST" else pattern
    shown = {name: quote(str(value), safe=":") for name, value in named_in(scope).items()}
    return pattern[: pattern.index("}") + 1].format_map(shown)
