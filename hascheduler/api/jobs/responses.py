"""Responses about jobs."""

from collections.abc import Collection, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from pydantic.config import JsonDict

from hascheduler.api.middleware.auth import Caller
from hascheduler.api.routing.route_rules import UnreadableDocument
from hascheduler.api.routing.wire_format import instant, instant_or_none, plain_json, texts
from hascheduler.api.services import ApiServices
from hascheduler.errors import InvalidInput
from hascheduler.model.documents.job import decode_job
from hascheduler.model.job import JobState, tries
from hascheduler.model.values.fields import integer
from hascheduler.ports import CancelAnswer, ReprioritizeAnswer, StoredDocument

_SUMMARY_EXAMPLE: JsonDict = {
    "id": "fire:tick:1893456009000",
    "state": "running",
    "attempt": 1,
    "tries": 1,
    "revivals": 0,
    "definition": "log",
    "target": "demo",
    "priority": 5,
    "tenant": "default",
    "fairness_key": "default",
    "lane": "default",
    "mode": "queued",
    "resources": None,
    "unschedulable": False,
    "labels": {"team": "a"},
    "schedule": "tick",
    "nominal_at": "2030-01-01T00:00:09.000Z",
    "submitted_at": "2030-01-01T00:00:09.000Z",
    "not_before": None,
    "processor": "worker-1.5f0c9a21",
    "dispatched_at": "2030-01-01T00:00:09.012Z",
    "started_at": "2030-01-01T00:00:09.020Z",
    "finished_at": None,
    "cancel_requested_at": None,
    "failures": 0,
    "losses": 0,
    "retry_at": None,
    "first_started_at": "2030-01-01T00:00:09.020Z",
    "expires_at": None,
    "depends_on": [],
    "on_dependency_failure": "fail",
    "batch": None,
    "overdue_since": None,
    "progress": {"percent": 40.0, "text": "2 of 5 pages", "at": "2030-01-01T00:00:10.000Z"},
    "error": None,
}
_EXAMPLE: JsonDict = {**_SUMMARY_EXAMPLE, "payload": {"message": "hello"}, "result": None, "attempts": []}


class ProgressResponse(BaseModel):
    percent: float | None = Field(description="Of the work, 0 to 100; null where the handler says it in words alone")
    text: str = Field(description="Where the handler is, in its own words; may be empty")
    at: str = Field(description="When the handler said so")


