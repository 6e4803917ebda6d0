"""Scopes schedules to a caller: other tenants' schedules do not exist for it, and it writes only its own tenant's."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from hascheduler.api.access import Caller
from hascheduler.api.schedule_schemas import CreateScheduleBody, ReplaceScheduleBody
from hascheduler.ports import ScheduleStore, StoredDocument

Body = TypeVar("Body", CreateScheduleBody, ReplaceScheduleBody)


@dataclass(frozen=True, slots=True)
class SeenSchedules:
    """The schedules that the caller may see, as a store for `hascheduler.api.revisions`.

    A schedule belongs to the tenant of the jobs that it makes.
    """

    store: ScheduleStore
    caller: Caller

    async def get(self, name: str) -> StoredDocument | None:
        document = await self.store.get(name)
        return document if document is not None and self.caller.sees(tenant_of(document)) else None

    async def delete(self, name: str, rev: int | None = None) -> bool:
        if self.caller.only is not None:
            document = await self.get(name)
            if document is None or rev not in (None, document.get("rev")):
                return False
            # Exactly the schedule that was checked: meanwhile another tenant may have created one by that name.
            rev = document.get("rev")
        return await self.store.delete(name, rev)


def tenant_of(document: StoredDocument) -> object:
    """The tenant that the schedule belongs to; None if the document was broken by hand."""
    template = document.get("job")
    return template.get("tenant") if isinstance(template, Mapping) else None


def owned(body: Body, caller: Caller) -> Body:
    """``body`` with its tenant filled in from the caller; refused if the caller may not act for that tenant."""
    tenant = caller.tenant_of(body.job.tenant, ("job", "tenant"))
    return body.model_copy(update={"job": body.job.model_copy(update={"tenant": tenant})})
