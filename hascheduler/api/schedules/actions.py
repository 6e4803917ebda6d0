"""``/v1/schedules/{name}/trigger``: make the jobs of a fire now, outside the schedule's nominal times.

``/v1/schedules/{name}/pause``, ``…/resume`` and ``…/reset``: repeating any of them is harmless.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import Field, JsonValue, SkipValidation, Strict

from hascheduler.api.http.problems import Responses, problem_responses
from hascheduler.api.jobs import idempotency
from hascheduler.api.jobs.dependencies import definitions_of, with_limit_keys
from hascheduler.api.jobs.idempotency import IdempotencyKey
from hascheduler.api.jobs.read import show_job
from hascheduler.api.jobs.submit import submit_span
from hascheduler.api.middleware.audit import Noted
from hascheduler.api.middleware.auth import Caller, Submitter
from hascheduler.api.routing.queries import PAGE_SIZE_MAX, PathName
from hascheduler.api.routing.revisions import TAGGED
from hascheduler.api.routing.route_rules import JsonRoute
from hascheduler.api.schedules.edits import Edited, ScheduleChange, ScheduleEdit
from hascheduler.api.schedules.tenant_scope import (
    readable_schedule,
    stored_schedule,
    too_large_to_render,
)
from hascheduler.api.services import ApiServices, Services
from hascheduler.dispatch.schedules.edits import paused, resumed
from hascheduler.errors import Conflict, InvalidInput
from hascheduler.model.documents.fired_job import (
    JobMaker,
    Payload,
    begins_after,
    jobs_waited_for,
    require_storable_payload,
)
from hascheduler.model.documents.job_template import decode_template
from hascheduler.model.documents.schedule import encode_schedule_edit
from hascheduler.model.job import (
    OCCUPYING,
    JobState,
    NewJob,
    ScheduleId,
    is_before_last,
    last_job_id,
    trigger_job_id,
)
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import JobSelection, StoredDocument, Submission, SubmitAnswer
from hascheduler.schema.forms import Text
from hascheduler.schema.job import JobResponse
from hascheduler.schema.noun import AS_REQUEST, Part
from hascheduler.schema.schedule import Overlap, ScheduleRef
from hascheduler.schema.schedule_bodies import ScheduleResponse, require_known_placeholders
from hascheduler.telemetry.tracing import JOB_DEFINITION, JOB_ID, JOB_SCHEDULE

router = APIRouter(prefix="/schedules", tags=["schedules"], route_class=JsonRoute)

LIVE_MAX = 1_000
# In the order of a job's life: a job that moves on between two reads is found twice rather than missed.
_STATES = (JobState.PENDING, JobState.DISPATCHED, JobState.RUNNING)


class TriggerNowBody(Part):
    null_is_value = ("payload",)

    overlap: Annotated[Overlap, Strict(False)] | None = Field(default=None, examples=["skip"])
    """What to do if a job of the schedule has not ended: allow: run both; skip: 409; buffer_one: run after it, 409
    if another one waits; cancel_running: replace those that fires made. Default: the schedule's policy"""
    payload: SkipValidation[JsonValue] = Field(default=None, examples=[{"message": "now"}])
    """The payload; default: the schedule's"""


_ANSWERS: Responses = {
    200: {"model": JobResponse, "description": "It was made already under this key"},
    **problem_responses(404, 409, 413, 422, 429),
}


@router.post("/{name}/trigger", status_code=HTTPStatus.CREATED, responses=_ANSWERS, openapi_extra=idempotency.PARAMETER)
async def trigger_schedule(
    name: PathName,
    services: Services,
    caller: Submitter,
    *,
    request: Request,
    response: Response,
    body: Annotated[TriggerNowBody, AS_REQUEST] | None = None,
    key: IdempotencyKey,
    note: Noted,
) -> JobResponse:
    """Make a job of the schedule now, paused or not.

    It is not a fire: nominal times, counts and verdicts do not change. A repeated request makes another job unless it
    has the same idempotency key. A schedule of several `jobs` makes all of them, and the response is the last.
    """
    id = trigger_job_id(name, services.new_id())
    note.location = f"/v1/jobs/{id}"
    submission = await trigger(name, caller, services, body or TriggerNowBody(), id=id, key=key, request=request)
    document = submission.document
    if submission.answer is SubmitAnswer.KNOWN:
        response.status_code = HTTPStatus.OK
        response.headers.update(idempotency.REPLAYED)
    response.headers["Location"] = f"/v1/jobs/{document['_id']}"
    return show_job(document, services.view.unschedulable(), caller)


