"""From a request to the stored fields of a schedule: of a new one, of a replacement, of a merge patch.

`edit_schedule` writes them with a compare-and-set on the revision, and computes them again after a lost race.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, TypeVar

from fastapi import Body, Depends, Response
from pydantic import JsonValue

from hascheduler.api.middleware.auth import Caller, Operator
from hascheduler.api.routing import revisions
from hascheduler.api.routing.published import plain_json
from hascheduler.api.routing.revisions import IfMatch, Precondition, is_same_json, merge_patch
from hascheduler.api.routing.route_rules import read_body, readable
from hascheduler.api.routing.warnings import require_lane
from hascheduler.api.schedules.tenant_scope import (
    TenantSchedules,
    read_schedule,
    schedule_response,
    show_schedule,
    with_tenant,
)
from hascheduler.api.services import ApiServices, Services
from hascheduler.dispatch.schedules.edits import with_trigger
from hascheduler.errors import Conflict, InvalidInput
from hascheduler.model.documents.fired_job import Payload, require_storable_payload
from hascheduler.model.documents.job_template import encode_jobs
from hascheduler.model.documents.schedule import (
    NewSchedule,
    encode_schedule_edit,
    new_schedule_document,
)
from hascheduler.model.payload import NOTHING, PAYLOAD_BYTES_MAX, require_few_placeholders
from hascheduler.model.values.fields import is_integer
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import RetryKey, StoredDocument
from hascheduler.schema.calendar import Calendar
from hascheduler.schema.noun import read_document
from hascheduler.schema.schedule_bodies import (
    CreateScheduleBody,
    ReplaceScheduleBody,
    ScheduleBody,
    ScheduleResponse,
    TemplateBody,
    require_known_placeholders,
)
from hascheduler.schema.trigger import Trigger
from hascheduler.schema.trigger_bodies import TriggerBody
from hascheduler.triggers import missing_calendar
from hascheduler.triggers.requests import spans_as_written, trigger_of

SchedulePatch = Annotated[
    dict[str, Any],
    Body(
        description="Any part of a schedule, as a JSON merge patch (RFC 7396): objects merge, null resets to the "
        "default. A trigger of another type replaces the stored one as a whole.",
        examples=[{"trigger": {"every": "5s"}, "overlap": "skip", "labels": {"team": None}}],
    ),
]


Made = TypeVar("Made")
Job = TypeVar("Job", bound=TemplateBody)


class UnseenCalendar(InvalidInput):
    """The refusal of a calendar that the stream has not delivered. ``names`` are all that the trigger uses."""

    def __init__(self, missing: InvalidInput, names: Sequence[str]) -> None:
        super().__init__(missing.path, missing.problem, missing.expected)
        self.names = names


@dataclass(frozen=True, slots=True)
class ScheduleEdit:
    """The circumstances of an edit, or of a creation. ``calendars`` are those known to exist."""

    caller: Caller
    services: ApiServices
    now: WallMs
    calendars: Mapping[str, Calendar]

    def require_lanes(self, body: ScheduleBody, stored: StoredDocument | None = None) -> None:
        """Raise `InvalidInput` if the caller may not name the lane of a job. Stored lanes may stay."""
        kept = _lanes((stored or {}).get("job"))
        for path, job in body.made:
            if job.lane not in kept:
                require_lane(job.lane, self.caller, self.services.view, (*path, "lane"))

    def trigger(self, body: TriggerBody, stored: Trigger | None) -> Trigger:
        """Return the requested trigger; raise `InvalidInput` if it is invalid, or fires too often for the caller."""
        trigger = trigger_of(body, stored, self.now)
        use = trigger.calendars
        if use is not None and (stored is None or use != stored.calendars):
            missing = missing_calendar(use, self.calendars)
            if missing is not None:
                raise UnseenCalendar(missing, use.names)
        with spans_as_written(body):
            self.services.schedule_limits.require_interval(trigger, stored, self.caller)
        return trigger

    async def made(self, make: Callable[["ScheduleEdit"], Made]) -> Made:
        """Return the result of ``make``, even if it names calendars that are stored and not in the stream yet."""
        try:
            return make(self)
        except UnseenCalendar as refused:
            found = await stored_calendars(refused.names, self.services)
            if not found:
                raise
            return make(replace(self, calendars={**self.calendars, **found}))


def edit_now(caller: Caller, services: ApiServices) -> ScheduleEdit:
    return ScheduleEdit(caller, services, services.clock.wall_ms(), services.view.calendars())


async def stored_calendars(names: Sequence[str], services: ApiServices) -> Mapping[str, Calendar]:
    """Return the calendars of those ``names`` that are stored and can be read."""
    found: dict[str, Calendar] = {}
    for name in names:
        document = await services.calendars.get(name)
        with suppress(InvalidInput):
            found |= {} if document is None else {name: read_document(Calendar, name, document)}
    return found


ScheduleChange = Callable[[StoredDocument, ScheduleEdit], Mapping[str, Any]]
"""A function that returns the changed fields of a stored schedule."""


async def edit_schedule(
    name: str,
    caller: Caller,
    services: ApiServices,
    precondition: Precondition,
    change: ScheduleChange,
) -> StoredDocument:
    """Write the fields that ``change`` returns for the stored schedule. After a lost race, run ``change`` again.

    A field that would stay the same is not written. If all would, nothing is, and the revision stays. Return the
    schedule as stored then. The refusals are those of `revisions.at_revision`.
    """

    async def write(stored: StoredDocument) -> StoredDocument | None:
        return await _edited(stored, caller, services, change)

    return await revisions.at_revision(
        "schedule", name, TenantSchedules(services.schedules, caller), precondition, write
    )


Edit = Callable[[str, ScheduleChange], Awaitable[ScheduleResponse]]


async def _edit(services: Services, caller: Operator, response: Response, precondition: IfMatch) -> Edit:
    async def edit(name: str, change: ScheduleChange) -> ScheduleResponse:
        document = await edit_schedule(name, caller, services, precondition, change)
        return schedule_response(document, response, services, caller)

    return edit


Edited = Annotated[Edit, Depends(_edit)]
"""For a route that edits one schedule: the function that does, and that returns the response, with its tag."""


async def _edited(
    stored: StoredDocument, caller: Caller, services: ApiServices, change: ScheduleChange
) -> StoredDocument | None:
    fields = await edit_now(caller, services).made(lambda edit: change(stored, edit))
    changed = {
        field: value for field, value in fields.items() if field not in stored or not is_same_json(stored[field], value)
    }
    if not changed:
        return stored
    return await services.schedules.edit(stored["_id"], revisions.revision("schedule", stored), changed)


async def create_schedule_of(
    body: CreateScheduleBody, caller: Caller, services: ApiServices, under: RetryKey | None = None
) -> StoredDocument | None:
    """Return the new schedule as stored; None if the name is taken. ``under`` is the key of the request."""
    made = await edit_now(caller, services).made(lambda edit: new_document(body, edit))
    await services.schedule_limits.require_room(made["job"]["tenant"], caller, services.view, services.schedules)
    return await services.schedules.create(made if under is None else {**made, _MADE_UNDER: asdict(under)})


_MADE_UNDER = "made_under"
"""The field with the digests of the idempotency key and of the request that made a schedule."""


async def made_before(
    name: str, under: RetryKey | None, caller: Caller, services: ApiServices
) -> StoredDocument | None:
    """Return the schedule if a request with this key has made it; raise `Conflict` if that was another request."""
    stored = None if under is None else await TenantSchedules(services.schedules, caller).get(name)
    made_under = None if stored is None else stored.get(_MADE_UNDER)
    if under is None or not isinstance(made_under, Mapping) or made_under.get("digest") != under.digest:
        return None
    if made_under.get("request_hash") != under.request_hash:
        raise Conflict("the idempotency key was used for another request; use a new key")
    return stored


async def put_schedule_of(
    name: str,
    body: ReplaceScheduleBody,
    caller: Caller,
    services: ApiServices,
    *,
    precondition: Precondition,
    change: ScheduleChange,
) -> tuple[StoredDocument, bool]:
    """Return the schedule as stored after it was created or replaced, and True if it was created.

    The refusals are those of `edit_schedule`; `Conflict` also if the name is taken by another tenant's schedule.
    """
    schedules = TenantSchedules(services.schedules, caller)
    fields = {field: getattr(body, field) for field in ScheduleBody.model_fields}

    async def attempt() -> tuple[StoredDocument, bool] | None:
        stored = await schedules.get(name)
        precondition.demand("schedule", name, stored)
        if stored is not None:
            edited = await _edited(stored, caller, services, change)
            return None if edited is None else (edited, False)
        created = await create_schedule_of(CreateScheduleBody.model_construct(name=name, **fields), caller, services)
        if created is None and await schedules.get(name) is None:
            raise name_taken(name)
        return None if created is None else (created, True)

    return await revisions.until_done("schedule", name, attempt)


def name_taken(name: str) -> Conflict:
    return Conflict(f"schedule {name!r} already exists; replace it with PUT, or delete it first")


def require_consistent(body: ReplaceScheduleBody, name: str) -> None:
    """Raise an `InvalidInput` unless the body is for the schedule ``name`` and passes `require_storable`."""
    if body.name is not None and body.name != name:
        raise InvalidInput(("name",), f"{body.name!r} is not the name in the path", f"{name!r}, or no name")
    require_storable(body, name)


def require_storable(body: ScheduleBody, name: str) -> None:
    """Raise an `InvalidInput` unless the payloads can be rendered, and the jobs of the schedule ``name`` stored."""
    size = NOTHING
    for path, job in body.made:
        at = (*path, "payload")
        payload = Payload(job.payload, job.target or name, rendered=job.render)
        size += require_storable_payload(payload, name, body.labels, at)
        if job.render:
            require_known_placeholders(job.payload, body.labels, at)
    # For a single job this was refused above.
    if size.bytes > PAYLOAD_BYTES_MAX:
        problem = f"{size.bytes} bytes of JSON in all payloads together"
        raise InvalidInput(("jobs",), problem, f"at most {PAYLOAD_BYTES_MAX} in all")
    require_few_placeholders(size.placeholders, ("jobs",))


def request_form(document: StoredDocument) -> dict[str, Any]:
    """Return the request body that would create this schedule; raise an `InvalidInput` if it can't be read."""
    form = show_schedule(document).model_dump(mode="json", by_alias=True, include=_REQUESTED)
    if form["jobs"] is not None:
        del form["job"]  # it is the last of the jobs
    for job in form["jobs"] or [form["job"]]:
        if job["fairness_key"] == job["tenant"]:
            # The default is left out, so that it follows a change of the tenant.
            del job["fairness_key"]
    return form


