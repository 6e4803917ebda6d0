"""``/v1/jobs``: submit, look at and cancel single jobs.

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
from hascheduler.api.pages import Page, page
from hascheduler.api.refusals import Unreadable
from hascheduler.api.services import Services
from hascheduler.errors import InvalidInput, NotFound
from hascheduler.ports import StoredDocument

router = APIRouter(prefix="/jobs", tags=["jobs"], route_class=JsonRoute)


@router.post("", status_code=HTTPStatus.CREATED)
async def submit_job(body: SubmitJobBody, services: Services, response: Response) -> JobResponse:
    """Submit a job."""
    document = await services.jobs.submit(body.job(services.new_job_id(), services.clock.wall_ms()))
    response.headers["Location"] = f"/v1/jobs/{document['_id']}"
    return _shown(document)


@router.get("")
async def list_jobs(query: Annotated[JobQuery, Query()], services: Services) -> Page[JobSummary]:
    """Jobs by descending id, a page at a time, without payloads, results and attempts."""
    documents = await services.jobs.list(query.filter(), query.after, query.limit + 1)
    return page(documents, query.limit, show_job_summary)


@router.get("/{id}")
async def get_job(id: str, services: Services) -> JobResponse:
    """One job with everything about it. The id holds `:`, which needs no escape."""
    document = await services.jobs.get(id)
    if document is None:
        raise NotFound("job", id)
    return _shown(document)


@router.post("/{id}/cancel")
async def cancel_job(id: str, services: Services) -> CancelResponse:
    """Cancel a job that waits, ask a running one to stop; repeating it is harmless."""
    answer = await services.jobs.cancel(id, services.clock.wall_ms())
    if answer is None:
        raise NotFound("job", id)
    return CancelResponse(answer=answer)


def _shown(document: StoredDocument) -> JobResponse:
    try:
        return show_job(document)
    except InvalidInput as error:
        raise Unreadable("job", str(document["_id"]), error) from error
