"""Responses about schedules and their triggers.

Fields that a request may have look the same in responses, so a client may send back what it got, and a merge patch is
merged into the `request_form`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from hascheduler.api.routing.wire_format import instant, instant_or_none, plain_json, texts
from hascheduler.dispatch.schedules.previews import next_fire
from hascheduler.dispatch.schedules.resets import reset_command
from hascheduler.model.documents.schedule import decode_schedule, unstorable_of
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import NOTHING_DECIDED, FireCounts
from hascheduler.ports import StoredDocument
from hascheduler.schema.calendar import Calendar
from hascheduler.schema.schedule import Overlap, ScheduleRef
from hascheduler.triggers import MissingCalendar, remarks, with_calendars
from hascheduler.wire.fields import Revisioned, instant_text
from hascheduler.wire.schedule import MisfireResponse, ReplaceScheduleBody, ScheduleFields
from hascheduler.wire.schedule_jobs import GraphJobResponse, TemplateResponse
from hascheduler.wire.trigger import TriggerResponse, show_trigger

NO_CALENDARS: Mapping[str, Calendar] = MappingProxyType({})
_EXAMPLE: JsonDict = {
    "name": "tick",
    "rev": 3,
    "trigger": {
        "type": "interval",
        "every": "1s",
        "anchor": "2030-01-01T00:00:00.000Z",
        "jitter": "200ms",
        "start_at": None,
        "end_at": None,
        "max_fires": None,
        "exclude": [],
        "calendars": None,
    },
    "misfire": {"grace": "1m", "catch_up": "latest", "limit": 1000},
    "overlap": "skip",
    "pause_after_failures": None,
    "job": {
        "definition": "log",
        "target": "demo",
        "payload": {"message": "hello"},
        "render": False,
        "priority": 5,
        "tenant": "default",
        "fairness_key": "default",
        "lane": "default",
        "mode": "queued",
        "resources": None,
    },
    "jobs": None,
    "labels": {"team": "a"},
    "created_at": "2030-01-01T00:00:00.000Z",
    "paused": False,
    "paused_at": None,
    "paused_because": None,
    "last_nominal_at": "2030-01-01T00:00:09.000Z",
    "next_at": "2030-01-01T00:00:10.000Z",
    "next_due_at": "2030-01-01T00:00:10.137Z",
    "ahead_until": None,
    "counts": {
        "fired": 8,
        "skipped": 1,
        "missed": 0,
        "coalesced": 0,
        "paused": 0,
        "excluded": 0,
        "throttled": 0,
        "unstorable": 0,
    },
    "failures_in_a_row": 0,
    "warnings": [],
}


class CountsResponse(BaseModel):
    """How many nominal times got which verdict, in the whole life of the schedule."""

    fired: int = Field(description="A job was made")
    skipped: int = Field(description="An earlier job was in the way")
    missed: int = Field(description="Later than the misfire grace")
    coalesced: int = Field(description="A later fire stands for them")
    paused: int = Field(description="The schedule was paused")
    excluded: int = Field(description="In an exclusion window, or on a day that calendars leave out")
    throttled: int = Field(description="Beyond a limit of the tenant")
    unstorable: int = Field(description="No database could hold the job: there is none")


class ScheduleResponse(ScheduleFields, Revisioned):
    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    trigger: TriggerResponse = Field(description="When it fires")
    misfire: MisfireResponse = Field(description="What becomes of nominal times that could not be decided in time")
    overlap: Overlap = Field(description="What becomes of a nominal time while an earlier job has not ended")  # type: ignore[assignment]  # the same texts, under their published name
    job: TemplateResponse = Field(description="The job that each fire makes; of several, the last")
    jobs: list[GraphJobResponse] | None = Field(  # type: ignore[assignment]  # as they are stored
        description="All of them, where each fire makes several; null where it makes one"
    )
    labels: dict[str, str] = Field(description="Texts for people; the jobs it makes carry them too")
    created_at: str = Field(description="When it was created; a deleted one of the same name was another")
    paused: bool = Field(description="It does not fire until it is resumed")
    paused_at: str | None = Field(description="Since when it is paused; null while it is not")
    paused_because: str | None = Field(description="The reason given, or that too many jobs in a row failed")
    last_nominal_at: str | None = Field(description="The last nominal time that was decided; null before the first")
    next_at: str | None = Field(description="The next nominal time that fires; null when none does, or it is paused")
    next_due_at: str | None = Field(description="The same with its jitter")
    ahead_until: str | None = Field(
        default=None,
        description="Its times through this instant, which is to come, were decided by a clock that was wrong: it does "
        "not fire until then, unless it is reset; null: it is not ahead",
    )
    counts: CountsResponse = Field(description="Of all its nominal times so far, by verdict")
    failures_in_a_row: int = Field(
        description="Failed jobs since the last that succeeded; counted only with `pause_after_failures`"
    )
    warnings: list[str] = Field(description="Why it does not fire, and what of its cron expression may not be meant")


def show_schedule(
    document: StoredDocument,
    calendars: Mapping[str, Calendar] = NO_CALENDARS,
    *,
    payloads: bool = True,
    now: WallMs | None = None,
) -> ScheduleResponse:
    """Where it uses a calendar that is not among ``calendars``, it says so, and not when it fires. Without ``payloads``
    those of its jobs are null.

    `InvalidInput` when the stored document can't be read."""
    schedule = decode_schedule(document["_id"], document)
    if not payloads:
        document = {**document, "payload": None, "payloads": None}
    warnings = list(remarks(schedule.trigger))
    try:
        fire = next_fire(with_calendars(schedule, calendars))
    except MissingCalendar as missing:
        fire = None
        warnings.append(f"it does not fire: {missing.problem}")
    ahead_until = instant_text(schedule.cursor_ms) if now is not None and schedule.is_ahead(now) else None
    if ahead_until is not None and schedule.reset_at_ms is not None:
        warnings.append("it is about to be reset, by the leader")
    elif ahead_until is not None:
        warnings.append(
            f"a clock was wrong: its times through {ahead_until} were decided too early, and it does not fire until"
            f" then; {reset_command(schedule)}"
        )
    because = document.get("paused_because")
    jobs, last = _jobs(schedule, document), None if schedule.graph is None else schedule.graph.last.ref
    return ScheduleResponse.model_construct(
        name=schedule.name,
        rev=schedule.rev,
        trigger=show_trigger(schedule.trigger),
        misfire=MisfireResponse.of(schedule.policy),
        overlap=schedule.policy.overlap,
        pause_after_failures=schedule.policy.pause_after_failures,
        job=_job(schedule, document) if jobs is None else next(job for job in jobs if job.ref == last),
        jobs=jobs,
        labels=texts(document, "labels"),
        created_at=instant(document, "created_at_ms"),
        paused=schedule.paused_at_ms is not None,
        paused_at=instant_or_none(document, "paused_at_ms"),
        paused_because=str(because) if because is not None and schedule.paused_at_ms is not None else None,
        last_nominal_at=instant(document, "cursor_ms") if schedule.tally != NOTHING_DECIDED else None,
        next_at=None if fire is None else instant_text(fire.nominal_ms),
        next_due_at=None if fire is None else instant_text(fire.due_ms),
        ahead_until=ahead_until,
        counts=show_counts(schedule.tally, unstorable_of(document)),
        failures_in_a_row=schedule.failures,
        warnings=warnings,
    )