async def trigger(
    name: str,
    caller: Caller,
    services: ApiServices,
    body: TriggerNowBody,
    *,
    id: str | None = None,
    key: str | None,
    request: Request | None,
) -> Submission:
    """Make a job now, by ``id`` if one is given, or return the job made under that key before; of several, the last.

    `Conflict` if the key was used for something else, or the overlap policy forbids a job now.
    """
    stored = await stored_schedule(name, caller, services)
    schedule = readable_schedule(stored)
    overlap = body.overlap or schedule.policy.overlap
    if schedule.graph is not None and "payload" in body.model_fields_set:
        raise InvalidInput(("payload",), "not supported for a schedule of several jobs", "no payload")
    definitions = await definitions_of(schedule.definitions, services)
    id = id or trigger_job_id(name, services.new_id())
    made = _jobs(name, stored, body, overlap, id=id, now=services.clock.wall_ms())
    jobs = [with_limit_keys(job, definitions) for job in made]
    if key is not None:
        asked = {field: getattr(body, field) for field in body.model_fields_set}
        hash = idempotency.request_hash("trigger", name, asked)
        keys = _keys(key, len(jobs))
        jobs = [replace(job, idempotency_key=own, request_hash=hash) for job, own in zip(jobs, keys, strict=True)]
    job = jobs[-1]
    submission = await _known(job, services)
    if submission is None:
        submission, replaced = await _made(jobs, schedule, overlap, request, services)
    else:
        replaced = await _left_over(submission, schedule.identity, overlap, services)
    if submission.answer is SubmitAnswer.OTHER:
        raise Conflict(idempotency.other_body(key or ""))
    # Last: the replaced jobs must not be cancelled before the new one is certain to run.
    for job_id in replaced:
        await services.jobs.cancel(job_id, services.clock.wall_ms())
    return submission


async def _known(job: NewJob, services: ApiServices) -> Submission | None:
    """Return the result of an earlier request under the same key."""
    if job.idempotency_key is None:
        return None
    document = await services.jobs.of_key(job.tenant, job.idempotency_key, job.submitted_at_ms)
    if document is None:
        return None
    is_same = document.get("request_hash") == job.request_hash
    return Submission(SubmitAnswer.KNOWN if is_same else SubmitAnswer.OTHER, document)


async def _left_over(known: Submission, schedule: ScheduleId, overlap: Overlap, services: ApiServices) -> list[str]:
    """Return the replaced jobs that an earlier request may have left because it broke off in the middle."""
    if overlap is not Overlap.CANCEL_RUNNING or known.answer is SubmitAnswer.OTHER:
        return []
    before_ms = WallMs(_instant(known.document.get("submitted_at_ms")) + 1)
    return _replaced(schedule.name, overlap, list(await _live_jobs(schedule, services, before_ms)))


async def _made(
    jobs: Sequence[NewJob], schedule: ScheduleRef, overlap: Overlap, request: Request | None, services: ApiServices
) -> tuple[Submission, list[str]]:
    """Submit the jobs, and return the submission of the last one with the jobs that it replaces."""
    job = jobs[-1]
    try:
        live = {} if overlap is Overlap.ALLOW else await _live_jobs(schedule.identity, services)
        replaced = _replaced(schedule.name, overlap, list(live))
    except Conflict:
        # The live job may be one that an earlier copy of this request has made meanwhile.
        known = await _known(job, services)
        if known is None:
            raise
        return known, []
    after = jobs_waited_for(schedule, overlap, live, job.id, holds_slot=lambda known: live[known] in OCCUPYING)
    attributes = {JOB_ID: job.id, JOB_DEFINITION: job.definition, JOB_SCHEDULE: schedule.name}
    with submit_span(request, services, job.definition, **attributes) as span:
        await services.admission.admit(job.tenant, len(jobs))
        made = [replace(begins_after(after, job), trace=span.context) for job in jobs]
        submission = await _submitted(made, services)
    if submission.answer is not SubmitAnswer.NEW:
        services.admission.not_new(job.tenant, len(jobs))
    return submission, replaced


async def _submitted(jobs: Sequence[NewJob], services: ApiServices) -> Submission:
    """Submit all jobs or none, and return the submission of the last one."""
    if len(jobs) == 1:
        return await services.jobs.submit(jobs[0])
    submissions = await services.jobs.submit_all(jobs)
    return Submission(SubmitAnswer.OTHER, {}) if submissions is None else submissions[-1]


def _keys(key: str, jobs: int) -> list[str]:
    """Return a key for each job: the last has the key itself, the others get one that follows from it."""
    return [*(f"{key}#{number}" for number in range(jobs - 1)), key]


def _replaced(schedule: str, overlap: Overlap, live: Sequence[str]) -> list[str]:
    """Return the ``live`` jobs that the new one replaces.

    `Conflict`, naming the job, if the overlap policy forbids a new one.
    """
    match overlap:
        case Overlap.SKIP if live:
            raise Conflict(f"job {live[0]!r} of schedule {schedule!r} has not ended, and overlap is skip")
        case Overlap.BUFFER_ONE if len({*map(last_job_id, live)}) > 1:
            waiting = last_job_id(live[-1])
            raise Conflict(f"job {waiting!r} of schedule {schedule!r} already waits, and overlap is buffer_one")
        case Overlap.CANCEL_RUNNING:
            # The last job of a graph before the others, or it fails because one of them was cancelled.
            fired = [job_id for job_id in live if job_id.startswith("fire:")]
            return sorted(fired, key=is_before_last)
        case _:
            return []


