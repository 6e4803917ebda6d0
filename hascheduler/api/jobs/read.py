"""``GET /v1/jobs``: list jobs, count them, show one, explain why it waits.

The jobs of other tenants do not exist for the caller.

Ids are ``job:…`` for submitted jobs and ``fire:<schedule>:<nominal time in ms>`` for those that schedules make; the
colon needs no escape in a path.

The replica's mirror counts live jobs as they come and go: it answers if only a definition or a tenant is given.
Everything else is counted in the database, with bounded work.
"""

from collections.abc import Collection, Mapping
from contextlib import suppress
from operator import attrgetter
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.jobs.waiting import WaitForJobQuery, end_of
from hascheduler.api.jobs.why import WhyResponse, show_explanation, show_unseen
from hascheduler.api.middleware.auth import Caller, Viewer
from hascheduler.api.routing.long_poll import ClientGone
from hascheduler.api.routing.published import as_text, plain_json, query_of, texts
from hascheduler.api.routing.queries import JobId, NewestFirstQuery, Page, page, place_text
from hascheduler.api.routing.route_rules import readable
from hascheduler.api.services import ApiServices, Services
from hascheduler.errors import InvalidInput, NotFound, Overloaded, WorldError
from hascheduler.model.documents.job import decode_job
from hascheduler.model.job import LIVE, TERMINAL, JobRef, JobState, tries
from hascheduler.model.values.fields import instant_or_none, integer
from hascheduler.ports import JobCounts, JobSelection, StoredDocument
from hascheduler.schema.filters import JobAttributes, JobFilter
from hascheduler.schema.job import AttemptResponse, JobResponse, JobSummary, ProgressResponse
from hascheduler.schema.noun import AS_REQUEST, Part, made_of

COUNTED_MAX = 100_000
_DECODED = tuple(name for name in JobSummary.model_fields if name in JobRef.__match_args__)
_decoded = attrgetter(*_DECODED)
_OF_A_TIME = ("retry_at_ms", "overdue_since_ms")
"""Instants of one state, which mean nothing in others."""
_INSTANTS = tuple(name for name in JobSummary.model_fields if name.endswith("_ms") and name not in _OF_A_TIME)


def show_job(document: StoredDocument, unschedulable: Collection[str], caller: Caller) -> JobResponse:
    """Return everything about the job that the caller sees; raise `InvalidInput` if the stored document can't be read.

    ``unschedulable`` has the ids of all such jobs.
    A caller that sees no payloads gets no traceback either: it ends with the exception, which may hold part of one. The
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
    """Return the job as `show_job` does; raise `UnreadableDocument` if the stored document is unreadable."""
    with readable("job", document["_id"]):
        return show_job(document, services.view.unschedulable(), caller)


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
        **{name: as_text(document, name) for name in ("schedule", "failed_job", "on_failure_job", "error")},
        "retry_at_ms": instant_or_none(document, "retry_at_ms") if is_pending else None,
        "depends_on": tuple(str(id) for id in document.get("depends_on") or ()),
        "on_dependency_failure": "ignore" if job.ignores_failures else "fail",
        "overdue_since_ms": instant_or_none(document, "overdue_since_ms") if job.is_overdue else None,
        "progress": _progress(document.get("progress")),
    }


def _progress(stored: object) -> ProgressResponse | None:
    if not isinstance(stored, Mapping):
        return None
    percent = stored.get("percent")
    is_number = isinstance(percent, int | float) and not isinstance(percent, bool)
    shown = {
        "percent": float(percent) if is_number else None,  # type: ignore[arg-type]  # a number: checked above
        "text": str(stored.get("text", "")),
        "at_ms": integer(stored, "at_ms"),
    }
    return made_of(ProgressResponse, shown)


def _attempt(record: object, sees_payloads: bool) -> AttemptResponse:
    if not isinstance(record, Mapping) or not isinstance(record.get("number"), int):
        raise InvalidInput(("attempts",), "not a list of attempts")
    shown: dict[str, Any] = {"number": record["number"], "outcome": str(record.get("outcome"))}
    for name in ("processor", "error", "traceback"):
        shown[name] = as_text(record, name)
    for name in ("dispatched_at_ms", "started_at_ms", "finished_at_ms"):
        shown[name] = instant_or_none(record, name)
    return made_of(AttemptResponse, shown if sees_payloads else shown | {"traceback": None})


router = APIRouter(tags=["jobs"])


@router.get("/jobs", response_model=Page[JobSummary], responses=problem_responses(422))
async def list_jobs(
    filter: Annotated[JobFilter, query_of(JobFilter)],
    query: Annotated[NewestFirstQuery, Query()],
    services: Services,
    caller: Viewer,
) -> Response:
    """List jobs, newest submission first, a page at a time, without payloads, results and attempts.

    If few jobs match, a page may hold fewer than `limit`, or none, and have a `next`: go on until that is null. New
    jobs do not shift the pages.
    """
    unschedulable = services.view.unschedulable()
    found = await services.jobs.list(selected(filter, caller, services), query.position(), query.limit)
    return await page(
        found.documents,
        query.limit,
        place_text(found.next),
        lambda document: made_of(JobSummary, _summary(document, unschedulable)),
    )


@router.get("/jobs/{id}", responses=problem_responses(404, 422))
async def get_job(
    id: JobId,
    services: Services,
    caller: Viewer,
    *,
    request: Request,
    waiting: Annotated[WaitForJobQuery, Query(), AS_REQUEST],
) -> JobResponse:
    """Get a job with all its fields; with `wait`, once it has ended. The `:` in the id needs no escape."""
    document = await stored_job(id, caller, services)
    if waiting.wait is not None and document.get("state") not in TERMINAL:
        with suppress(Overloaded, ClientGone):
            document = await end_of(id, waiting.wait, request, services) or document
    return job_response(document, services, caller)


@router.get("/jobs/{id}/why", responses=problem_responses(404))
async def explain_job(id: JobId, services: Services, caller: Viewer) -> WhyResponse:
    """Explain why a job waits: what blocks it now and what would unblock it, and its position in the queue."""
    await require_visible(id, caller, services)
    explanation = services.view.explain(id, caller.only)
    if explanation is not None:
        document = None
        with suppress(WorldError):  # what blocks it is known without the database
            document = await services.jobs.get(id)
        return show_explanation(explanation, caller, document)
    document = await stored_job(id, caller, services)
    with readable("job", id):
        return show_unseen(document, services.view.unready_reason)


async def stored_job(id: str, caller: Caller, services: ApiServices) -> StoredDocument:
    """Return the stored job; raise `NotFound` if there is none that the caller may see."""
    document = await services.jobs.get(id)
    if document is None or not caller.sees(document.get("tenant")):
        raise NotFound("job", id)
    return document


async def require_visible(id: str, caller: Caller, services: ApiServices) -> None:
    """Raise `NotFound` if the caller may not see the job. For a caller who sees all tenants, nothing is read.

    A job never changes its tenant, so the result stays true.
    """
    if caller.only is not None:
        known = await services.jobs.known([id])
        if not any(caller.sees(job.tenant) for job in known):
            raise NotFound("job", id)


def selected(filter: JobAttributes, caller: Caller, services: ApiServices) -> JobSelection:
    """Return the selection of ``filter``; raise an error if it names a tenant that is not the caller's."""
    which = JobSelection.model_construct(**{**dict(filter), "tenant": caller.filter_of(filter.tenant)})
    if not which.unschedulable:
        return which
    waiting = not which.states or JobState.PENDING in which.states
    ids = services.view.unschedulable() if waiting else ()
    # These wait, so their range is read.
    return which.model_copy(update={"states": (JobState.PENDING,), "ids": ids})


