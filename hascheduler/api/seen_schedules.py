"""The schedules that one caller sees, and whose those are that he writes. All others are to him as if they were not."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from hascheduler.api.access import Caller
from hascheduler.api.schedule_schemas import CreateScheduleBody, ReplaceScheduleBody
from hascheduler.ports import ScheduleStore, StoredDocument

Body = TypeVar("Body", CreateScheduleBody, ReplaceScheduleBody)


@dataclass(frozen=True, slots=True)
class SeenSchedules:
    """What `hascheduler.api.revisions` needs of a store. A schedule belongs to the tenant of the jobs that it makes."""

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
            # The one that was looked at: by now there may be another tenant's.
            rev = document.get("rev")
        return await self.store.delete(name, rev)


def tenant_of(document: StoredDocument) -> object:
    """None of anybody's where somebody broke it by hand."""
    template = document.get("job")
    return template.get("tenant") if isinstance(template, Mapping) else None


def owned(body: Body, caller: Caller) -> Body:
    """``body`` with the tenant that it means; refused where that is none of the caller's."""
    tenant = caller.tenant_of(body.job.tenant, ("job", "tenant"))
    return body.model_copy(update={"job": body.job.model_copy(update={"tenant": tenant})})
