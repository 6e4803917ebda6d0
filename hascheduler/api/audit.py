"""``/v1/audit``: who changed what, or was to, and was refused. Written by `hascheduler.api.audit_trail`."""

from typing import Annotated

from fastapi import APIRouter, Query

from hascheduler.api.access import Admin
from hascheduler.api.audit_schemas import AuditQuery, AuditResponse, show_audit_record
from hascheduler.api.pages import Page, page
from hascheduler.api.responses import refused
from hascheduler.api.services import Services

router = APIRouter(prefix="/audit", tags=["access"])


@router.get("", responses=refused(403, 422))
async def list_audit_records(
    query: Annotated[AuditQuery, Query()], services: Services, caller: Admin
) -> Page[AuditResponse]:
    """The newest first, a page at a time. An admin of one tenant sees what that tenant's tokens did.

    A record is here some tenths of a second after its request, and stays for the retention time.
    """
    which = query.filter(caller.filter_of(query.tenant))
    documents = await services.audit.list(which, query.after, query.limit + 1)
    return page(documents, query.limit, show_audit_record)
