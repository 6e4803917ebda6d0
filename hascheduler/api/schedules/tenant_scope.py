"""Reads stored schedules for a caller, and makes the responses that show them.

A caller of one tenant neither sees nor changes the schedules of others.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

from fastapi import Response

from hascheduler.api.middleware.auth import Caller
from hascheduler.api.routing import revisions
from hascheduler.api.routing.published import as_text, plain_json, texts
from hascheduler.api.routing.revisions import etag
from hascheduler.api.routing.route_rules import readable
from hascheduler.api.services import ApiServices
from hascheduler.dispatch.schedules.edits import reset_command
from hascheduler.dispatch.schedules.previews import next_fire
from hascheduler.dispatch.schedules.trouble import is_late
from hascheduler.errors import Conflict
from hascheduler.model.documents.schedule import decode_schedule, unstorable_of
from hascheduler.model.payload import PAYLOAD_BYTES_MAX
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import NOTHING_DECIDED
from hascheduler.ports import ScheduleStore, StoredDocument
from hascheduler.schema.calendar import Calendar
from hascheduler.schema.forms import instant_text
from hascheduler.schema.schedule import ScheduleRef
from hascheduler.schema.schedule_bodies import (
    CountsResponse,
    CreateScheduleBody,
    GraphJobBody,
    MisfireBody,
    ReplaceScheduleBody,
    ScheduleResponse,
    TemplateBody,
    show_graph_job,
    show_template,
)
from hascheduler.schema.trigger_bodies import show_trigger
from hascheduler.triggers import MissingCalendar, next_nominal, remarks, with_calendars

NO_CALENDARS: Mapping[str, Calendar] = MappingProxyType({})
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
            # Delete exactly the checked schedule: meanwhile another tenant may have created one by that name.
            rev = document.get("rev")
        return await self.store.delete(name, rev)


def tenant_of(document: StoredDocument) -> object:
    """Return the tenant that the schedule belongs to; None if the document was broken by hand."""
    template = document.get("job")
    return template.get("tenant") if isinstance(template, Mapping) else None


def with_tenant(body: Body, caller: Caller) -> Body:
    """Return ``body`` with its tenant, by default the caller's; refuse it if the caller may not act for that tenant."""
    path, tenant = body.named_tenant
    return body.of_tenant(caller.tenant_of(tenant, path))


async def stored_schedule(name: str, caller: Caller, services: ApiServices) -> StoredDocument:
    """Return the stored schedule; raise `NotFound` if it does not exist or the caller may not see it."""
    return await revisions.stored("schedule", name, TenantSchedules(services.schedules, caller))


def read_schedule(document: StoredDocument) -> ScheduleRef:
    """Return the decoded schedule; raise `InvalidInput` if that fails, or if a trigger's times can't be computed."""
    schedule = decode_schedule(document["_id"], document)
    for trigger in (schedule.trigger, *(stretch.trigger for stretch in schedule.past)):
        next_nominal(trigger, schedule.cursor_ms)
    return schedule


def readable_schedule(document: StoredDocument) -> ScheduleRef:
    with readable("schedule", document["_id"]):
        return read_schedule(document)


def too_large_to_render(name: str) -> Conflict:
    """Return the error for a schedule whose jobs are too large to store.

    Such a schedule was accepted by an earlier release or written by hand.
    """
    return Conflict(
        f"with its placeholders filled, the payload of schedule {name!r} has more than {PAYLOAD_BYTES_MAX} bytes;"
        " replace it first"
    )


def show_schedule(
    document: StoredDocument,
    calendars: Mapping[str, Calendar] = NO_CALENDARS,
    *,
    payloads: bool = True,
    now: WallMs | None = None,
) -> ScheduleResponse:
    """Return a stored schedule as responses show it; raise an `InvalidInput` if it can't be read.

    If ``calendars`` lacks one that it uses, a warning takes the place of its next fire. If ``payloads`` is false, the
    payloads of its jobs are null.
    """
    schedule = decode_schedule(document["_id"], document)
    if not payloads:
        document = {**document, "payload": None, "payloads": None}
    warnings = list(remarks(schedule.trigger))
    try:
        fire = next_fire(with_calendars(schedule, calendars))
    except MissingCalendar as missing:
        fire = None
        warnings.append(f"it does not fire: {missing.problem}")
    is_ahead = now is not None and schedule.is_ahead(now)
    if is_ahead and schedule.reset_at_ms is not None:
        warnings.append("the leader is about to reset it")
    elif is_ahead:
        warnings.append(
            f"a clock was wrong, so its times through {instant_text(schedule.cursor_ms)} were decided too early; it "
            f"does not fire until then. Reset it: {reset_command(schedule)}"
        )
    paused, because = schedule.paused_at_ms is not None, document.get("paused_because")
    policy, jobs = schedule.policy, _jobs(schedule, document)
    return ScheduleResponse.model_construct(
        name=schedule.name,
        rev=schedule.rev,
        trigger=show_trigger(schedule.trigger),
        misfire=MisfireBody(grace_ms=policy.grace_ms, catch_up=policy.catch_up, limit=policy.catch_up_max),
        overlap=policy.overlap,
        pause_after_failures=policy.pause_after_failures,
        on_failure=as_text(document, "on_failure"),
        job=_job(schedule, document) if schedule.graph is None else jobs[schedule.graph.order[-1]],
        jobs=jobs or None,
        labels=texts(document, "labels"),
        created_at_ms=schedule.created_at_ms,
        paused=paused,
        paused_at_ms=schedule.paused_at_ms,
        paused_because=str(because) if because is not None and paused else None,
        last_nominal_at_ms=schedule.cursor_ms if schedule.tally != NOTHING_DECIDED else None,
        next_at_ms=None if fire is None else fire.nominal_ms,
        next_due_at_ms=None if fire is None else fire.due_ms,
        ahead_until_ms=schedule.cursor_ms if is_ahead else None,
        counts=CountsResponse.of(schedule.tally, unstorable_of(document)),
        failures_in_a_row=schedule.failures,
        late=now is not None and is_late(schedule, calendars, now),
        warnings=tuple(warnings),
    )


def _job(schedule: ScheduleRef, document: StoredDocument) -> TemplateBody:
    payload, render = plain_json(document.get("payload")), bool(document.get("render"))
    return show_template(schedule.template, schedule.name, payload, render=render)


def _jobs(schedule: ScheduleRef, document: StoredDocument) -> tuple[GraphJobBody, ...]:
    jobs = () if schedule.graph is None else schedule.graph.jobs
    stored = document.get("payloads")
    payloads = stored if isinstance(stored, Mapping) else {}
    return tuple(show_graph_job(job, schedule.name, plain_json(payloads.get(job.ref))) for job in jobs)


def schedule_response(
    document: StoredDocument, response: Response, services: ApiServices, caller: Caller
) -> ScheduleResponse:
    """Return one schedule as the caller may see it, and set the response's ``ETag``."""
    calendars, now = services.view.calendars(), services.clock.wall_ms()
    with readable("schedule", document["_id"]):
        shown = show_schedule(document, calendars, payloads=caller.sees_payloads, now=now)
    response.headers["ETag"] = etag(document)
    return shown
