"""``/v1/jobs``: submit, look at, explain and cancel single jobs.

Ids are ``job:…`` for submitted jobs and ``fire:<schedule>:<nominal time in ms>`` for those that schedules make; the
colon needs no escape in a path.
"""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Response

from hascheduler.api.body import JsonRoute
from hascheduler.api.job_schemas import (
    CancelResponse,
    JobQuery,
    JobResponse,
    JobSummary,
    SubmitJobBody,
    show_job,
    show_job_summary,
)
from hascheduler.api.job_why import WhyResponse, show_explanation, show_unseen
from hascheduler.api.pages import Page, page
from hascheduler.api.refusals import Unreadable
from hascheduler.api.responses import refused
from hascheduler.api.services import ApiServices, Services
from hascheduler.errors import InvalidInput, NotFound
from hascheduler.ports import StoredDocument

router = APIRouter(prefix="/jobs", tags=["jobs"], route_class=JsonRoute)


@router.post("", status_code=HTTPStatus.CREATED, responses=refused(413, 422))
async def submit_job(body: SubmitJobBody, services: Services, response: Response) -> JobResponse:
    """Submit a job."""
    document = await services.jobs.submit(body.job(services.new_job_id(), services.clock.wall_ms()))
    response.headers["Location"] = f"/v1/jobs/{document['_id']}"
    return _shown(document, services)


@router.get("", responses=refused(422))
async def list_jobs(query: Annotated[JobQuery, Query()], services: Services) -> Page[JobSummary]:
    """Jobs by descending id, a page at a time, without payloads, results and attempts."""
    documents = await services.jobs.list(query.filter(), query.after, query.limit + 1)
    unschedulable = services.view.unschedulable()
    return page(documents, query.limit, lambda document: show_job_summary(document, unschedulable))


@router.get("/{id}", responses=refused(404))
async def get_job(id: str, services: Services) -> JobResponse:
    """One job with everything about it. The id holds `:`, which needs no escape."""
    document = await services.jobs.get(id)
    if document is None:
        raise NotFound("job", id)
    return _shown(document, services)


@router.get("/{id}/why", responses=refused(404))
async def explain_job(id: str, services: Services) -> WhyResponse:
    """Why a job waits: all that holds it back now and what would end that, or else where it stands in the queue."""
    explanation = services.view.explain(id)
    if explanation is not None:
        return show_explanation(explanation)
    document = await services.jobs.get(id)
    if document is None:
        raise NotFound("job", id)
    try:
        return show_unseen(document, services.view.unready_reason)
    except InvalidInput as error:
        raise Unreadable("job", id, error) from error


@router.post("/{id}/cancel", responses=refused(404))
async def cancel_job(id: str, services: Services) -> CancelResponse:
    """Cancel a job that waits, ask a running one to stop; repeating it is harmless."""
    answer = await services.jobs.cancel(id, services.clock.wall_ms())
    if answer is None:
        raise NotFound("job", id)
    return CancelResponse(answer=answer)


def _shown(document: StoredDocument, services: ApiServices) -> JobResponse:
    try:
        return show_job(document, services.view.unschedulable())
    except InvalidInput as error:
        raise Unreadable("job", str(document["_id"]), error) from error
