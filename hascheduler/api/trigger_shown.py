"""Triggers in responses: in the form of a request, so that a client may send back what it got."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from hascheduler.api.shown import instant_text
from hascheduler.model.durations import format_duration
from hascheduler.model.trigger import Cron, Interval, Once, Times, Trigger


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
