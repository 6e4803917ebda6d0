"""The decisions of the core. A `Decision` is an order that must pass the journal; a `Send` is a message that need not.

Every decision is idempotent: it names the attempt (or the deterministic id) it holds for, so that applying it twice,
late, or by another leader changes nothing the second time. Their stored names ("pass_over", …) never change.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from hascheduler.errors import InvalidInput
from hascheduler.model.documents.schedule import (
    decode_basis,
    decode_fire_counts,
    encode_basis,
    encode_fire_counts,
    offsets_text,
    read_offsets,
)
from hascheduler.model.job import AttemptEnd, JobState, Move, fire_job_id
from hascheduler.model.values.fields import is_integer
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import (
    NOTHING_DECIDED,
    FireCounts,
    MissedTimes,
    Verdict,
    VerdictRun,
    read_verdict,
    stored_verdict,
)
from hascheduler.schema.schedule import Basis, ZoneOffsets


@dataclass(frozen=True, slots=True)
class Fire:
    """Insert the job of that nominal time and advance the schedule's cursor to it.

    It holds only for a schedule of that ``basis`` (see `hascheduler.dispatch.schedules.planner`); ``tally`` is the
    schedule's after this, as far as its leader could see. ``keyed_by`` are the keys at which its definition has limits:
    the inserted job has its values there, whichever leader applies the fire, and when. ``after`` are the jobs that have
    to end before its own begins. It ``is_graph`` if the schedule made several jobs when it was decided: it holds only
    while that is still true. ``offsets`` are stored with the cursor. Decisions that differ only in these fields are
    equal.
    """

    schedule: str
    nominal_ms: WallMs
    basis: Basis = field(compare=False)
    tally: FireCounts = field(default=NOTHING_DECIDED, compare=False)
    keyed_by: tuple[str, ...] = field(default=(), compare=False)
    after: tuple[str, ...] = field(default=(), compare=False)
    is_graph: bool = field(default=False, compare=False)
    offsets: ZoneOffsets = field(default=(), compare=False)

    @property
    def job_id(self) -> str:
        return fire_job_id(self.schedule, self.nominal_ms)


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Promise the job's attempt ``attempt`` to ``processor``; the job must be pending with the attempt before it."""

    job_id: str
    attempt: int
    processor: str


NOT_STARTED = "not started in time"
UNREGISTERED = "its processor is not registered"
LOST_UNSTARTED = "processor lost before it started the job"
"""The reasons of a `Requeue` that holds only for an attempt that has not started."""
TIMED_OUT = "timed out"
"""The prefix of the reason of a `Requeue` or `Fail` if the attempt took too long, which is a failure.

An attempt revoked for another reason is lost.
"""


def attempt_end(reason: str) -> str:
    """Return how an attempt ends that is revoked for ``reason``."""
    return JobState.FAILED.value if reason.startswith(TIMED_OUT) else AttemptEnd.LOST.value


@dataclass(frozen=True, slots=True)
class Requeue:
    """Revoke ``attempt``: the job becomes pending again, and its next attempt has the next number."""

    job_id: str
    attempt: int
    reason: str

    @property
    def move(self) -> Move:
        """Return the transition it makes: an attempt that had not started stays where it is if it starts meanwhile."""
        return Move.RECALL if self.reason in (NOT_STARTED, UNREGISTERED, LOST_UNSTARTED) else Move.REQUEUE


@dataclass(frozen=True, slots=True)
class Fail:
    """End the job: its attempts are used up."""

    job_id: str
    attempt: int
    reason: str


@dataclass(frozen=True, slots=True)
class RecordVerdict:
    """Record the verdict on nominal times that do not fire, and advance the schedule's cursor past the last of them.

    ``basis``, ``tally`` and ``offsets`` as for `Fire`.
    """

    run: VerdictRun
    basis: Basis = field(compare=False)
    tally: FireCounts = field(default=NOTHING_DECIDED, compare=False)
    offsets: ZoneOffsets = field(default=(), compare=False)

    @property
    def schedule(self) -> str:
        return self.run.schedule

    @property
    def nominal_ms(self) -> WallMs:
        """Return the nominal time to which the cursor moves."""
        return self.run.last_ms


@dataclass(frozen=True, slots=True)
class Cancel:
    """End the job if its attempt has not started, or else ask it to stop: a later fire of its schedule replaces it."""

    job_id: str
    attempt: int
    reason: str