_REQUESTED = set(ReplaceScheduleBody.model_fields) - {"name", "paused"}


def new_document(body: CreateScheduleBody, edit: ScheduleEdit) -> dict[str, Any]:
    """Return the document of a new schedule."""
    require_storable(body, body.name)
    edit.require_lanes(body)
    return _new_document(body.name, body, edit, paused=body.paused)


def replaced_fields(
    name: str, body: ReplaceScheduleBody, stored: StoredDocument, edit: ScheduleEdit
) -> Mapping[str, Any]:
    """Return the fields of the stored schedule after a replacement, which repairs one that was broken by hand."""
    edit.require_lanes(body, stored)
    try:
        schedule = read_schedule(stored)
    except InvalidInput:
        return _repaired(name, body, stored, edit)
    trigger = edit.trigger(body.trigger, schedule.trigger)
    edited = replace(with_trigger(schedule, trigger, edit.now), policy=body.policy())
    return {
        **encode_schedule_edit(edited),
        "job": encode_jobs(body.template(), body.graph(), name),
        **_payloads(body, stored),
        "labels": body.labels,
        **({"on_failure": body.on_failure} if body.on_failure or "on_failure" in stored else {}),
    }


def with_unseen_payloads(
    name: str, body: ReplaceScheduleBody, stored: StoredDocument, caller: Caller
) -> ReplaceScheduleBody:
    """Return ``body`` with the stored payloads in the place of null if the caller sees none.

    Such a caller sends back the schedule as it was shown, and must not erase the payloads that it was not shown. Jobs
    of a graph are identified by their refs.
    """
    if caller.sees_payloads:
        return body
    if body.jobs is None:
        assert body.job is not None
        if body.job.payload is not None:
            return body
        filled = body.model_copy(update={"job": _filled(body.job, stored.get("payload"))})
    else:
        payloads = stored.get("payloads")
        known = payloads if isinstance(payloads, Mapping) else {}
        jobs = tuple(job if job.payload is not None else _filled(job, known.get(job.ref)) for job in body.jobs)
        filled = body.model_copy(update={"jobs": jobs})
    require_storable(filled, name)
    return filled


