"""Stored verdicts: one record for each run of nominal times that did not fire."""

from typing import Any

from hascheduler.errors import InvalidInput
from hascheduler.model.schema_version import WRITTEN_VERSION, require_known_version
from hascheduler.model.values.fields import Document, integer, text, text_or_none
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import Verdict, VerdictRun, read_verdict, stored_verdict


def verdict_id(schedule: str, first_ms: int) -> str:
    """Return an id; those of one schedule sort by their times, because instants have thirteen digits until 2286."""
    return f"{schedule}:{first_ms:013d}"


def verdict_document(run: VerdictRun, decided_at_ms: WallMs, created_at_ms: WallMs | None = None) -> dict[str, Any]:
    """Return the stored record.

    ``created_at_ms`` is when the schedule was created, so that the record is not shown for a later one of its name.
    """
    made = {} if created_at_ms is None else {"schedule_created_at_ms": created_at_ms}
    verdict, because_of = stored_verdict(run)
    return {
        "_id": verdict_id(run.schedule, run.first_ms),
        "v": WRITTEN_VERSION,
        "schedule": run.schedule,
        "verdict": verdict,
        "first_ms": run.first_ms,
        "last_ms": run.last_ms,
        "count": run.count,
        "because_of": because_of,
        "decided_at_ms": decided_at_ms,
        **made,
    }


def decode_verdict(fields: Document) -> VerdictRun:
    require_known_version(fields)
    verdict = fields.get("verdict")
    if not isinstance(verdict, str) or verdict not in set(Verdict):
        raise InvalidInput(("verdict",), f"{str(verdict)[:64]!r} is unknown", " or ".join(Verdict))
    known, because_of = read_verdict(verdict, text_or_none(fields, "because_of"))
    return VerdictRun(
        schedule=text(fields, "schedule"),
        verdict=known,
        first_ms=WallMs(integer(fields, "first_ms")),
        last_ms=WallMs(integer(fields, "last_ms")),
        count=integer(fields, "count"),
        because_of=because_of,
    )
