"""Operations: one action on all jobs or schedules that match, with a progress that people follow and a stop.

An operation is one document that no mirror has. While it is unfinished it belongs to one *runner*, a replica, which
writes its progress after each slice by compare-and-set on (runner, rev); without a runner it waits for one. A
runner that takes it over goes on at ``position``: at most one slice is done a second time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Protocol

from hascheduler.errors import InvalidInput
from hascheduler.model.token import Power, Role
from hascheduler.model.values.fields import (
    identifier,
    instant_or_none,
    integer,
    not_negative,
    text,
    text_or_none,
    wrong,
)
from hascheduler.model.values.instants import WallMs
from hascheduler.ports.jobs import JobSelection
from hascheduler.ports.resources import ListPosition, StoredDocument

UNFINISHED_MAX = 4
"""How many unfinished operations one party may have."""
ENDED_KEPT_MAX = 500
"""How many operations of one party are kept; of more, the oldest that have ended go."""
OPERATION_KEPT_MS = 7 * 86_400_000
"""After its end."""


class OperationAction(StrEnum):
    CANCEL_JOBS = "cancel_jobs"
    RETRY_JOBS = "retry_jobs"
    REPRIORITIZE_JOBS = "reprioritize_jobs"
    PAUSE_SCHEDULES = "pause_schedules"
    RESUME_SCHEDULES = "resume_schedules"
    RESET_SCHEDULES = "reset_schedules"
    TRIGGER_SCHEDULES = "trigger_schedules"

    @property
    def is_of_jobs(self) -> bool:
        return self in _OF_JOBS

    @property
    def power(self) -> Power:
        """What the same action on one job or schedule demands."""
        return Power.SUBMIT if self in _OF_SUBMITTERS else Power.OPERATE


_OF_JOBS = frozenset({OperationAction.CANCEL_JOBS, OperationAction.RETRY_JOBS, OperationAction.REPRIORITIZE_JOBS})
_OF_SUBMITTERS = frozenset({OperationAction.CANCEL_JOBS, OperationAction.TRIGGER_SCHEDULES})


class OperationState(StrEnum):
    RUNNING = "running"
    """It runs, or waits for its turn."""
    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class BulkOperation:
    """``filter`` is as the request had it; ``role``, ``tenant``, ``by`` and ``token_id`` are of the caller, for whom it
    acts to its end. ``party`` is who shares `UNFINISHED_MAX`.

    ``matched`` were counted when it began, at least so many where not ``exact``. ``changed`` and the other counts leave
    out what a replica did in its last slice before it died.
    """

    id: str
    action: OperationAction
    filter: Mapping[str, Any]
    party: str
    role: Role
    tenant: str
    by: str
    started_at_ms: WallMs
    matched: int
    exact: bool
    token_id: str | None = None
    priority: int | None = None
    catch_up: bool = False
    reason: str | None = None
    request_hash: str | None = None
    state: OperationState = OperationState.RUNNING
    runner: str | None = None
    rev: int = 1
    position: str | None = None
    changed: int = 0
    asked_to_stop: int = 0
    refused: int = 0
    error: str | None = None
    ended_at_ms: WallMs | None = None
    stop_requested_at_ms: WallMs | None = None
    stop_requested_by: str | None = None

    def ended(self, state: OperationState, at_ms: WallMs, error: str | None = None) -> "BulkOperation":
        return replace(self, state=state, ended_at_ms=at_ms, error=error or self.error)


@dataclass(frozen=True, slots=True)
class UnfinishedOperation:
    id: str
    runner: str | None
    rev: int


PROGRESS_FIELDS = ("state", "runner", "position", "changed", "asked_to_stop", "refused", "error", "ended_at_ms")
"""What the runner writes; ``rev`` beside it."""


def encode_operation(operation: BulkOperation) -> dict[str, Any]:
    """Its stored form, without what only the store looks at."""
    return {
        "_id": operation.id,
        "action": operation.action.value,
        "filter": dict(operation.filter),
        "party": operation.party,
        "role": operation.role.value,
        "tenant": operation.tenant,
        "by": operation.by,
        "token_id": operation.token_id,
        "started_at_ms": operation.started_at_ms,
        "matched": operation.matched,
        "exact": operation.exact,
        "priority": operation.priority,
        "catch_up": operation.catch_up,
        "reason": operation.reason,
        "request_hash": operation.request_hash,
        "rev": operation.rev,
        "stop_requested_at_ms": operation.stop_requested_at_ms,
        "stop_requested_by": operation.stop_requested_by,
        **encode_progress_of(operation),
    }


def encode_progress_of(operation: BulkOperation) -> dict[str, Any]:
    values = {name: getattr(operation, name) for name in PROGRESS_FIELDS}
    return {**values, "state": operation.state.value}


def decode_operation(stored: StoredDocument) -> BulkOperation:
    """`InvalidInput` where it was broken by hand."""
    filter = stored.get("filter")
    if not isinstance(filter, Mapping):
        raise InvalidInput(("filter",), wrong(stored, "filter"), "an object")
    started_at_ms = instant_or_none(stored, "started_at_ms")
    if started_at_ms is None:
        raise InvalidInput(("started_at_ms",), "missing", "an instant")
    return BulkOperation(
        id=identifier(stored.get("_id")),
        action=OperationAction(_one_of(stored, "action", OperationAction)),
        filter=filter,
        party=text(stored, "party"),
        role=Role(_one_of(stored, "role", Role)),
        tenant=text(stored, "tenant"),
        by=text(stored, "by"),
        token_id=text_or_none(stored, "token_id"),
        started_at_ms=started_at_ms,
        matched=not_negative(stored, "matched"),
        exact=_truth(stored, "exact"),
        priority=None if stored.get("priority") is None else integer(stored, "priority"),
        catch_up=_truth(stored, "catch_up"),
        reason=text_or_none(stored, "reason"),
        request_hash=text_or_none(stored, "request_hash"),
        state=OperationState(_one_of(stored, "state", OperationState)),
        runner=text_or_none(stored, "runner"),
        rev=integer(stored, "rev"),
        position=text_or_none(stored, "position"),
        changed=not_negative(stored, "changed"),
        asked_to_stop=not_negative(stored, "asked_to_stop"),
        refused=not_negative(stored, "refused"),
        error=text_or_none(stored, "error"),
        ended_at_ms=instant_or_none(stored, "ended_at_ms"),
        stop_requested_at_ms=instant_or_none(stored, "stop_requested_at_ms"),
        stop_requested_by=text_or_none(stored, "stop_requested_by"),
    )


def unfinished_operation(stored: StoredDocument) -> UnfinishedOperation:
    """One whose revision was broken by hand is met as one that nobody can take."""
    runner, rev = stored.get("runner"), stored.get("rev")
    return UnfinishedOperation(
        str(stored["_id"]), runner if isinstance(runner, str) else None, rev if isinstance(rev, int) else -1
    )


def _one_of(stored: StoredDocument, name: str, words: type[StrEnum]) -> str:
    word = text(stored, name)
    if word not in set(words):
        raise InvalidInput((name,), wrong(stored, name), ", ".join(words))
    return word


def _truth(stored: StoredDocument, name: str) -> bool:
    value = stored.get(name)
    if not isinstance(value, bool):
        raise InvalidInput((name,), wrong(stored, name), "true or false")
    return value


class OperationStore(Protocol):
    """The newest first by id; ids begin with the instant."""

    async def create(self, operation: BulkOperation, key: str | None = None) -> StoredDocument | None:
        """Insert; or, where the party has made one under ``key``, that one. None, and nothing written, where the party
        has `UNFINISHED_MAX` unfinished ones."""
        ...

    async def get(self, id: str) -> StoredDocument | None: ...

    async def list(self, party: str | None, after: str | None, limit: int) -> Sequence[StoredDocument]:
        """The newest first, those before the id ``after``; of that party or of all."""
        ...

    async def request_stop(self, id: str, at_ms: WallMs, by: str) -> StoredDocument | None:
        """The operation as it is then; one that has ended stays as it is, and the first request counts."""
        ...

    async def unfinished(self, limit: int) -> Sequence[UnfinishedOperation]:
        """In no order; a look along an index that has unfinished ones alone."""
        ...

    async def take(self, id: str, before: str | None, rev: int, runner: str) -> StoredDocument | None:
        """Make ``runner`` its runner in the place of ``before``; None where it has changed since, or has ended."""
        ...

    async def save(self, operation: BulkOperation) -> StoredDocument | None:
        """Write the progress of its runner at its ``rev``: the document then, with a request to stop if there is one.
        None where another runner has it, or an earlier write got through. One that has ended expires
        `OPERATION_KEPT_MS` later."""
        ...

    async def give_back(self, operation: BulkOperation) -> None:
        """Leave it without a runner, unless it has changed."""
        ...


@dataclass(frozen=True, slots=True)
class MatchingSchedules:
    """All that is given must hold. ``text`` is a part of the name, in either case; ``names`` says which are meant at
    all."""

    text: str | None = None
    tenant: str | None = None
    paused: bool | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    names: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class JobSlice:
    """``places`` are the jobs, each the position after it; ``next`` is where to go on; None: this was all. A slice may
    hold few jobs, or none, and have a next one."""

    places: Sequence[ListPosition]
    next: ListPosition | None

    @property
    def ids(self) -> Sequence[str]:
        return [place.id for place in self.places if place.id is not None]


@dataclass(frozen=True, slots=True)
class ScheduleSlice:
    """As `JobSlice`; ``next`` is a name."""

    names: Sequence[str]
    next: str | None


class MatchStore(Protocol):
    """Goes through all that matches, once, in an order that no change of it disturbs; with bounded work each time."""

    async def jobs(self, which: JobSelection, after: ListPosition | None, limit: int) -> JobSlice:
        """The oldest by submission first, after that place: right after that id, or from that instant on."""
        ...

    async def schedules(self, which: MatchingSchedules, after: str | None, limit: int) -> ScheduleSlice:
        """By name."""
        ...

    async def count_schedules(self, which: MatchingSchedules, limit: int) -> int:
        """At most ``limit``."""
        ...
