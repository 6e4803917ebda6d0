"""``GET /v1/jobs``: list jobs, show one, explain why it waits. The jobs of other tenants do not exist for the caller.

Ids are ``job:…`` for submitted jobs and ``fire:<schedule>:<nominal time in ms>`` for those that schedules make; the
colon needs no escape in a path.
"""

from contextlib import suppress
from typing import Annotated

from fastapi import APIRouter, Query, Request

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.jobs.queries import selected
from hascheduler.api.jobs.responses import job_response, show_job_summary
from hascheduler.api.jobs.waiting import WaitForJobQuery, end_of
from hascheduler.api.jobs.why import WhyResponse, show_explanation, show_unseen
from hascheduler.api.middleware.auth import Caller, Viewer
from hascheduler.api.routing.long_poll import ClientGone
from hascheduler.api.routing.published import query_of
from hascheduler.api.routing.queries import JobId, NewestFirstQuery, Page, page_of, place_text
from hascheduler.api.routing.route_rules import UnreadableDocument
from hascheduler.api.services import ApiServices, Services
from hascheduler.errors import InvalidInput, NotFound, Overloaded, WorldError
from hascheduler.model.job import TERMINAL
from hascheduler.ports import StoredDocument
from hascheduler.schema.filters import JobFilter
from hascheduler.schema.job import JobResponse, JobSummary
from hascheduler.schema.noun import AS_REQUEST

router = APIRouter(prefix="/jobs", tags=["jobs"])


@router.get("", responses=problem_responses(422))
async def list_jobs(
    filter: Annotated[JobFilter, query_of(JobFilter)],
    query: Annotated[NewestFirstQuery, Query()],
    services: Services,
    caller: Viewer,
) -> Page[JobSummary]:
    """Jobs, the newest by submission first, a page at a time, without payloads, results and attempts.

    Where few of many jobs match, a page may hold less than `limit`, or nothing, and have a `next`: go on until that is
    null. Jobs that are submitted meanwhile shift no page.
    """
    unschedulable = services.view.unschedulable()
    found = await services.jobs.list(selected(filter, caller, services), query.position(), query.limit)
    return page_of(found.documents, place_text(found.next), lambda document: show_job_summary(document, unschedulable))


@router.get("/{id}", responses=problem_responses(404, 422))
async def get_job(
    id: JobId,
    services: Services,
    caller: Viewer,
    *,
    request: Request,
    waiting: Annotated[WaitForJobQuery, Query(), AS_REQUEST],
) -> JobResponse:
    """One job with everything about it; with `wait`, when it has ended. The id holds `:`, which needs no escape."""
    document = await stored_job(id, caller, services)
    if waiting.wait is not None and document.get("state") not in TERMINAL:
        with suppress(Overloaded, ClientGone):
            document = await end_of(id, waiting.wait, request, services) or document
    return job_response(document, services, caller)


@router.get("/{id}/why", responses=problem_responses(404))
async def explain_job(id: JobId, services: Services, caller: Viewer) -> WhyResponse:
    """Why a job waits: all that holds it back now and what would end that, or else where it stands in the queue."""
    await require_visible(id, caller, services)
    explanation = services.view.explain(id, caller.only)
    if explanation is not None:
        document = None
        with suppress(WorldError):  # what holds it back is known without the database
            document = await services.jobs.get(id)
        return show_explanation(explanation, caller, document)
    document = await stored_job(id, caller, services)
    try:
        return show_unseen(document, services.view.unready_reason)
    except InvalidInput as error:
        raise UnreadableDocument("job", id, error) from error


async def stored_job(id: str, caller: Caller, services: ApiServices) -> StoredDocument:
    """`NotFound` if there is none that the caller may see."""
    document = await services.jobs.get(id)
    if document is None or not caller.sees(document.get("tenant")):
        raise NotFound("job", id)
    return document


async def require_visible(id: str, caller: Caller, services: ApiServices) -> None:
    """`NotFound` if the caller may not see the job; for a caller who sees all tenants, nothing is read.

    A job never changes its tenant, so the answer holds for what follows.
    """
    if caller.only is not None:
        known = await services.jobs.known([id])
        if not any(caller.sees(job.tenant) for job in known):
            raise NotFound("job", id)
