"""The answer to a write that may have been carried out or not: 503 with the id by which to ask, and where.

The database did not answer in time, the time limit of the request is over, or another replica broke off. A route that
makes something knows its id before it writes, and says in its note where to ask (`AuditNote.location`); of all others
the path names what they change.
"""

from http import HTTPStatus
from urllib.parse import quote

from starlette.responses import Response
from starlette.types import Scope

from hascheduler.api.http.problems import problem
from hascheduler.api.middleware.audit import id_in, named_in, note_of, pattern_of
from hascheduler.api.middleware.cross_site import READING

_KEY = b"idempotency-key"
_OF_WORKERS = "/v1/work/"


def outcome_unknown(scope: Scope, because: str) -> Response | None:
    """The answer to the request that was left ``because`` of that; None if it changes nothing, or is a worker's, which
    may be repeated as it is."""
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
        ways.append("repeat it under its Idempotency-Key")
    if location is not None:
        ways.append(f"ask by {id!r} at {location} before you repeat it")
    detail = f"outcome unknown: {because}; {', or '.join(ways) or 'look before you repeat it'}"
    headers = {"Retry-After": "2"} | ({} if location is None else {"Location": location})
    return problem(HTTPStatus.SERVICE_UNAVAILABLE, "outcome-unknown", detail, headers=headers, id=id)


def _named_by_path(scope: Scope) -> str | None:
    """The path of what the request changes, without the verb; None where the path names nothing."""
    pattern = pattern_of(scope)
    if pattern is None:
        return None
    if "}" not in pattern:
        return None if scope["method"] == "POST" else pattern
    shown = {name: quote(str(value), safe=":") for name, value in named_in(scope).items()}
    return pattern[: pattern.index("}") + 1].format_map(shown)
