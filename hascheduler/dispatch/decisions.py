"""What the core decides. A `Decision` is an order that must pass the journal; a `Send` is a message that need not.

Every decision is idempotent: it names the attempt (or the deterministic id) it holds for, so that carrying it out
twice, late, or by another leader changes nothing the second time.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from hascheduler.errors import InvalidInput
from hascheduler.model.instants import WallMs
from hascheduler.model.job import fire_job_id


@dataclass(frozen=True, slots=True)
class Fire:
    """Insert the job of that nominal time and advance the schedule's cursor to it."""

    schedule: str
    nominal_ms: WallMs

    @property
    def job_id(self) -> str:
        return fire_job_id(self.schedule, self.nominal_ms)


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Promise the job's attempt ``attempt`` to ``processor``; the job must be pending with the attempt before it."""

    job_id: str
    attempt: int
    processor: str


@dataclass(frozen=True, slots=True)
class Requeue:
    """Revoke ``attempt``: the job becomes pending again, and its next attempt has the next number."""

    job_id: str
    attempt: int
    reason: str


@dataclass(frozen=True, slots=True)
class Fail:
    """End the job: its attempts are used up."""

    job_id: str
    attempt: int
    reason: str


Decision = Fire | Dispatch | Requeue | Fail


@dataclass(frozen=True, slots=True)
class Publish:
    """Tell ``processor`` (again) of an attempt that is already promised to it."""

    job_id: str
    attempt: int
    processor: str


@dataclass(frozen=True, slots=True)
class CancelNotice:
    """Tell ``processor`` that the running attempt is asked to stop."""

    job_id: str
    attempt: int
    processor: str


Send = Publish | CancelNotice


class Settlement(StrEnum):
    """What became of a decision that was applied."""

    DONE = "done"
    LOST = "lost"
    """The document was no longer as the decision demands: somebody else was first."""
    UNKNOWN = "unknown"
    """No answer: it may have happened. The promise stands until the stream tells."""


def encode_decisions(decisions: tuple[Decision, ...]) -> list[list[Any]]:
    """The compact form that the journal stores: one list per decision, its kind first."""
    rows: list[list[Any]] = []
    for decision in decisions:
        match decision:
            case Fire(schedule, nominal_ms):
                rows.append(["fire", schedule, nominal_ms])
            case Dispatch(job_id, attempt, processor):
                rows.append(["dispatch", job_id, attempt, processor])
            case Requeue(job_id, attempt, reason):
                rows.append(["requeue", job_id, attempt, reason])
            case Fail(job_id, attempt, reason):
                rows.append(["fail", job_id, attempt, reason])
    return rows


def decode_decisions(rows: list[list[Any]]) -> tuple[Decision, ...]:
    """The decisions of a stored entry; a kind of a newer version is an `InvalidInput`, never skipped."""
    return tuple(_decode(row) for row in rows)


def _decode(row: list[Any]) -> Decision:
    match row:
        case ["fire", schedule, nominal_ms]:
            return Fire(schedule, WallMs(nominal_ms))
        case ["dispatch", job_id, attempt, processor]:
            return Dispatch(job_id, attempt, processor)
        case ["requeue", job_id, attempt, reason]:
            return Requeue(job_id, attempt, reason)
        case ["fail", job_id, attempt, reason]:
            return Fail(job_id, attempt, reason)
        case _:
            raise InvalidInput(("decisions",), f"{str(row)[:64]!r} is unknown")
