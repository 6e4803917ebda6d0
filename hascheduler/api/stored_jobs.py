"""Reads a stored job on behalf of a caller: the jobs of other tenants do not exist for it."""

from hascheduler.api.access import Caller
from hascheduler.api.services import ApiServices
from hascheduler.errors import NotFound
from hascheduler.ports import StoredDocument


async def stored_job(id: str, caller: Caller, services: ApiServices) -> StoredDocument:
    """`NotFound` if there is none that the caller may see."""
    document = await services.jobs.get(id)
    if document is None or not caller.sees(document.get("tenant")):
        raise NotFound("job", id)
    return document


async def demand_seen(id: str, caller: Caller, services: ApiServices) -> None:
    """`NotFound` if the caller may not see the job; for a caller who sees all tenants, nothing is read.

    A job never changes its tenant, so the answer holds for what follows.
    """
    if caller.only is not None:
        known = await services.jobs.known([id])
        if not any(caller.sees(job.tenant) for job in known):
            raise NotFound("job", id)