class JobSummary(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_SUMMARY_EXAMPLE]})

    id: str = Field(
        description="Holds ':'; may stand in a path as it is",
        examples=["job:0194f3a1b2c3000001deadbeef01", "fire:tick:1767225600000"],
    )
    state: JobState = Field(
        description="`pending`: it waits; `dispatched`: promised to a processor; `running`; or how it ended"
    )
    attempt: int = Field(
        description="Number of the newest attempt, 0 before the first; the fencing token. A revival takes a number of "
        "its own, under which nothing runs: `tries` counts attempts"
    )
    tries: int = Field(description="How many attempts there have been; `attempt` less `revivals`")
    revivals: int = Field(description="How often it was made to wait again after its end (`retry`)")
    definition: str = Field(description="The type of job: which handler runs it")
    target: str = Field(description="What it works on")
    priority: int = Field(description="0 to 10; 10 is the most urgent")
    tenant: str = Field(description="Who owns it")
    fairness_key: str = Field(description="Divides its tenant's share between those of one key and those of another")
    lane: str = Field(description="The class of work it belongs to")
    mode: str = Field(description="`on_demand`: the caller waits for the answer; else `queued`")
    resources: dict[str, int] | None = Field(description="Null: what its definition says")
    unschedulable: bool = Field(description="It waits, and no processor that lives could ever run it")
    labels: dict[str, str] = Field(description="Texts for people")
    schedule: str | None = Field(description="The schedule that made it, if one did")
    nominal_at: str | None = Field(description="The nominal time that it was made for")
    submitted_at: str = Field(description="When it was submitted, or its schedule fired")
    not_before: str | None = Field(description="It does not run before this instant; null: at once")
    processor: str | None = Field(description="Who holds the newest attempt, while dispatched or running")
    dispatched_at: str | None = Field(
        description="When the newest attempt was promised to a processor; null while it waits"
    )
    started_at: str | None = Field(description="When the handler of the newest attempt began; null before that")
    finished_at: str | None = Field(description="When it succeeded, failed or was cancelled; null before that")
    cancel_requested_at: str | None = Field(
        description="When its running attempt was asked to stop; null if it was not"
    )
    failures: int = Field(description="How many attempts have failed")
    losses: int = Field(
        description="How many attempts were lost while they ran: their processor died, was cut off or fenced itself"
    )
    retry_at: str | None = Field(description="After a failed or lost attempt: the next one comes then at the earliest")
    first_started_at: str | None = Field(description="When its first attempt began: the total timeout counts from here")
    expires_at: str | None = Field(
        description="If it has not begun by this instant, it fails instead of running; null: never"
    )
    depends_on: list[str] = Field(description="The ids of the jobs and batches that it waits, or has waited, for")
    on_dependency_failure: Literal["fail", "ignore"] = Field(
        description="When one of those fails or is cancelled: it fails too, or goes on when all ended"
    )
    batch: str | None = Field(description="The batch that it was submitted in")
    overdue_since: str | None = Field(
        default=None,
        description="When the running attempt timed out, where its thread has not ended yet: its slot and conflict "
        "groups are held until then, and only then the attempt has failed",
    )
    progress: ProgressResponse | None = Field(description="How far the newest attempt has come, as it says itself")
    error: str | None = Field(
        description="Why it failed, or was cancelled, where that is known; of single attempts: `attempts` of the job"
    )


class AttemptResponse(BaseModel):
    number: int = Field(
        description="Counted from 1; the fencing token of the attempt. A number that is missing was taken by a revival"
    )
    processor: str | None = Field(description="The id of the processor that had it")
    dispatched_at: str | None = Field(description="When it was promised to the processor")
    started_at: str | None = Field(description="When the handler began; null where it never did")
    finished_at: str | None = Field(description="When it ended")
    outcome: str = Field(
        description="`succeeded`, `failed`, `cancelled`, `given_back` (another processor shall run it), or `lost` (its "
        "processor died, was cut off or fenced itself)"
    )
    error: str | None = Field(description="What went wrong, or why it was given back")
    traceback: str | None = Field(
        default=None,
        description="Where the handler raised it: the last 16 KiB, without secrets, of the three newest attempts; null "
        "where nothing was raised, or by a release that kept none",
    )


class JobResponse(JobSummary):
    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    payload: JsonValue = Field(description="What the handler gets")
    result: JsonValue = Field(description="What the handler returned; null unless it succeeded")
    attempts: list[AttemptResponse] = Field(description="The attempts that have ended")


class ReprioritizeResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"answer": "ok"}]})

    answer: ReprioritizeAnswer = Field(description="`already_running`: it is with a processor, and stays as it is")


class CancelResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"answer": "cancelled"}]})

    answer: CancelAnswer = Field(description="`already_running`: the running attempt was asked to stop")


def show_job_summary(document: StoredDocument, unschedulable: Collection[str]) -> JobSummary:
    """`InvalidInput` when the stored document can't be read. ``unschedulable`` has the ids of all such jobs."""
    return JobSummary(**_summary(document, unschedulable))