def _filled(job: Job, payload: object) -> Job:
    return job.model_copy(update={"payload": plain_json(payload)})


def patched_body(name: str, patch: Mapping[str, Any], stored: StoredDocument, caller: Caller) -> ReplaceScheduleBody:
    """Return the replacement that the merge patch amounts to, and refuse it as that replacement would be."""
    with readable("schedule", name):
        read_schedule(stored)
        form = request_form(stored)
    if patch.get("jobs") is not None and "job" not in patch:
        form.pop("job", None)  # several jobs replace the one
    body = read_body(ReplaceScheduleBody, merge_patch(_with_trigger_of_one_type(form, patch), patch))
    require_consistent(body, name)
    return with_unseen_payloads(name, body, stored, caller)


def patching(name: str, patch: Mapping[str, Any]) -> ScheduleChange:
    """Return the change of a merge patch."""

    def change(stored: StoredDocument, edit: ScheduleEdit) -> Mapping[str, Any]:
        body = with_tenant(patched_body(name, patch, stored, edit.caller), edit.caller)
        return replaced_fields(name, body, stored, edit)

    return change


def _with_trigger_of_one_type(form: dict[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``form``, without its trigger if the patch has one of another type: two types share no field."""
    trigger = patch.get("trigger")
    type = trigger.get("type") if isinstance(trigger, dict) else None
    return form if type is None or type == form["trigger"]["type"] else {**form, "trigger": {}}


def _repaired(name: str, body: ReplaceScheduleBody, stored: StoredDocument, edit: ScheduleEdit) -> Mapping[str, Any]:
    """Return all fields of a new schedule, paused if the stored one is. The write raises the revision."""
    paused = is_integer(stored.get("paused_at_ms"))
    document = _new_document(name, body, edit, paused=paused)
    return {field: value for field, value in document.items() if field not in ("_id", "rev")}


def _payloads(body: ScheduleBody, stored: StoredDocument) -> Mapping[str, Any]:
    """Return the stored fields that hold the payloads; ``payloads`` only if there are several, or were."""
    if body.jobs is None:
        assert body.job is not None
        emptied = {"payloads": None} if stored.get("payloads") is not None else {}
        return {"payload": _kept(stored.get("payload"), body.job.payload), "render": body.job.render, **emptied}
    known = stored.get("payloads")
    kept = known if isinstance(known, Mapping) else {}
    payloads = {job.ref: _kept(kept.get(job.ref), job.payload) for job in body.jobs}
    return {"payload": None, "payloads": payloads, "render": any(job.render for job in body.jobs)}


def _kept(stored: object, payload: JsonValue) -> Any:
    """Return the stored payload if it is equal: it may hold more than JSON, and another edit must not flatten it."""
    return stored if is_same_json(plain_json(stored), payload) else payload


def _lanes(job: object) -> set[object]:
    """Return the lanes of a stored schedule, as far as they can be read."""
    if not isinstance(job, Mapping):
        return set()
    jobs = job.get("jobs")
    templates = [each for each in jobs if isinstance(each, Mapping)] if isinstance(jobs, list) else [job]
    return {lane for each in templates if isinstance(lane := each.get("lane"), str)}


def _new_document(name: str, body: ScheduleBody, edit: ScheduleEdit, *, paused: bool) -> dict[str, Any]:
    new = NewSchedule(
        name=name,
        trigger=edit.trigger(body.trigger, None),
        template=body.template(),
        labels=body.labels,
        now=edit.now,
        policy=body.policy(),
        paused=paused,
        graph=body.graph(),
        on_failure=body.on_failure,
        **_payloads(body, {}),
    )
    return new_schedule_document(new)
