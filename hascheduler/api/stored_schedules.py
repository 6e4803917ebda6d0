"""Reads one stored schedule, edits it, shows it: what all routes of a schedule do."""

from collections.abc import Callable, Mapping
from typing import Any

from fastapi import Response

from hascheduler.api.etags import Precondition, etag
from hascheduler.api.refusals import Unreadable
from hascheduler.api.same_json import is_same_json
from hascheduler.api.schedule_shown import ScheduleResponse, show_schedule
from hascheduler.api.services import ApiServices
from hascheduler.errors import Conflict, InvalidInput, NotFound
from hascheduler.model.schedule import ScheduleRef
from hascheduler.model.schedule_documents import decode_schedule
from hascheduler.ports import StoredDocument
from hascheduler.triggers import next_nominal

TRIES_MAX = 5
"""How often an edit is made again because somebody else was first."""


async def stored_schedule(name: str, services: ApiServices) -> StoredDocument:
    document = await services.schedules.get(name)
    if document is None:
        raise NotFound("schedule", name)
    return document


def read_schedule(document: StoredDocument) -> ScheduleRef:
    """`InvalidInput` where it can't be read, or the times of one of its triggers can't be told."""
    schedule = decode_schedule(document["_id"], document)
    for trigger in (schedule.trigger, *(stretch.trigger for stretch in schedule.past)):
        next_nominal(trigger, schedule.cursor_ms)
    return schedule


def readable_schedule(document: StoredDocument) -> ScheduleRef:
    try:
        return read_schedule(document)
    except InvalidInput as error:
        raise Unreadable("schedule", str(document["_id"]), error) from error


async def edit_schedule(
    name: str,
    services: ApiServices,
    precondition: Precondition,
    change: Callable[[StoredDocument], Mapping[str, Any]],
) -> StoredDocument:
    """Write what ``change`` makes of the stored schedule, or makes of it anew where somebody else was first.

    What would change nothing is not written, so the revision stays. Gives the schedule as it is stored then;
    `RevisionMismatch` where another revision is demanded, `Conflict` where others are first all the time.
    """
    for _ in range(TRIES_MAX):
        stored = await stored_schedule(name, services)
        precondition.demand("schedule", name, stored)
        fields = change(stored)
        changed = {
            field: value
            for field, value in fields.items()
            if field not in stored or not is_same_json(stored[field], value)
        }
        if not changed:
            return stored
        edited = await services.schedules.edit(name, _rev(stored), changed)
        if edited is not None:
            return edited
    raise Conflict(f"schedule {name!r} is being changed by others; try again")


async def delete_schedule(name: str, services: ApiServices, precondition: Precondition) -> None:
    if precondition.tags is None:
        if not await services.schedules.delete(name):
            raise NotFound("schedule", name)
        return
    for _ in range(TRIES_MAX):
        stored = await stored_schedule(name, services)
        precondition.demand("schedule", name, stored)
        if await services.schedules.delete(name, stored.get("rev")):
            return
    raise Conflict(f"schedule {name!r} is being changed by others; try again")


def show(document: StoredDocument, response: Response) -> ScheduleResponse:
    """The answer with one schedule, and its tag."""
    try:
        shown = show_schedule(document)
    except InvalidInput as error:
        raise Unreadable("schedule", str(document["_id"]), error) from error
    response.headers["ETag"] = etag(document)
    return shown


def _rev(document: StoredDocument) -> int:
    rev = document.get("rev")
    if isinstance(rev, bool) or not isinstance(rev, int):
        # Without it there is no telling who was first.
        problem = InvalidInput(
            ("rev",), f"{str(rev)[:64]!r} is no revision", "an integer; delete it and create it anew"
        )
        raise Unreadable("schedule", str(document["_id"]), problem)
    return rev
