"""Records what each caller changed, or tried to change: at once in the log of the process, soon after in the database.

::

    request ─► record ─► log line, at once
                 │
                 └─► AuditWriter: a bounded queue ─► its task ─► the store, in groups

The log line is there even if the process dies before the next write to the database. A full queue drops records,
counts them and logs that: the audit log must never hold a request up. No party can fill it.

A request without an identity leaves no record: it is counted, and a sample of such requests is in the log of the
process. Refused requests are recorded up to a burst, and then one per interval; the caller's next record holds how many
were left out. A change is always recorded, as far as the caller's share of the queue goes. The database keeps the
newest records, as many as the settings allow; the writers delete older ones from time to time.
"""

import asyncio
import re
from collections import Counter, OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from secrets import token_hex
from typing import Annotated, Any
from urllib.parse import unquote

import structlog
from fastapi import Depends, Request
from starlette.routing import Route
from starlette.types import Scope

from hascheduler.api.middleware.auth import ANONYMOUS, EDGE, Caller
from hascheduler.errors import StoreUnavailable
from hascheduler.lifecycle import in_time
from hascheduler.model.token import sessions_of
from hascheduler.model.values.instants import MonoMs
from hascheduler.ports import AuditStore, Clock
from hascheduler.schema.audit import AuditRecord

log = structlog.get_logger(__name__)

QUEUE_MAX = 10_000
SHARE_MAX = QUEUE_MAX // 4
"""The most records of one party in the queue."""
GROUP_MAX = 1_000
RECORDS_MAX = 500_000
TRIM_EVERY = 1_000
"""After storing this many records, the process deletes the oldest ones beyond the limit."""
_GROUP_EVERY_S = 1.0
"""The longest that the first record of a group waits for others, unless there are `GROUP_MAX` before.

A write to the database costs more than a request. The line in the log of the process is written at once.
"""
_RETRY_AFTER_S = 1.0
_FINAL_FLUSH_S = 3.0
_SAMPLE_BURST, _SAMPLE_EVERY_MS = 20, 10_000
_REFUSALS_BURST, _REFUSAL_EVERY_MS = 100, 10_000
_PARTIES_MAX = 1_000


class AuditWriter:
    """Owner of the records that are not stored yet. ``run`` stores them until it is cancelled.

    ``strangers`` samples the requests without an identity that leave a line in the log, ``refusals`` the refused
    requests of a party that leave a record.
    """

    def __init__(self, store: AuditStore, clock: Clock, records_max: int = RECORDS_MAX) -> None:
        self._store = store
        self._clock = clock
        self._records_max = records_max
        self._untrimmed = 0
        self.strangers = Sampler(_SAMPLE_BURST, _SAMPLE_EVERY_MS)
        self.refusals = Samplers(_REFUSALS_BURST, _REFUSAL_EVERY_MS)
        self._waiting_of: Counter[str] = Counter()
        self._process = token_hex(4)
        self._count = 0
        self._waiting: deque[AuditRecord] = deque()
        self._arrived = asyncio.Event()
        self._is_group = asyncio.Event()
        self._dropped = 0

    @property
    def dropped(self) -> int:
        """Return how many records are in the log of the process only."""
        return self._dropped

    def next_id(self) -> str:
        self._count += 1
        # Sorts by time: instants have thirteen digits until 2286.
        return f"{self._clock.wall_ms():013d}.{self._count % 1_000_000:06d}.{self._process}"

    def add(self, record: AuditRecord) -> bool:
        """Queue ``record``, and return True if there was room."""
        party, is_full = party_of(record), len(self._waiting) >= QUEUE_MAX
        if is_full or self._waiting_of[party] >= SHARE_MAX:
            self._dropped += 1
            if self._dropped.bit_count() == 1:  # the 1st, 2nd, 4th, 8th …
                reason = "the queue is full" if is_full else f"too many of {party} wait"
                log.warning("audit_records_dropped", dropped=self._dropped, reason=reason)
            return False
        self._waiting_of[party] += 1
        self._waiting.append(record)
        self._arrived.set()
        if len(self._waiting) >= GROUP_MAX:
            self._is_group.set()
        return True

    async def run(self) -> None:
        try:
            while True:
                await self._arrived.wait()
                await in_time(self._is_group.wait(), _GROUP_EVERY_S)
                self._arrived.clear()
                self._is_group.clear()
                try:
                    await self.flush()
                except StoreUnavailable as error:
                    log.warning("audit_write_failed", waiting=len(self._waiting), error=str(error))
                    await asyncio.sleep(_RETRY_AFTER_S)
                    self._arrived.set()
        finally:
            try:
                async with asyncio.timeout(_FINAL_FLUSH_S):
                    await self.flush()
            except (StoreUnavailable, TimeoutError):
                log.warning("audit_write_failed", waiting=len(self._waiting), error="the process ends")

    async def flush(self) -> None:
        """Store all queued records, and from time to time delete those beyond the limit."""
        while self._waiting:
            group = list(islice(self._waiting, GROUP_MAX))
            await self._store.append(group)
            for _ in group:
                self._waiting_of[party_of(self._waiting.popleft())] -= 1
            self._waiting_of += Counter()  # forget parties without records
            self._untrimmed += len(group)
        if self._untrimmed >= TRIM_EVERY:
            await self._store.trim(self._records_max)
            self._untrimmed = 0


def party_of(record: AuditRecord) -> str:
    """Return the party of a caller. The sessions of one token are one: a login must not multiply its share."""
    return sessions_of(record.token_id or record.who)