def _job(schedule: ScheduleRef, document: StoredDocument) -> TemplateResponse:
    payload, render = plain_json(document.get("payload")), bool(document.get("render"))
    return TemplateResponse.of(schedule.template, schedule.name, payload, render=render)


def _jobs(schedule: ScheduleRef, document: StoredDocument) -> list[GraphJobResponse] | None:
    if schedule.graph is None:
        return None
    stored = document.get("payloads")
    payloads = stored if isinstance(stored, Mapping) else {}
    return [
        GraphJobResponse.of_graph(job, schedule.name, plain_json(payloads.get(job.ref))) for job in schedule.graph.jobs
    ]


def request_form(document: StoredDocument) -> dict[str, Any]:
    """The request body that would create this schedule; `InvalidInput` if the document can't be read."""
    form = show_schedule(document).model_dump(mode="json", by_alias=True, include=_REQUESTED)
    if form["jobs"] is not None:
        del form["job"]  # it is the last of them
    for job in form["jobs"] or [form["job"]]:
        if job["fairness_key"] == job["tenant"]:
            # The default, left out so that it follows a change of the tenant.
            del job["fairness_key"]
    return form


_REQUESTED = set(ReplaceScheduleBody.model_fields) - {"name", "paused"}


def show_counts(tally: FireCounts, unstorable: int) -> CountsResponse:
    return CountsResponse(
        fired=max(0, tally.fired - unstorable),
        unstorable=unstorable,
        skipped=tally.skipped,
        missed=tally.missed,
        coalesced=tally.coalesced,
        paused=tally.paused,
        excluded=tally.excluded,
        throttled=tally.throttled,
    )
