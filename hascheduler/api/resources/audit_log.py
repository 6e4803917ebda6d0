"""``/v1/audit``: which caller changed what, or tried to. `hascheduler.api.middleware.audit` writes it."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.middleware.auth import Admin
from hascheduler.api.routing.queries import Page, PageQuery, page
from hascheduler.api.services import Services
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import AuditFilter
from hascheduler.schema.audit import AuditRecord
from hascheduler.schema.noun import read_document
from hascheduler.wire.fields import InstantMs


class AuditQuery(PageQuery):
    who: str | None = Field(default=None, max_length=256, description="Only of the token with this name, or id")
    tenant: str | None = Field(default=None, max_length=256, description="Only of tokens of this tenant")
    path: str | None = Field(
        default=None, max_length=512, description="Only of paths that begin so", examples=["/v1/schedules"]
    )
    since: InstantMs | None = Field(default=None, description="Only from this instant on")

    def filter(self, tenant: str | None) -> AuditFilter:
        since_ms = None if self.since is None else WallMs(self.since)
        return AuditFilter(who=self.who, tenant=tenant, path=self.path, since_ms=since_ms)


router = APIRouter(prefix="/audit", tags=["access"])


@router.get("", responses=problem_responses(403, 422))
async def list_audit_records(
    query: Annotated[AuditQuery, Query()], services: Services, caller: Admin
) -> Page[AuditRecord]:
    """The newest first, a page at a time. An admin of one tenant sees what that tenant's tokens did.

    A record is here some tenths of a second after its request, and stays for the retention time.
    """
    which = query.filter(caller.filter_of(query.tenant))
    documents = await services.audit.list(which, query.after, query.limit + 1)
    return page(documents, query.limit, lambda document: read_document(AuditRecord, document["_id"], document))
