"""Reads and shows one stored schedule on behalf of a caller.

Other tenants' schedules do not exist for the caller, and it writes only its own tenant's.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from fastapi import Response

from hascheduler.api.middleware.auth import Caller
from hascheduler.api.routing import revisions
from hascheduler.api.routing.error_handlers import UnreadableDocument
from hascheduler.api.routing.revisions import etag
from hascheduler.api.schedules.responses import ScheduleResponse, show_schedule
from hascheduler.api.services import ApiServices
from hascheduler.errors import Conflict, InvalidInput
from hascheduler.model.documents.schedule import decode_schedule
from hascheduler.model.payload import PAYLOAD_BYTES_MAX
from hascheduler.ports import ScheduleStore, StoredDocument
from hascheduler.schema.schedule import ScheduleRef
from hascheduler.triggers import next_nominal
from hascheduler.wire.schedule import CreateScheduleBody, ReplaceScheduleBody

Body = TypeVar("Body", CreateScheduleBody, ReplaceScheduleBody)


@dataclass(frozen=True, slots=True)
class TenantSchedules:
    """The schedules that the caller may see, as a store for `hascheduler.api.routing.revisions`.

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


def with_tenant(body: Body, caller: Caller) -> Body:
    """``body`` with its tenant filled in from the caller; refused if the caller may not act for that tenant."""
    path, tenant = body.said_tenant
    return body.of_tenant(caller.tenant_of(tenant, path))


async def stored_schedule(name: str, caller: Caller, services: ApiServices) -> StoredDocument:
    """`NotFound` where there is none that the caller may see."""
    return await revisions.stored("schedule", name, TenantSchedules(services.schedules, caller))


def read_schedule(document: StoredDocument) -> ScheduleRef:
    """`InvalidInput` where it can't be read, or the times of one of its triggers can't be computed."""
    schedule = decode_schedule(document["_id"], document)
    for trigger in (schedule.trigger, *(stretch.trigger for stretch in schedule.past)):
        next_nominal(trigger, schedule.cursor_ms)
    return schedule


def readable_schedule(document: StoredDocument) -> ScheduleRef:
    try:
        return read_schedule(document)
    except InvalidInput as error:
        raise UnreadableDocument("schedule", str(document["_id"]), error) from error


def too_large_to_render(name: str) -> Conflict:
    """The refusal of a schedule whose jobs can't be stored: an earlier release took it, or it was written by hand."""
    return Conflict(
        f"with its placeholders filled, the payload of schedule {name!r} has more than {PAYLOAD_BYTES_MAX} bytes;"
        " replace it first"
    )


def schedule_response(
    document: StoredDocument, response: Response, services: ApiServices, caller: Caller
) -> ScheduleResponse:
    """The answer with one schedule, as the caller sees it, and its tag."""
    try:
        shown = show_schedule(
            document, services.view.calendars(), payloads=caller.sees_payloads, now=services.clock.wall_ms()
        )
    except InvalidInput as error:
        raise UnreadableDocument("schedule", str(document["_id"]), error) from error
    response.headers["ETag"] = etag(document)
    return shown