async def _live_jobs(
    schedule: ScheduleId, services: ApiServices, before_ms: WallMs | None = None
) -> dict[str, JobState]:
    """Return the ids of the schedule's jobs that have not ended, oldest first, with their states.

    Jobs of an earlier schedule by the same name are not among them. `Conflict` if there are more than `LIVE_MAX`.
    """
    found: dict[str, tuple[int, JobState]] = {}
    for state in _STATES:
        after = None
        while True:
            page = await services.jobs.list(
                JobSelection(states=(state,), made_by=schedule, until_ms=before_ms), after, PAGE_SIZE_MAX
            )
            found |= {job["_id"]: (_instant(job.get("submitted_at_ms")), state) for job in page.documents}
            if len(found) > LIVE_MAX:
                raise Conflict(f"schedule {schedule.name!r} has more than {LIVE_MAX} jobs that have not ended")
            if page.next is None:
                break
            after = page.next
    return {job_id: found[job_id][1] for job_id in sorted(found, key=lambda job_id: (found[job_id][0], job_id))}


def _instant(value: object) -> int:
    return value if isinstance(value, int) else 0


def _jobs(
    name: str, stored: StoredDocument, body: TriggerNowBody, overlap: Overlap, *, id: str, now: WallMs
) -> list[NewJob]:
    source: dict[str, Any] = dict(stored)
    if "payload" in body.model_fields_set:
        source["payload"] = body.payload
        labels, rendered = stored.get("labels"), bool(stored.get("render"))
        target = decode_template(stored.get("job"), name).target_of(name)
        require_storable_payload(Payload(body.payload, target, rendered), name, labels, ("payload",))
        if rendered:
            require_known_placeholders(body.payload, labels if isinstance(labels, dict) else {}, ("payload",))
    jobs = JobMaker(name, source).jobs(id, now, serial=overlap is not Overlap.ALLOW)
    if not jobs:
        raise too_large_to_render(name)
    return jobs


_EDIT_ANSWERS: Responses = {200: TAGGED, **problem_responses(404, 409, 412, 422)}


class PauseBody(Part):
    because: Text | None = Field(default=None, examples=["the printer is on fire"])
    """The reason, for people; default: unchanged"""


class ResumeBody(Part):
    catch_up: bool = Field(default=False, examples=[True])
    """What happens to the nominal times since the pause: false: they get the verdict `paused`; true: the misfire
    policy decides"""


class ResetBody(Part):
    from_: Literal["now"] = Field(default="now", alias="from")
    """The instant after which nominal times fire again"""


@router.post("/{name}/pause", responses=_EDIT_ANSWERS)
async def pause_schedule(
    name: PathName, edit: Edited, note: Noted, body: Annotated[PauseBody, AS_REQUEST] | None = None
) -> ScheduleResponse:
    """Pause a schedule: nominal times after this instant do not fire until it is resumed. Its jobs go on."""
    note.because = None if body is None else body.because
    return await edit(name, pausing(note.because))


@router.post("/{name}/resume", responses=_EDIT_ANSWERS)
async def resume_schedule(
    name: PathName, edit: Edited, body: Annotated[ResumeBody, AS_REQUEST] | None = None
) -> ScheduleResponse:
    """Resume a schedule: nominal times after this instant fire again; with `catch_up`, those since the pause too."""
    return await edit(name, resuming(catch_up=body is not None and body.catch_up))


@router.post("/{name}/reset", responses=_EDIT_ANSWERS)
async def reset_schedule(
    name: PathName, edit: Edited, body: Annotated[ResetBody, AS_REQUEST] | None = None
) -> ScheduleResponse:
    """Reset a schedule that fired early because a clock was wrong (it has `ahead_until`): it fires again from now on.

    Times that already have a job do not fire again. The leader resets the schedule at once.
    """
    return await edit(name, resetting)


def pausing(because: str | None) -> ScheduleChange:
    """Return the change of a pause; ``because`` None keeps the old reason."""

    def change(stored: StoredDocument, edit: ScheduleEdit) -> Mapping[str, Any]:
        schedule = readable_schedule(stored)
        reason = {} if schedule.paused_at_ms is not None and because is None else {"paused_because": because}
        return {**encode_schedule_edit(paused(schedule, edit.now)), **reason}

    return change


def resuming(*, catch_up: bool) -> ScheduleChange:
    """Return the change of a resume."""

    def change(stored: StoredDocument, edit: ScheduleEdit) -> Mapping[str, Any]:
        schedule = readable_schedule(stored)
        if schedule.paused_at_ms is None:
            return {}
        edited = resumed(schedule, edit.now, from_now=not catch_up)
        return {**encode_schedule_edit(edited), "paused_because": None, "failures": edited.failures}

    return change


def resetting(stored: StoredDocument, edit: ScheduleEdit) -> Mapping[str, Any]:
    """Return the change of a reset, which raises `Conflict` if the schedule is paused."""
    schedule = readable_schedule(stored)
    if schedule.reset_at_ms is not None or not schedule.is_ahead(edit.now):
        return {}
    if schedule.paused_at_ms is not None:
        raise Conflict(f"schedule {schedule.name!r} is paused; resume it before the reset")
    return {"reset_at_ms": edit.now}
