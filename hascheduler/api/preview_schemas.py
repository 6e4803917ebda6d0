"""Fires to come, as answers show them: in UTC, and on the clock of the trigger's zone."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from hascheduler.api.shown import instant_text
from hascheduler.model.instants import WallMs
from hascheduler.model.trigger import Cron, Trigger
from hascheduler.triggers import ClockChange, Upcoming, due_ms, excluded_until

_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_FIRE: JsonDict = {
    "nominal_at": "2027-03-28T01:00:00.000Z",
    "due_at": "2027-03-28T01:00:00.000Z",
    "local": "2027-03-28T03:00:00+02:00",
    "weekday": "Sun",
    "excluded": False,
    "note": "02:30 does not exist on this day",
}
_PREVIEW: JsonDict = {
    "fires": [_FIRE],
    "clock_changes": [
        {
            "at": "2027-03-28T01:00:00.000Z",
            "kind": "gap",
            "offset_before": "+01:00",
            "offset_after": "+02:00",
            "explanation": "clocks go from 02:00 to 03:00: fires once, at 03:00",
            "fires": [_FIRE],
        }
    ],
    "timezone": "Europe/Paris",
}


class FireResponse(BaseModel):
    nominal_at: str
    due_at: str = Field(description="With jitter, which the schedule's name fixes")
    local: str = Field(description="`nominal_at` on the clock of the trigger's zone")
    weekday: str = Field(description="There, on that clock", examples=["Sun"])
    excluded: bool = Field(description="It lies in an exclusion window, so it will not fire")
    note: str | None


class ClockChangeResponse(BaseModel):
    """What the clocks of the trigger's zone do, and what this trigger does then."""

    at: str
    kind: Literal["gap", "fold"] = Field(description="gap: an hour is left out; fold: one comes twice")
    offset_before: str
    offset_after: str
    explanation: str
    fires: list[FireResponse] = Field(description="On that local day; of many, some")


class PreviewResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [_PREVIEW]})

    fires: list[FireResponse] = Field(description="The next nominal times, those that are excluded among them")
    clock_changes: list[ClockChangeResponse] = Field(description="Of the next 400 days")
    timezone: str


class EditPreviewResponse(PreviewResponse):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{**_PREVIEW, "added": [_FIRE], "removed": [], "until": "2027-04-01T01:00:00Z"}]}
    )

    added: list[FireResponse] = Field(description="What would fire through `until`, and does not now")
    removed: list[FireResponse] = Field(description="What fires now through `until`, and would not any more")
    until: str = Field(description="Through when the edited and the present trigger are compared")


def zone_of(trigger: Trigger) -> str:
    return trigger.pattern.timezone if isinstance(trigger.pattern, Cron) else "UTC"


def show_fires(fires: Sequence[Upcoming], zone: str) -> list[FireResponse]:
    return [_show_fire(fire, ZoneInfo(zone)) for fire in fires]


def show_change(schedule: str, trigger: Trigger, change: ClockChange) -> ClockChangeResponse:
    fires = [_upcoming(schedule, trigger, nominal_ms) for nominal_ms in change.nominal_ms]
    return ClockChangeResponse(
        at=instant_text(change.at_ms),
        kind="gap" if change.kind == "gap" else "fold",
        offset_before=_offset(change.offset_before_s),
        offset_after=_offset(change.offset_after_s),
        explanation=change.explanation,
        fires=show_fires(fires, zone_of(trigger)),
    )


def _upcoming(schedule: str, trigger: Trigger, nominal_ms: WallMs) -> Upcoming:
    excluded = excluded_until(trigger, nominal_ms) is not None
    return Upcoming(nominal_ms, due_ms(schedule, trigger, nominal_ms), excluded=excluded, note=None)


def _show_fire(fire: Upcoming, zone: ZoneInfo) -> FireResponse:
    local = (_EPOCH + timedelta(milliseconds=fire.nominal_ms)).astimezone(zone)
    return FireResponse(
        nominal_at=instant_text(fire.nominal_ms),
        due_at=instant_text(fire.due_ms),
        local=local.isoformat(timespec="milliseconds" if fire.nominal_ms % 1_000 else "seconds"),
        weekday=_WEEKDAYS[local.weekday()],
        excluded=fire.excluded,
        note=fire.note,
    )


def _offset(seconds: int) -> str:
    """``+01:00``; with seconds where a zone had them once."""
    minutes, rest = divmod(abs(seconds), 60)
    text = f"{'-' if seconds < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"
    return f"{text}:{rest:02d}" if rest else text
