"""Schedules as requests write them and as answers show them."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue
from pydantic.config import JsonDict

from hascheduler.api.job_fields import TENANT, JobFields
from hascheduler.api.shown import instant, instant_text, plain_json, texts
from hascheduler.api.texts import DurationMs, InstantMs, Labels, Name, Strict, Text, wrong
from hascheduler.model.documents import decode_schedule
from hascheduler.model.durations import format_duration
from hascheduler.model.schedule import JobTemplate, ScheduleRef
from hascheduler.model.trigger import IntervalTrigger, OnceTrigger, Trigger
from hascheduler.ports import StoredDocument
from hascheduler.triggers import next_nominal

EVERY_MIN_MS = 100


def _not_too_often(every_ms: int) -> int:
    if every_ms < EVERY_MIN_MS:
        raise wrong(f"{format_duration(every_ms)} is too short", f"at least {format_duration(EVERY_MIN_MS)}")
    return every_ms


class IntervalBody(Strict):
    """At `anchor` plus whole multiples of `every`."""

    type: Literal["interval"]
    every: Annotated[DurationMs, AfterValidator(_not_too_often)] = Field(examples=["1s", "1m30s"])
    anchor: InstantMs | None = Field(
        default=None, description="Default: the instant of creation; a replacement keeps the stored one"
    )


class OnceBody(Strict):
    """At one instant in the future, and never again."""

    type: Literal["once"]
    at: InstantMs = Field(examples=["2030-01-31T09:30:00Z"])


class TemplateBody(JobFields):
    """The job that each fire makes."""

    target: Text | None = Field(default=None, description="What it works on; default: the schedule's name")

    def template(self, schedule: str) -> JobTemplate:
        return JobTemplate(
            definition=self.definition,
            target=self.target or schedule,
            tenant=TENANT,
            lane=self.lane,
            fairness_key=self.fairness_key,
            priority=self.priority,
            mode=self.mode,
        )


_EXAMPLE: JsonDict = {
    "name": "tick",
    "trigger": {"type": "interval", "every": "1s"},
    "job": {"definition": "log", "target": "demo", "payload": {"message": "hello"}},
    "labels": {"team": "a"},
}


class ReplaceScheduleBody(Strict):
    """A whole schedule; what is left out gets its default. `name`, if given, must be the one in the path."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    name: Name | None = None
    trigger: IntervalBody | OnceBody = Field(discriminator="type")
    job: TemplateBody
    labels: Labels = Field(default={}, description="Texts for people; the jobs it makes carry them too")


class CreateScheduleBody(ReplaceScheduleBody):
    """A new schedule."""

    name: Name


class IntervalResponse(BaseModel):
    type: Literal["interval"] = "interval"
    every: str
    anchor: str


class OnceResponse(BaseModel):
    type: Literal["once"] = "once"
    at: str


class TemplateResponse(BaseModel):
    definition: str
    target: str
    payload: JsonValue
    priority: int
    fairness_key: str
    lane: str
    mode: str


class ScheduleResponse(BaseModel):
    name: str
    rev: int = Field(description="Grows with every edit")
    trigger: IntervalResponse | OnceResponse = Field(discriminator="type")
    job: TemplateResponse
    labels: dict[str, str]
    created_at: str
    last_nominal_at: str | None = Field(description="The last nominal time that was decided; null before the first")
    next_at: str | None = Field(description="The next nominal time; null when there will be no other")


def show_schedule(document: StoredDocument) -> ScheduleResponse:
    """`InvalidInput` when the stored document can't be read."""
    schedule = decode_schedule(document["_id"], document)
    template = schedule.template
    next_ms = next_nominal(schedule.trigger, schedule.cursor_ms)
    return ScheduleResponse(
        name=schedule.name,
        rev=schedule.rev,
        trigger=_show_trigger(schedule.trigger),
        job=TemplateResponse(
            definition=template.definition,
            target=template.target,
            payload=plain_json(document.get("payload")),
            priority=template.priority,
            fairness_key=template.fairness_key,
            lane=template.lane,
            mode=template.mode,
        ),
        labels=texts(document, "labels"),
        created_at=instant(document, "created_at_ms"),
        last_nominal_at=instant(document, "cursor_ms") if _has_decided(schedule) else None,
        next_at=None if next_ms is None else instant_text(next_ms),
    )


def _has_decided(schedule: ScheduleRef) -> bool:
    """Whether the cursor is a nominal time: it also stands where a creation or a new trigger put it."""
    cursor_ms = schedule.cursor_ms
    return cursor_ms > schedule.created_at_ms and next_nominal(schedule.trigger, cursor_ms - 1) == cursor_ms


def _show_trigger(trigger: Trigger) -> IntervalResponse | OnceResponse:
    match trigger:
        case IntervalTrigger(every_ms, anchor_ms):
            return IntervalResponse(every=format_duration(every_ms), anchor=instant_text(anchor_ms))
        case OnceTrigger(at_ms):
            return OnceResponse(at=instant_text(at_ms))
