"""Responses about schedules and their triggers.

Fields that a request may have look the same in responses, so a client may send back what it got, and a merge patch is
merged into the `request_form`.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from pydantic.config import JsonDict

from hascheduler.api.routing.wire_format import instant, instant_or_none, instant_text, plain_json, texts
from hascheduler.api.schedules.bodies import ReplaceScheduleBody
from hascheduler.dispatch.schedules.previews import next_fire
from hascheduler.model.documents.schedule import decode_schedule, unstorable_of
from hascheduler.model.durations import format_duration
from hascheduler.model.schedule import CatchUp, Overlap, ScheduleRef
from hascheduler.model.trigger import Cron, Interval, Once, Times, Trigger
from hascheduler.model.verdict import NOTHING_DECIDED, FireCounts
from hascheduler.ports import StoredDocument


class WindowResponse(BaseModel):
    model_config = ConfigDict(validate_by_name=True)

    from_: str = Field(alias="from")
    to: str


class NarrowingResponse(BaseModel):
    jitter: str
    start_at: str | None
    end_at: str | None
    max_fires: int | None
    exclude: list[WindowResponse]


class CronResponse(NarrowingResponse):
    type: Literal["cron"] = "cron"
    expression: str
    timezone: str


class IntervalResponse(NarrowingResponse):
    type: Literal["interval"] = "interval"
    every: str
    anchor: str


class TimesResponse(NarrowingResponse):
    type: Literal["times"] = "times"
    at: list[str]


class OnceResponse(NarrowingResponse):
    type: Literal["once"] = "once"
    at: str


TriggerResponse = Annotated[CronResponse | IntervalResponse | TimesResponse | OnceResponse, Field(discriminator="type")]


def show_trigger(trigger: Trigger) -> TriggerResponse:
    narrowing: dict[str, Any] = {
        "jitter": format_duration(trigger.jitter_ms),
        "start_at": _instant_or_none(trigger.start_at_ms),
        "end_at": _instant_or_none(trigger.end_at_ms),
        "max_fires": trigger.max_fires,
        "exclude": [
            WindowResponse(from_=instant_text(window.from_ms), to=instant_text(window.to_ms))
            for window in trigger.exclude
        ],
    }
    match trigger.pattern:
        case Cron(expression, timezone):
            return CronResponse(expression=expression, timezone=timezone, **narrowing)
        case Interval(every_ms, anchor_ms):
            return IntervalResponse(every=format_duration(every_ms), anchor=instant_text(anchor_ms), **narrowing)
        case Times(at_ms):
            return TimesResponse(at=[instant_text(at) for at in at_ms], **narrowing)
        case Once(at_ms):
            return OnceResponse(at=instant_text(at_ms), **narrowing)


def _instant_or_none(at_ms: int | None) -> str | None:
    return None if at_ms is None else instant_text(at_ms)


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
    "labels": {"team": "a"},
    "created_at": "2030-01-01T00:00:00.000Z",
    "paused": False,
    "paused_at": None,
    "paused_because": None,
    "last_nominal_at": "2030-01-01T00:00:09.000Z",
    "next_at": "2030-01-01T00:00:10.000Z",
    "next_due_at": "2030-01-01T00:00:10.137Z",
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
}


class MisfireResponse(BaseModel):
    grace: str
    catch_up: CatchUp
    limit: int


class TemplateResponse(BaseModel):
    definition: str
    target: str
    payload: JsonValue
    render: bool
    priority: int
    tenant: str
    fairness_key: str
    lane: str
    mode: str
    resources: dict[str, int] | None


class CountsResponse(BaseModel):
    """How many nominal times got which verdict, in the whole life of the schedule."""

    fired: int
    skipped: int
    missed: int
    coalesced: int
    paused: int
    excluded: int
    throttled: int
    unstorable: int = Field(description="No database could hold the job: there is none")


class ScheduleResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    name: str
    rev: int = Field(description="Grows with every edit")
    trigger: TriggerResponse
    misfire: MisfireResponse
    overlap: Overlap
    pause_after_failures: int | None
    job: TemplateResponse
    labels: dict[str, str]
    created_at: str
    paused: bool
    paused_at: str | None
    paused_because: str | None
    last_nominal_at: str | None = Field(description="The last nominal time that was decided; null before the first")
    next_at: str | None = Field(description="The next nominal time that fires; null when none does, or it is paused")
    next_due_at: str | None = Field(description="The same with its jitter")
    counts: CountsResponse
    failures_in_a_row: int


def show_schedule(document: StoredDocument) -> ScheduleResponse:
    """`InvalidInput` when the stored document can't be read."""
    schedule = decode_schedule(document["_id"], document)
    policy = schedule.policy
    fire = next_fire(schedule)
    because = document.get("paused_because")
    return ScheduleResponse(
        name=schedule.name,
        rev=schedule.rev,
        trigger=show_trigger(schedule.trigger),
        misfire=MisfireResponse(
            grace=format_duration(policy.grace_ms), catch_up=policy.catch_up, limit=policy.catch_up_max
        ),
        overlap=policy.overlap,
        pause_after_failures=policy.pause_after_failures,
        job=_show_template(schedule, document),
        labels=texts(document, "labels"),
        created_at=instant(document, "created_at_ms"),
        paused=schedule.paused_at_ms is not None,
        paused_at=instant_or_none(document, "paused_at_ms"),
        paused_because=str(because) if because is not None and schedule.paused_at_ms is not None else None,
        last_nominal_at=instant(document, "cursor_ms") if schedule.tally != NOTHING_DECIDED else None,
        next_at=None if fire is None else instant_text(fire.nominal_ms),
        next_due_at=None if fire is None else instant_text(fire.due_ms),
        counts=show_counts(schedule.tally, unstorable_of(document)),
        failures_in_a_row=schedule.failures,
    )


def request_form(document: StoredDocument) -> dict[str, Any]:
    """The request body that would create this schedule; `InvalidInput` if the document can't be read."""
    form = show_schedule(document).model_dump(mode="json", by_alias=True, include=_REQUESTED)
    if form["job"]["fairness_key"] == form["job"]["tenant"]:
        # The default, left out so that it follows a change of the tenant.
        del form["job"]["fairness_key"]
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


def _show_template(schedule: ScheduleRef, document: StoredDocument) -> TemplateResponse:
    template = schedule.template
    return TemplateResponse(
        definition=template.definition,
        target=template.target_of(schedule.name),
        payload=plain_json(document.get("payload")),
        render=bool(document.get("render")),
        priority=template.priority,
        tenant=template.tenant,
        fairness_key=template.fairness_key,
        lane=template.lane,
        mode=template.mode,
        resources=None if template.resources is None else dict(template.resources),
    )
