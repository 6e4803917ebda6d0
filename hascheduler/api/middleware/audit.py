"""Records what each caller changed, or tried to change: at once in the log of the process, soon after in the database.

::

    request ─► AuditMiddleware ─► log line, at once
                     │
                     └─► AuditWriter: a bounded queue ─► its task ─► the store, in groups

The log line is there even where the process dies before the next write to the database. A full queue drops records,
counts them and logs that: the audit log must never hold a request up. No party can fill it: see
`hascheduler.api.middleware.audit_writer`.
"""

import asyncio
import re
from dataclasses import dataclass
from secrets import token_hex
from typing import Annotated
from urllib.parse import unquote

import structlog
from fastapi import Depends, Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hascheduler.api.middleware.audit_writer import AuditWriter
from hascheduler.api.middleware.auth import ANONYMOUS, Caller
from hascheduler.api.middleware.metrics import pattern_of
from hascheduler.ports import AuditRecord


@dataclass(slots=True)
class AuditNote:
    """What a route adds to the audit record of its request. A route that changes nothing, although its method would,
    sets ``unaudited``; one whose target stands neither in its path nor in ``Location`` sets ``target``; one
    that pauses something sets ``because``."""

    unaudited: bool = False
    target: str | None = None
    because: str | None = None


async def _note(request: Request) -> AuditNote:
    note = getattr(request.state, "audit_note", None)
    if note is None:
        note = request.state.audit_note = AuditNote()
    assert isinstance(note, AuditNote)
    return note


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
_UNRECORDED = "/v1/work/"
"""What processors do is recorded in the jobs."""
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_HTTP_REFUSED = 400
_DEFECT = 500
_CUT_OFF = 503
"""Cancelled: it took too long, or the client is gone; whether it was carried out is unknown."""


class AuditMiddleware:
    """Records every change, also one that `AuthMiddleware` refuses. Every answer has the id of its request in
    ``X-Request-Id``."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(Headers(scope=scope))
        status: int | None = None
        location: str | None = None

        async def watched_send(message: Message) -> None:
            nonlocal status, location
            if message["type"] == "http.response.start":
                status = int(message["status"])
                headers = MutableHeaders(scope=message)
                location = headers.get("location")
                headers["X-Request-Id"] = request_id
            await send(message)

        try:
            await self._app(scope, receive, watched_send)
        except asyncio.CancelledError:
            status = status or _CUT_OFF
            raise
        finally:
            if _is_recorded(scope):
                _record(scope, status or _DEFECT, location, request_id)


def _is_recorded(scope: Scope) -> bool:
    path = scope["path"]
    if scope["method"] not in _METHODS or not path.startswith(_RECORDED) or path.startswith(_UNRECORDED):
        return False
    note = _note_of(scope)
    return note is None or not note.unaudited


def _record(scope: Scope, status: int, location: str | None, request_id: str) -> None:
    services = scope["app"].state.services
    writer: AuditWriter = services.audit_writer
    caller = _caller_of(scope)
    now = services.clock.mono_ms()
    if caller is None:
        services.metrics.left_out_of_audit("stranger")
        left_out = writer.budget.unidentified(now)
    elif _HTTP_REFUSED <= status < _DEFECT:
        left_out = writer.budget.refusal(caller.id or caller.name, now)
    else:
        left_out = 0
    if left_out is None:
        if caller is not None:
            services.metrics.left_out_of_audit("refusal")
        return
    client, note = scope.get("client"), _note_of(scope)
    record = AuditRecord(
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
        because=None if note is None else note.because,
    )
    log.info(
        "audit",
        who=record.who,
        token=record.token_id,
        role=record.role,
        tenant=record.tenant,
        address=record.address,
        method=record.method,
        path=record.path,
        target=record.target,
        status=record.status,
        request=record.request_id,
        **({"left_out": left_out} if left_out else {}),
        **({} if record.because is None else {"because": record.because}),
    )
    if caller is not None and not writer.add(record):
        services.metrics.left_out_of_audit("queue")


def _target(scope: Scope, location: str | None) -> str | None:
    """What the request was about: as its route says, else as its path says, else what it created."""
    note = _note_of(scope)
    if note is not None and note.target is not None:
        return _printable(note.target)
    named = scope.get("path_params") or {}
    target = named.get("id", named.get("name"))
    if target is None and location is not None:
        target = unquote(location.rsplit("/", 1)[-1])
    return None if target is None else _printable(str(target))


def _caller_of(scope: Scope) -> Caller | None:
    caller = scope.get("state", {}).get("caller")
    return caller if isinstance(caller, Caller) else None


def _note_of(scope: Scope) -> AuditNote | None:
    note = scope.get("state", {}).get("audit_note")
    return note if isinstance(note, AuditNote) else None


def _request_id(headers: Headers) -> str:
    """The caller's own id, where it is fit for a log; else a new one."""
    given = headers.get("x-request-id", "")
    return given if _REQUEST_ID.fullmatch(given) else token_hex(8)


def _printable(text: str) -> str:
    """``text`` shortened and without characters that would break a log line or a stored document."""
    shown = text if len(text) <= _PATH_LENGTH_MAX else f"{text[:_PATH_LENGTH_MAX]}…"
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in shown)