def show_job(document: StoredDocument, unschedulable: Collection[str], caller: Caller) -> JobResponse:
    """As `show_job_summary`, with everything about it that the caller sees.

    Who sees no payloads gets no traceback either: it ends with what was raised, and that may hold part of one. The
    error is the handler's own sentence for people, and is shown.
    """
    attempts = document.get("attempts")
    sees = caller.sees_payloads
    return JobResponse(
        **_summary(document, unschedulable),
        payload=plain_json(document.get("payload")) if sees else None,
        result=plain_json(document.get("result")) if sees else None,
        attempts=[_attempt(record, sees) for record in attempts] if isinstance(attempts, list) else [],
    )


def _progress(stored: object) -> ProgressResponse | None:
    if not isinstance(stored, Mapping):
        return None
    percent = stored.get("percent")
    is_number = isinstance(percent, int | float) and not isinstance(percent, bool)
    return ProgressResponse(
        percent=float(percent) if is_number else None,  # type: ignore[arg-type]  # a number: checked above
        text=str(stored.get("text", "")),
        at=instant(stored, "at_ms"),
    )


def job_response(document: StoredDocument, services: ApiServices, caller: Caller) -> JobResponse:
    """As `show_job`; `UnreadableDocument` where the stored document is."""
    try:
        return show_job(document, services.view.unschedulable(), caller)
    except InvalidInput as error:
        raise UnreadableDocument("job", str(document["_id"]), error) from error


def _summary(document: StoredDocument, unschedulable: Collection[str]) -> dict[str, Any]:
    job = decode_job(document["_id"], document)
    revivals = integer(document, "revivals", default=0)
    return {
        "id": job.id,
        "state": job.state,
        "attempt": job.attempt,
        "tries": tries(job.attempt, revivals),
        "revivals": revivals,
        "definition": job.definition,
        "target": job.target,
        "priority": job.priority,
        "tenant": job.tenant,
        "fairness_key": job.fairness_key,
        "lane": job.lane,
        "mode": job.mode,
        "resources": None if job.resources is None else dict(job.resources),
        "unschedulable": job.state is JobState.PENDING and job.id in unschedulable,
        "labels": texts(document, "labels"),
        "schedule": _text_or_none(document, "schedule"),
        "nominal_at": instant_or_none(document, "nominal_ms"),
        "submitted_at": instant(document, "submitted_at_ms"),
        "not_before": instant_or_none(document, "not_before_ms"),
        "processor": job.processor,
        "dispatched_at": instant_or_none(document, "dispatched_at_ms"),
        "started_at": instant_or_none(document, "started_at_ms"),
        "finished_at": instant_or_none(document, "finished_at_ms"),
        "cancel_requested_at": instant_or_none(document, "cancel_requested_at_ms"),
        "failures": job.failures,
        "losses": job.losses,
        "retry_at": instant_or_none(document, "retry_at_ms") if job.state is JobState.PENDING else None,
        "first_started_at": instant_or_none(document, "first_started_at_ms"),
        "expires_at": instant_or_none(document, "expires_at_ms"),
        "depends_on": [str(id) for id in document.get("depends_on") or ()],
        "on_dependency_failure": "ignore" if job.ignores_failures else "fail",
        "batch": _text_or_none(document, "batch"),
        "overdue_since": instant_or_none(document, "overdue_since_ms") if job.is_overdue else None,
        "progress": _progress(document.get("progress")),
        "error": _text_or_none(document, "error"),
    }


def _attempt(record: object, sees_payloads: bool) -> AttemptResponse:
    if not isinstance(record, Mapping) or not isinstance(record.get("number"), int):
        raise InvalidInput(("attempts",), "not a list of attempts")
    return AttemptResponse(
        number=record["number"],
        processor=_text_or_none(record, "processor"),
        dispatched_at=instant_or_none(record, "dispatched_at_ms"),
        started_at=instant_or_none(record, "started_at_ms"),
        finished_at=instant_or_none(record, "finished_at_ms"),
        outcome=str(record.get("outcome")),
        error=_text_or_none(record, "error"),
        traceback=_text_or_none(record, "traceback") if sees_payloads else None,
    )


def _text_or_none(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    return None if value is None else str(value)
