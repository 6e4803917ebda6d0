"""``GET /v1/jobs``: list jobs, show one, explain why it waits. The jobs of other tenants do not exist for the caller.

Ids are ``job:…`` for submitted jobs and ``fire:<schedule>:<nominal time in ms>`` for those that schedules make; the
colon needs no escape in a path.
"""

from typing import Annotated

from fastapi import APIRouter, Query

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.jobs.bodies import JobQuery
from hascheduler.api.jobs.responses import JobResponse, JobSummary, job_response, show_job_summary
from hascheduler.api.jobs.why import WhyResponse, show_explanation, show_unseen
from hascheduler.api.middleware.auth import Caller, Viewer
from hascheduler.api.routing.error_handlers import UnreadableDocument
from hascheduler.api.routing.queries import Page, page
from hascheduler.api.services import ApiServices, Services
from hascheduler.errors import InvalidInput, NotFound
from hascheduler.ports import StoredDocument

router = APIRouter(prefix="/jobs", tags=["jobs"])


@router.get("", responses=problem_responses(422))
async def list_jobs(query: Annotated[JobQuery, Query()], services: Services, caller: Viewer) -> Page[JobSummary]:
    """Jobs by descending id, a page at a time, without payloads, results and attempts."""
    which = query.filter(caller.filter_of(query.tenant))
    documents = await services.jobs.list(which, query.after, query.limit + 1)
    unschedulable = services.view.unschedulable()
    return page(documents, query.limit, lambda document: show_job_summary(document, unschedulable))


@router.get("/{id}", responses=problem_responses(404))
async def get_job(id: str, services: Services, caller: Viewer) -> JobResponse:
    """One job with everything about it. The id holds `:`, which needs no escape."""
    return job_response(await stored_job(id, caller, services), services)


@router.get("/{id}/why", responses=problem_responses(404))
async def explain_job(id: str, services: Services, caller: Viewer) -> WhyResponse:
    """Why a job waits: all that holds it back now and what would end that, or else where it stands in the queue."""
    await require_visible(id, caller, services)
    explanation = services.view.explain(id, caller.only)
    if explanation is not None:
        return show_explanation(explanation)
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