@dataclass(frozen=True, slots=True)
class CountFailures:
    """Record that the schedule's jobs failed ``failures`` times in a row; pause it at ``pause_at_ms`` if that is set.

    A pause demands revision ``rev``: an edit after the failures were counted overrules it. Both hold only for the
    schedule of that creation (None: 0.2.0 wrote the entry, and did not store the creation).
    """

    schedule: str
    rev: int
    failures: int
    pause_at_ms: WallMs | None = None
    created_at_ms: WallMs | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ResetCursor:
    """Move the schedule's cursor back to ``reset_at_ms``, as requested (`hascheduler.dispatch.schedules.edits`).

    It holds only for that creation of the schedule, and while that request is stored in it.
    """

    schedule: str
    reset_at_ms: WallMs
    created_at_ms: WallMs


@dataclass(frozen=True, slots=True)
class ReleaseHold:
    """Release revision ``rev`` of the hold ``key``.

    Nothing that it covers is running or promised any more, and no leader decides on it until a later revision lifts it.
    """

    key: str
    rev: int


TimeOutcome = Fire | RecordVerdict
"""What happens to nominal times; each outcome moves the cursor of its schedule."""


def throttled(outcome: TimeOutcome) -> int:
    """Return how many times it adds to the schedule's count of throttled ones, in the write that moves the cursor."""
    if isinstance(outcome, RecordVerdict) and outcome.run.verdict is Verdict.THROTTLED:
        return outcome.run.count
    return 0


def missed(outcomes: Iterable[TimeOutcome]) -> MissedTimes | None:
    """Return the missed times among those of ``outcomes``; None if there are none."""
    runs = [each.run for each in outcomes if isinstance(each, RecordVerdict) and each.run.verdict is Verdict.MISSED]
    if not runs:
        return None
    first_ms, last_ms = min(run.first_ms for run in runs), max(run.last_ms for run in runs)
    return MissedTimes(first_ms, last_ms, sum(run.count for run in runs))


JobMove = Dispatch | Requeue | Fail | Cancel
"""What happens to an existing job; each move names the attempt it holds for."""
Decision = TimeOutcome | JobMove | CountFailures | ResetCursor | ReleaseHold


@dataclass(frozen=True, slots=True)
class Publish:
    """Send ``processor`` the message (again) of an attempt that is already promised to it."""

    job_id: str
    attempt: int
    processor: str


@dataclass(frozen=True, slots=True)
class CancelNotice:
    """Send ``processor`` the request to stop the running attempt."""

    job_id: str
    attempt: int
    processor: str


Send = Publish | CancelNotice


class Settlement(StrEnum):
    """The result of applying a decision."""

    DONE = "done"
    LOST = "lost"
    """The document was no longer as the decision demands: another writer was first."""
    UNKNOWN = "unknown"
    """There was no answer: the decision may have been applied. The promise stands until the stream shows which."""
    REFUSED = "refused"
    """No database can hold the job of the `Fire`. The time has the verdict unstorable, and the cursor passes it."""


def encode_decisions(decisions: tuple[Decision, ...]) -> list[list[Any]]:
    """Return the compact form that the journal stores: one list per decision, its type first, without the resets."""
    rows: list[list[Any]] = []
    for decision in decisions:
        match decision:
            case Fire(schedule, nominal_ms, basis, tally):
                rows.append(["fire", schedule, nominal_ms, encode_basis(basis), encode_fire_counts(tally)])
            case RecordVerdict(run, basis, tally):
                verdict, because_of = stored_verdict(run)
                row = [run.schedule, verdict, run.first_ms, run.last_ms, run.count, because_of]
                rows.append(["pass_over", *row, encode_basis(basis), encode_fire_counts(tally)])
            case Dispatch(job_id, attempt, processor):
                rows.append(["dispatch", job_id, attempt, processor])
            case Requeue(job_id, attempt, reason):
                rows.append(["requeue", job_id, attempt, reason])
            case Fail(job_id, attempt, reason):
                rows.append(["fail", job_id, attempt, reason])
            case Cancel(job_id, attempt, reason):
                rows.append(["cancel", job_id, attempt, reason])
            case CountFailures(schedule, rev, failures, pause_at_ms):
                rows.append(["count_failures", schedule, rev, failures, pause_at_ms])
            case ReleaseHold(key, rev):
                rows.append(["release_hold", key, rev])
    return rows


_CARRIERS: dict[str, tuple[type, ...]] = {
    "creations": (Fire, RecordVerdict, CountFailures),
    "keyed_by": (Fire,),
    "after": (Fire,),
    "graphs": (Fire,),
    "offsets": (Fire, RecordVerdict),
}
"""The decisions that have a value in each field besides the rows: 0.2.0 reads the form of the rows exactly."""
EXTRA_FIELDS = ("creations", "keyed_by", "after", "graphs", "offsets", "resets")
"""The fields besides the rows, in the order in which `decode_decisions` takes them."""


