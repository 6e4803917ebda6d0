"""Responses of previews: the fires to come, in UTC and on the clock of the trigger's zone."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

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