class JobCountsResponse(Part):
    """How many jobs match, by state."""

    matched: int = Field(examples=[100_019])
    """How many match in all states"""
    exact: bool = Field(examples=[False])
    """False if there may be more in the states of `at_least`"""
    at_least: list[JobState] = Field(examples=[["succeeded"]])
    """The states in which there may be more, because at most 100000 jobs of a state are counted and a request reads
    a limited number of jobs"""
    pending: int = Field(default=0, examples=[12])
    """How many are waiting"""
    dispatched: int = Field(default=0, examples=[0])
    """How many are assigned to a processor"""
    running: int = Field(default=0, examples=[4])
    """How many are running"""
    succeeded: int = Field(default=0, examples=[100_000])
    """How many succeeded and are still stored"""
    failed: int = Field(default=0, examples=[3])
    """How many failed for good and are still stored: the dead letters"""
    cancelled: int = Field(default=0, examples=[0])
    """How many were cancelled and are still stored"""


@router.get("/jobs:counts", responses=problem_responses(403, 422))
async def count_jobs(
    filter: Annotated[JobFilter, query_of(JobFilter)], services: Services, caller: Viewer
) -> JobCountsResponse:
    """Count the matching jobs by state, with the filters of the list.

    The counts are exact up to 10,000 candidates in an index. Beyond that only the newest are read, and the response
    names the states in which there may be more.
    """
    which = selected(filter, caller, services)
    live = _live_counts(which, services)
    wanted = tuple(state for state in which.states or JobState if live is None or state not in LIVE)
    stored = JobCounts({})
    if wanted:
        stored = await services.jobs.counts(which.model_copy(update={"states": wanted}), COUNTED_MAX)
    by_state = {**(live or {}), **stored.by_state}
    return JobCountsResponse(
        matched=sum(by_state.values()),
        exact=not stored.at_least,
        at_least=[state for state in JobState if state in stored.at_least],
        **{state.value: count for state, count in by_state.items()},
    )


def _live_counts(which: JobSelection, services: ApiServices) -> dict[JobState, int] | None:
    """Return the counts of the requested live states; None if the mirror does not know them."""
    others = which.model_copy(update={"states": (), "definition": None, "tenant": None})
    if not services.view.ready or others != JobSelection() or None not in (which.definition, which.tenant):
        return None
    live = services.view.live_jobs(definition=which.definition, tenant=which.tenant)
    return {state: live.get(state, 0) for state in LIVE if not which.states or state in which.states}