@dataclass(slots=True)
class Sampler:
    """A limit that takes ``burst`` at once, then one each ``every_ms``, and counts the others."""

    burst: int
    every_ms: int
    _used: int = 0
    _since_ms: int | None = None
    _left_out: int = 0

    def take(self, now: MonoMs) -> int | None:
        """Return how many were left out before this one; None if this one is left out as well."""
        since_ms = now if self._since_ms is None else self._since_ms
        regained = (now - since_ms) // self.every_ms
        self._used = max(self._used - regained, 0)
        # A full sampler does not save up more.
        self._since_ms = since_ms + regained * self.every_ms if self._used else now
        if self._used == self.burst:
            self._left_out += 1
            return None
        self._used += 1
        left_out, self._left_out = self._left_out, 0
        return left_out


@dataclass(slots=True)
class Samplers:
    """Owner of a `Sampler` for each of the thousand most recent parties."""

    burst: int
    every_ms: int
    _of: OrderedDict[str, Sampler] = field(default_factory=OrderedDict, init=False)

    def take(self, party: str, now: MonoMs) -> int | None:
        """Return the result of the party's own `Sampler.take`."""
        sampler = self._of.pop(party, None) or Sampler(self.burst, self.every_ms)
        self._of[party] = sampler
        if len(self._of) > _PARTIES_MAX:
            self._of.popitem(last=False)
        return sampler.take(now)


@dataclass(slots=True)
class AuditNote:
    """A route's contribution to the audit record of its request.

    A route that changes nothing, although its method suggests it, sets ``unaudited``; a route whose target is neither
    in its path nor in ``Location`` sets ``target``; a route that pauses something sets ``because``. A route that
    creates something sets its ``location`` before it writes: the request may end without a response. ``pattern`` and
    ``named`` belong to the route that matched, see `tell_match`.
    """

    unaudited: bool = False
    target: str | None = None
    location: str | None = None
    because: str | None = None
    pattern: str | None = None
    named: Mapping[str, Any] = field(default_factory=dict)


async def _note(request: Request) -> AuditNote:
    return note_of(request.scope)


Noted = Annotated[AuditNote, Depends(_note)]
"""The note of a route that may be a dry run: ``note.unaudited = body.dry_run``."""


async def _changes_nothing(note: Noted) -> None:
    note.unaudited = True


CHANGES_NOTHING = Depends(_changes_nothing)
"""For ``dependencies=[…]`` of a route that only reads, although its method is POST."""


_PATH_LENGTH_MAX = 512
_METHODS = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_RECORDED = "/v1/"
SESSION_PATH = "/ui/session"
"""Logging in to the dashboard and out of it leaves a record too."""
_UNRECORDED = "/v1/work/"
"""The calls of processors are recorded in the jobs."""
PATTERN = "route_pattern"
"""The key of a scope under which a gateway puts the pattern that the path matched."""
_NOTE = "audit_note"
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_ID = "request_id"
_LOGGED = ("who", "role", "tenant", "address", "method", "path", "target", "status")
_HTTP_REFUSED = 400
DEFECT = 500
CUT_OFF = 503
"""The request was cut off by a timeout or a client that left, and may or may not have been carried out."""


def pattern_of(scope: Scope) -> str | None:
    """Return the whole pattern that the path matched, never the path: paths hold names and ids.

    The route object may hold only the part that its router adds.
    """
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
    """Prepare the routes' notes for the edge, which sees them even if the routes get a copy of its scope."""
    scope["state"].update({_NOTE: AuditNote(), _ID: request_id})


def tell_match(scope: Scope) -> None:
    """Note for the edge which route matched."""
    note = note_of(scope)
    note.pattern, note.named = pattern_of(scope), scope.get("path_params") or {}


def is_recorded(scope: Scope) -> bool:
    """Return True if the request is a change, or would have been one."""
    path = scope["path"]
    is_of_api = path == SESSION_PATH or (path.startswith(_RECORDED) and not path.startswith(_UNRECORDED))
    return scope["method"] in _METHODS and is_of_api and not note_of(scope).unaudited


def record(scope: Scope, status: int | None, location: str | None, request_id: str) -> None:
    """Record a request that `is_recorded`. ``status`` is None if it ended without a response."""
    status = DEFECT if status is None else status
    services = scope["state"][EDGE]
    writer: AuditWriter = services.audit_writer
    caller: Caller | None = scope["state"].get("caller")
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
    details = {"left_out": left_out or None, "because": entry.because}
    log.info("audit", **logged, **{name: value for name, value in details.items() if value is not None})
    if caller is not None and not writer.add(entry):
        services.metrics.left_out_of_audit("queue")


def _target(scope: Scope, location: str | None) -> str | None:
    """Return the request's target: as noted by its route, else from its path, else what it created."""
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
    """Return the id that a `Location` names: the end of its path, or of its query."""
    return unquote(re.split("[/=]", location)[-1])


def note_of(scope: Scope) -> AuditNote:
    """Return the routes' note, or a new one for a request that passes no edge."""
    note = scope.get("state", {}).get(_NOTE)
    return note if isinstance(note, AuditNote) else AuditNote()


def request_id_of(scope: Scope) -> str:
    """Return the caller's own id if it is fit for a log, else a new one."""
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            given: str = value.decode("latin-1")
            return given if _REQUEST_ID.fullmatch(given) else token_hex(8)
    return token_hex(8)


def known_request_id(scope: Scope) -> str:
    """Return the id of a request that is being answered."""
    id: str = scope.get("state", {}).get(_ID) or request_id_of(scope)
    return id


def _printable(text: str) -> str:
    """Return ``text`` shortened and without characters that would break a log line or a stored document."""
    shown = text if len(text) <= _PATH_LENGTH_MAX else f"{text[:_PATH_LENGTH_MAX]}…"
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in shown)
