"""Reads a job for somebody: what is not his to see is not there."""

from hascheduler.api.access import Caller
from hascheduler.api.services import ApiServices
from hascheduler.errors import NotFound
from hascheduler.ports import StoredDocument


async def stored_job(id: str, caller: Caller, services: ApiServices) -> StoredDocument:
    """`NotFound` where there is none that the caller may see."""
    document = await services.jobs.get(id)
    if document is None or not caller.sees(document.get("tenant")):
        raise NotFound("job", id)
    return document


async def demand_seen(id: str, caller: Caller, services: ApiServices) -> None:
    """`NotFound` where the job is another tenant's, which it stays: nothing is read for who sees everything."""
    if caller.only is not None:
        known = await services.jobs.known([id])
        if not any(caller.sees(job.tenant) for job in known):
            raise NotFound("job", id)
