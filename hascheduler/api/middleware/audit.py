"""Records what each caller changed, or tried to change: at once in the log of the process, soon after in the database.

::

    request ─► record ─► log line, at once
                 │
                 └─► AuditWriter: a bounded queue ─► its task ─► the store, in groups

The log line is there even where the process dies before the next write to the database. A full queue drops records,
counts them and logs that: the audit log must never hold a request up. No party can fill it: see
`hascheduler.api.middleware.audit_writer`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Annotated, Any
from urllib.parse import unquote

import structlog
from fastapi import Depends, Request
from starlette.routing import Route
from starlette.types import Scope

from hascheduler.api.middleware.audit_writer import AuditWriter
from hascheduler.api.middleware.auth import ANONYMOUS, EDGE, Caller
from hascheduler.schema.audit import AuditRecord


@dataclass(slots=True)
class AuditNote:
    """What a route adds to the audit record of its request. A route that changes nothing, although its method would,
    sets ``unaudited``; one whose target stands neither in its path nor in ``Location`` sets ``target``; one
    that pauses something sets ``because``. One that makes something says before it writes at which ``location`` that
    will be: it may end without an answer. ``pattern`` and ``named`` are of the route that matched, see `tell_match`."""

    unaudited: bool = False
    target: str | None = None
    location: str | None = None
    because: str | None = None
    pattern: str | None = None
    named: Mapping[str, Any] = field(default_factory=dict)


async def _note(request: Request) -> AuditNote:
    return note_of(request.scope)


Noted = Annotated[AuditNote, Depends(_note)]
"""For a route that may be a dry run: ``note.unaudited = body.dry_run``."""


async def _changes_nothing(note: Noted) -> None:
    note.unaudited = True


CHANGES_NOTHING = Depends(_changes_nothing)
"""For ``dependencies=[…]`` of a route that only reads, although its method is POST."""


log = structlog.get_logger(__name__)

_PATH_LENGTH_MAX = 512
_METHODS = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_RECORDED = "/v1/"
SESSION_PATH = "/ui/session"
"""Logging in to the dashboard and out of it leaves a record too."""
_UNRECORDED = "/v1/work/"
"""What processors do is recorded in the jobs."""
PATTERN = "route_pattern"
"""The key of a scope under which a gateway says which pattern the path matched."""
_NOTE = "audit_note"
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_ID = "request_id"
_LOGGED = ("who", "role", "tenant", "address", "method", "path", "target", "status")
_HTTP_REFUSED = 400
DEFECT = 500
CUT_OFF = 503
"""Cancelled: it took too long, or the client is gone; whether it was carried out is unknown."""


def pattern_of(scope: Scope) -> str | None:
    """The whole pattern that the path matched, never the path: paths hold names and ids. The route object may hold only
    the part that its router adds."""
    known: str | None = scope.get(PATTERN)
    if known is not None:
        return known
    route = scope.get("route")
    if not isinstance(route, Route):
        return note_of(scope).pattern
    end = route.path_format.format_map(scope.get("path_params") or {})
    path: str = scope["path"]
    return path[: -len(end)] + route.path_format if end and path.endswith(end) else route.path_format


def named_in(scope: Scope) -> Mapping[str, Any]:
    """Return the parameters of the path."""
    return scope.get("path_params") or note_of(scope).named


def begin_notes(scope: Scope, request_id: str) -> None:
    """Prepare what the routes tell the edge, which it sees also if they get a copy of its scope."""
    scope["state"].update({_NOTE: AuditNote(), _ID: request_id})


def tell_match(scope: Scope) -> None:
    """Tell the edge which route matched."""
    note = note_of(scope)
    note.pattern, note.named = pattern_of(scope), scope.get("path_params") or {}


def is_recorded(scope: Scope) -> bool:
    """Whether the request is a change, or would have been one."""
    path = scope["path"]
    is_of_api = path == SESSION_PATH or (path.startswith(_RECORDED) and not path.startswith(_UNRECORDED))
    return scope["method"] in _METHODS and is_of_api and not note_of(scope).unaudited


def record(scope: Scope, status: int | None, location: str | None, request_id: str) -> None:
    """Record a request that `is_recorded`; ``status`` is None where it has broken."""
    status = DEFECT if status is None else status
    services = scope["state"][EDGE]
    writer: AuditWriter = services.audit_writer
    caller = _caller_of(scope)
    now = services.clock.mono_ms()
    if caller is None:
        services.metrics.left_out_of_audit("stranger")
        left_out = writer.strangers.take(now)
    elif _HTTP_REFUSED <= status < DEFECT:
        left_out = writer.refusals.take(caller.session_of or caller.id or caller.name, now)
    else:
        left_out = 0
    if left_out is None:
        if caller is not None:
            services.metrics.left_out_of_audit("refusal")
        return
    client, note = scope.get("client"), note_of(scope)
    entry = AuditRecord(
        id=writer.next_id(),
        at_ms=services.clock.wall_ms(),
        who=ANONYMOUS.name if caller is None else caller.name,
        token_id=None if caller is None else caller.id,
        role=None if caller is None else caller.role.value,
        tenant=None if caller is None else caller.tenant,
        address=client[0] if client else "",
        method=scope["method"],
        path=_printable(scope["path"]),
        route=pattern_of(scope),
        target=_target(scope, location),
        status=status,
        request_id=request_id,
        left_out=left_out,
        because=note.because,
    )
    logged = {"token": entry.token_id, "request": entry.request_id} | {name: getattr(entry, name) for name in _LOGGED}
    told = {"left_out": left_out or None, "because": entry.because}
    log.info("audit", **logged, **{name: value for name, value in told.items() if value is not None})
    if caller is not None and not writer.add(entry):
        services.metrics.left_out_of_audit("queue")


def _target(scope: Scope, location: str | None) -> str | None:
    """What the request was about: as its route says, else as its path says, else what it created."""
    note = note_of(scope)
    if note.target is not None:
        return _printable(note.target)
    named = named_in(scope)
    target = named.get("id", named.get("name"))
    location = location or note.location
    if target is None and location is not None:
        target = id_in(location)
    return None if target is None else _printable(str(target))


def id_in(location: str) -> str:
    """What a `Location` names: the end of its path, or of its query."""
    return unquote(re.split("[/=]", location)[-1])


def _caller_of(scope: Scope) -> Caller | None:
    caller = scope.get("state", {}).get("caller")
    return caller if isinstance(caller, Caller) else None


def note_of(scope: Scope) -> AuditNote:
    """Return what the routes have noted; a new note for a request that passes no edge."""
    note = scope.get("state", {}).get(_NOTE)
    return note if isinstance(note, AuditNote) else AuditNote()


def request_id_of(scope: Scope) -> str:
    """The caller's own id, where it is fit for a log; else a new one."""
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            given: str = value.decode("latin-1")
            return given if _REQUEST_ID.fullmatch(given) else token_hex(8)
    return token_hex(8)


def known_request_id(scope: Scope) -> str:
    """That of a request that is being answered."""
    id: str = scope.get("state", {}).get(_ID) or request_id_of(scope)
    return id


def _printable(text: str) -> str:
    """``text`` shortened and without characters that would break a log line or a stored document."""
    shown = text if len(text) <= _PATH_LENGTH_MAX else f"{text[:_PATH_LENGTH_MAX]}…"
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in shown)
