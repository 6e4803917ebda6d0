"""What a route says to the audit log about a request, where the request itself does not show it."""

import asyncio
import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from secrets import token_hex
from typing import Annotated
from urllib.parse import unquote

import structlog
from fastapi import Depends, Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hascheduler.api.middleware.audit_writer import AuditBudget
from hascheduler.api.middleware.auth import ANONYMOUS, Caller
from hascheduler.api.middleware.metrics import pattern_of
from hascheduler.errors import StoreUnavailable
from hascheduler.ports import AuditRecord, AuditStore, Clock, audit_id


@dataclass(slots=True)
class AuditNote:
    """One a request. A route that changes nothing, although its method would, says ``unaudited``; one whose target
    stands neither in its path nor in ``Location`` says which it is."""

    unaudited: bool = False
    target: str | None = None


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
"""For ``dependencies=[…]`` of a route that only ever looks."""


log = structlog.get_logger(__name__)

QUEUE_MAX = 10_000
SHARE_MAX = QUEUE_MAX // 4
"""Of one party in the queue."""
GROUP_MAX = 1_000
RECORDS_MAX = 500_000
TRIM_EVERY = 1_000
"""After so many records that this process has stored, the oldest beyond the limit are deleted."""
_GROUP_EVERY_S = 0.1
_TRY_AGAIN_AFTER_S = 1.0
_LAST_WORDS_S = 3.0
_PATH_LENGTH_MAX = 512
_METHODS = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_RECORDED = "/v1/"
_UNRECORDED = "/v1/work/"
"""What processors do is recorded with each job."""
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_HTTP_REFUSED = 400
_DEFECT = 500
_CUT_OFF = 503
"""It took too long, or nobody waits for the answer any more; whether it was carried out is unknown."""


class AuditWriter:
    """Owner of the records that are not stored yet. ``run`` stores them until it is cancelled."""

    def __init__(self, store: AuditStore, clock: Clock, records_max: int = RECORDS_MAX) -> None:
        self._store = store
        self._clock = clock
        self._records_max = records_max
        self._untrimmed = 0
        self.shares = AuditBudget(SHARE_MAX)
        self._process = token_hex(4)
        self._count = 0
        self._waiting: deque[AuditRecord] = deque()
        self._arrived = asyncio.Event()
        self._dropped = 0

    @property
    def dropped(self) -> int:
        """How many records the log lines alone tell of."""
        return self._dropped

    def next_id(self) -> str:
        self._count += 1
        return audit_id(self._clock.wall_ms(), self._count, self._process)

    def add(self, record: AuditRecord) -> bool:
        """Whether it will be stored."""
        if len(self._waiting) >= QUEUE_MAX or not self.shares.wait(party_of(record)):
            self._dropped += 1
            if self._dropped.bit_count() == 1:  # the 1st, 2nd, 4th, 8th …
                full = len(self._waiting) >= QUEUE_MAX
                reason = "the queue is full" if full else f"too many of {party_of(record)} wait"
                log.warning("audit_records_dropped", dropped=self._dropped, reason=reason)
            return False
        self._waiting.append(record)
        self._arrived.set()
        return True

    async def run(self) -> None:
        try:
            while True:
                await self._arrived.wait()
                await asyncio.sleep(_GROUP_EVERY_S)
                self._arrived.clear()
                try:
                    await self.flush()
                except StoreUnavailable as error:
                    log.warning("audit_not_written", waiting=len(self._waiting), error=str(error))
                    await asyncio.sleep(_TRY_AGAIN_AFTER_S)
                    self._arrived.set()
        finally:
            await self._say_last_words()

    async def flush(self) -> None:
        """Store all that waits, and now and then delete what is beyond the limit."""
        while self._waiting:
            group: Sequence[AuditRecord] = [self._waiting[n] for n in range(min(GROUP_MAX, len(self._waiting)))]
            await self._store.append(group)
            for _ in group:
                self.shares.stored(party_of(self._waiting.popleft()))
            self._untrimmed += len(group)
        if self._untrimmed >= TRIM_EVERY:
            await self._store.trim(self._records_max)
            self._untrimmed = 0

    async def _say_last_words(self) -> None:
        try:
            async with asyncio.timeout(_LAST_WORDS_S):
                await self.flush()
        except (StoreUnavailable, TimeoutError):
            log.warning("audit_not_written", waiting=len(self._waiting), error="the process ends")


def party_of(record: AuditRecord) -> str:
    return record.token_id or record.who


class AuditMiddleware:
    """Middleware; sees every answer, also those of the door. Each has the request's id as ``X-Request-Id``."""

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
        left_out = writer.shares.stranger(now)
    elif _HTTP_REFUSED <= status < _DEFECT:
        left_out = writer.shares.refusal(caller.id or caller.name, now)
    else:
        left_out = 0
    if left_out is None:
        if caller is not None:
            services.metrics.left_out_of_audit("refusal")
        return
    client = scope.get("client")
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
    )
    if caller is not None and not writer.add(record):
        services.metrics.left_out_of_audit("queue")


def _target(scope: Scope, location: str | None) -> str | None:
    """What the request was about: as its route says, else as its path says, else what it has made."""
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
    """The caller's own, where it is one that can stand in a log."""
    given = headers.get("x-request-id", "")
    return given if _REQUEST_ID.fullmatch(given) else token_hex(8)


def _printable(text: str) -> str:
    """Short, and such that neither a log nor a database stumbles over it."""
    shown = text if len(text) <= _PATH_LENGTH_MAX else f"{text[:_PATH_LENGTH_MAX]}…"
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in shown)
