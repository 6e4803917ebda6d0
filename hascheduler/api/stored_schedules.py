"""Reads one stored schedule, deletes it, shows it: what all routes of a schedule do."""

from fastapi import Response

from hascheduler.api import revisions
from hascheduler.api.access import Caller
from hascheduler.api.etags import Precondition, etag
from hascheduler.api.refusals import Unreadable
from hascheduler.api.schedule_shown import ScheduleResponse, show_schedule
from hascheduler.api.seen_schedules import SeenSchedules
from hascheduler.api.services import ApiServices
from hascheduler.errors import Conflict, InvalidInput
from hascheduler.model.documents.schedule import decode_schedule
from hascheduler.model.payload import PAYLOAD_BYTES_MAX
from hascheduler.model.schedule import ScheduleRef
from hascheduler.ports import StoredDocument
from hascheduler.triggers import next_nominal


async def stored_schedule(name: str, caller: Caller, services: ApiServices) -> StoredDocument:
    """`NotFound` where there is none that the caller may see."""
    return await revisions.stored("schedule", name, SeenSchedules(services.schedules, caller))


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
        raise Unreadable("schedule", str(document["_id"]), error) from error


def too_large_to_fill(name: str) -> Conflict:
    """The refusal of a schedule whose jobs can't be stored: an earlier release took it, or it was written by hand."""
    return Conflict(
        f"with its placeholders filled, the payload of schedule {name!r} has more than {PAYLOAD_BYTES_MAX} bytes;"
        " replace it first"
    )


async def delete_schedule(name: str, caller: Caller, services: ApiServices, precondition: Precondition) -> None:
    await revisions.delete("schedule", name, SeenSchedules(services.schedules, caller), precondition)


def show(document: StoredDocument, response: Response) -> ScheduleResponse:
    """The answer with one schedule, and its tag."""
    try:
        shown = show_schedule(document)
    except InvalidInput as error:
        raise Unreadable("schedule", str(document["_id"]), error) from error
    response.headers["ETag"] = etag(document)
    return shown
