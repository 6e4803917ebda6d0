"""Answers about jobs, made of what is stored."""

from collections.abc import Collection, Mapping
from operator import attrgetter
from typing import Any

from hascheduler.api.middleware.auth import Caller
from hascheduler.api.routing.route_rules import UnreadableDocument
from hascheduler.api.routing.stored_values import instant, instant_or_none, plain_json, texts
from hascheduler.api.services import ApiServices
from hascheduler.errors import InvalidInput
from hascheduler.model.documents.job import decode_job
from hascheduler.model.job import JobRef, JobState, tries
from hascheduler.model.values.fields import integer
from hascheduler.ports import StoredDocument
from hascheduler.schema.job import AttemptResponse, JobResponse, JobSummary, ProgressResponse
from hascheduler.schema.noun import made_of

_DECODED = tuple(name for name in JobSummary.model_fields if name in JobRef.__match_args__)
_decoded = attrgetter(*_DECODED)
_OF_A_TIME = ("retry_at_ms", "overdue_since_ms")
"""They mean nothing in other states."""
_INSTANTS = tuple(name for name in JobSummary.model_fields if name.endswith("_ms") and name not in _OF_A_TIME)


def show_job_summary(document: StoredDocument, unschedulable: Collection[str]) -> JobSummary:
    """Raise `InvalidInput` if the stored document can't be read. ``unschedulable`` has the ids of all such jobs."""
    return made_of(JobSummary, _summary(document, unschedulable))


def show_job(document: StoredDocument, unschedulable: Collection[str], caller: Caller) -> JobResponse:
    """As `show_job_summary`, with everything about it that the caller sees.

    Who sees no payloads gets no traceback either: it ends with what was raised, and that may hold part of one. The
    error is the handler's own sentence for people, and is shown.
    """
    attempts = document.get("attempts")
    sees = caller.sees_payloads
    shown = _summary(document, unschedulable)
    shown["payload"] = plain_json(document.get("payload")) if sees else None
    shown["result"] = plain_json(document.get("result")) if sees else None
    shown["attempts"] = tuple(_attempt(record, sees) for record in attempts) if isinstance(attempts, list) else ()
    return made_of(JobResponse, shown)


def job_response(document: StoredDocument, services: ApiServices, caller: Caller) -> JobResponse:
    """As `show_job`; raise `UnreadableDocument` if the stored document is unreadable."""
    try:
        return show_job(document, services.view.unschedulable(), caller)
    except InvalidInput as error:
        raise UnreadableDocument("job", str(document["_id"]), error) from error


def _summary(document: StoredDocument, unschedulable: Collection[str]) -> dict[str, Any]:
    job = decode_job(document["_id"], document)
    revivals = integer(document, "revivals", default=0)
    shown = dict(zip(_DECODED, _decoded(job), strict=True))
    shown |= {name: instant_or_none(document, name) for name in _INSTANTS}
    is_pending = job.state is JobState.PENDING
    return shown | {
        "tries": tries(job.attempt, revivals),
        "revivals": revivals,
        "unschedulable": is_pending and job.id in unschedulable,
        "labels": texts(document, "labels"),
        "schedule": _text_or_none(document, "schedule"),
        "retry_at_ms": instant_or_none(document, "retry_at_ms") if is_pending else None,
        "depends_on": tuple(str(id) for id in document.get("depends_on") or ()),
        "on_dependency_failure": "ignore" if job.ignores_failures else "fail",
        "overdue_since_ms": instant_or_none(document, "overdue_since_ms") if job.is_overdue else None,
        "progress": _progress(document.get("progress")),
        "error": _text_or_none(document, "error"),
    }


def _progress(stored: object) -> ProgressResponse | None:
    if not isinstance(stored, Mapping):
        return None
    percent = stored.get("percent")
    is_number = isinstance(percent, int | float) and not isinstance(percent, bool)
    shown = {
        "percent": float(percent) if is_number else None,  # type: ignore[arg-type]  # a number: checked above
        "text": str(stored.get("text", "")),
        "at_ms": instant(stored, "at_ms"),
    }
    return made_of(ProgressResponse, shown)


def _attempt(record: object, sees_payloads: bool) -> AttemptResponse:
    if not isinstance(record, Mapping) or not isinstance(record.get("number"), int):
        raise InvalidInput(("attempts",), "not a list of attempts")
    shown: dict[str, Any] = {"number": record["number"], "outcome": str(record.get("outcome"))}
    for name in ("processor", "error", "traceback"):
        shown[name] = _text_or_none(record, name)
    for name in ("dispatched_at_ms", "started_at_ms", "finished_at_ms"):
        shown[name] = instant_or_none(record, name)
    return made_of(AttemptResponse, shown if sees_payloads else shown | {"traceback": None})


def _text_or_none(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    return None if value is None else str(value)