def encode_extras(decisions: tuple[Decision, ...]) -> dict[str, list[Any]]:
    """Return the fields of `EXTRA_FIELDS` that ``decisions`` fill; empty ones are left out.

    They are the creations of schedules; for each fire the keys of limits, the jobs that it comes after, and if it makes
    a graph; for each outcome of nominal times the offsets at its cursor; and the resets.
    """
    extras: dict[str, list[Any]] = {}
    for name, carriers in _CARRIERS.items():
        values = [_carried(each, name) for each in decisions if isinstance(each, carriers)]
        if any(values) or (values and name == "creations"):
            extras[name] = values
    # Not rows, which a leader of 0.2.0 would refuse: it leaves this field to a later leader.
    resets = [
        [each.schedule, each.reset_at_ms, each.created_at_ms] for each in decisions if isinstance(each, ResetCursor)
    ]
    return extras | ({"resets": resets} if resets else {})


def decode_decisions(rows: list[list[Any]], *extras: object) -> tuple[Decision, ...]:
    """Return the decisions of a stored entry, the resets last; raise `InvalidInput` on a type of a newer version.

    ``extras`` are the fields of `encode_extras`; a field is None if it is missing, as in an entry of 0.2.0.
    """
    decisions = [_decode(row) for row in rows]
    fields = {name: values for name, values in zip(EXTRA_FIELDS, extras, strict=False) if values is not None}
    resets = _resets(fields.pop("resets", []))
    for name, values in fields.items():
        numbers = [number for number, each in enumerate(decisions) if isinstance(each, _CARRIERS[name])]
        if not isinstance(values, list) or len(values) != len(numbers):
            raise InvalidInput((name,), f"{str(values)[:64]!r}", f"one for each of {len(numbers)} decisions")
        for number, value in zip(numbers, values, strict=True):
            decisions[number] = _carrying(decisions[number], name, value)
    return (*decisions, *resets)


def _carried(decision: Any, name: str) -> Any:
    match name:
        case "creations":
            return (decision if isinstance(decision, CountFailures) else decision.basis).created_at_ms
        case "graphs":
            return decision.is_graph
        case "offsets":
            return offsets_text(decision.offsets)
        case _:
            return list(getattr(decision, name))


def _carrying(decision: Any, name: str, value: Any) -> Any:
    """Return the decision with the values that `_carried` gave."""
    match name:
        case "creations" if value is None or is_integer(value):
            created_at_ms = None if value is None else WallMs(value)
            if isinstance(decision, CountFailures):
                return replace(decision, created_at_ms=created_at_ms)
            return replace(decision, basis=replace(decision.basis, created_at_ms=created_at_ms))
        case "graphs" if isinstance(value, bool):
            return replace(decision, is_graph=value)
        case "offsets" if isinstance(value, str):
            return replace(decision, offsets=read_offsets(value))
        case "keyed_by" | "after" if isinstance(value, list) and all(isinstance(text, str) for text in value):
            return replace(decision, **{name: tuple(value)})
        case _:
            raise InvalidInput((name,), f"{str(value)[:64]!r}", "a value of a decision")


def _resets(value: object) -> list[ResetCursor]:
    resets = []
    for each in value if isinstance(value, list) else [value]:
        match each:
            case [str(schedule), int(reset_at_ms), int(created_at_ms)]:
                resets.append(ResetCursor(schedule, WallMs(reset_at_ms), WallMs(created_at_ms)))
            case _:
                raise InvalidInput(("resets",), f"{str(each)[:64]!r}", "[schedule, reset_at_ms, created_at_ms]")
    return resets


def _decode(row: list[Any]) -> Decision:
    match row:
        case ["fire", schedule, nominal_ms, basis, tally]:
            return Fire(schedule, WallMs(nominal_ms), decode_basis(basis), decode_fire_counts(tally))
        case ["pass_over", schedule, verdict, first_ms, last_ms, count, because_of, basis, tally]:
            known, because_of = read_verdict(verdict, because_of)
            run = VerdictRun(schedule, known, first_ms, last_ms, count, because_of)
            return RecordVerdict(run, decode_basis(basis), decode_fire_counts(tally))
        case ["dispatch", job_id, attempt, processor]:
            return Dispatch(job_id, attempt, processor)
        case ["requeue", job_id, attempt, reason]:
            return Requeue(job_id, attempt, reason)
        case ["fail", job_id, attempt, reason]:
            return Fail(job_id, attempt, reason)
        case ["cancel", job_id, attempt, reason]:
            return Cancel(job_id, attempt, reason)
        case ["count_failures", schedule, rev, failures, pause_at_ms]:
            return CountFailures(schedule, rev, failures, pause_at_ms)
        case ["release_hold", key, rev]:
            return ReleaseHold(key, rev)
        case _:
            raise InvalidInput(("decisions",), f"{str(row)[:64]!r} is unknown")
