"""``/v1/jobs``: list them, look at one, and why it waits.

Ids are ``job:…`` for submitted jobs and ``fire:<schedule>:<nominal time in ms>`` for those that schedules make; the
colon needs no escape in a path.
"""

from typing import Annotated

from fastapi import APIRouter, Query

from hascheduler.api.access import Viewer
from hascheduler.api.job_bodies import JobQuery
from hascheduler.api.job_schemas import JobResponse, JobSummary, show_job_summary, shown_job
from hascheduler.api.job_why import WhyResponse, show_explanation, show_unseen
from hascheduler.api.pages import Page, page
from hascheduler.api.refusals import Unreadable
from hascheduler.api.responses import refused
from hascheduler.api.services import Services
from hascheduler.api.stored_jobs import demand_seen, stored_job
from hascheduler.errors import InvalidInput

router = APIRouter(prefix="/jobs", tags=["jobs"])


@router.get("", responses=refused(422))
async def list_jobs(query: Annotated[JobQuery, Query()], services: Services, caller: Viewer) -> Page[JobSummary]:
    """Jobs by descending id, a page at a time, without payloads, results and attempts."""
    which = query.filter(caller.filter_of(query.tenant))
    documents = await services.jobs.list(which, query.after, query.limit + 1)
    unschedulable = services.view.unschedulable()
    return page(documents, query.limit, lambda document: show_job_summary(document, unschedulable))


@router.get("/{id}", responses=refused(404))
async def get_job(id: str, services: Services, caller: Viewer) -> JobResponse:
    """One job with everything about it. The id holds `:`, which needs no escape."""
    return shown_job(await stored_job(id, caller, services), services)


@router.get("/{id}/why", responses=refused(404))
async def explain_job(id: str, services: Services, caller: Viewer) -> WhyResponse:
    """Why a job waits: all that holds it back now and what would end that, or else where it stands in the queue."""
    await demand_seen(id, caller, services)
    explanation = services.view.explain(id, caller.only)
    if explanation is not None:
        return show_explanation(explanation)
    document = await stored_job(id, caller, services)
    try:
        return show_unseen(document, services.view.unready_reason)
    except InvalidInput as error:
        raise Unreadable("job", id, error) from error
