"""Calendars: the days that schedules share."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field, PlainSerializer, PlainValidator, WithJsonSchema

from hascheduler.errors import InvalidInput
from hascheduler.model.values.error_texts import quoted
from hascheduler.schema.calendar import DAYS_EXPECTED, DAYS_MAX, NO_DAYS, WEEKDAYS, Calendar, Days, read_days
from hascheduler.wire.fields import NullIs, Owner, Revisioned, StrictModel, invalid_value

_WEEKDAYS_EXPECTED = f"days ({', '.join(WEEKDAYS)}), and spans of them such as mon-fri"
_WEEKDAYS_MAX = 14
_EXAMPLE: dict[str, Any] = {
    "weekdays": ["mon", "tue", "wed", "thu", "fri"],
    "include": ["2030-12-28"],
    "exclude": ["2030-12-24/2031-01-01", "--05-01"],
    "owner": "team-a",
}


def _weekdays(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or len(value) > _WEEKDAYS_MAX:
        raise invalid_value(f"{quoted(value)} is no list of days of the week", _WEEKDAYS_EXPECTED)
    return tuple(sorted({day for text in value for day in _weekday_span(text)}))


def _weekday_span(text: Any) -> list[int]:
    first, dash, last = text.lower().partition("-") if isinstance(text, str) and len(text) < 10 else ("", "", "")
    if first not in WEEKDAYS or (dash and last not in WEEKDAYS):
        raise invalid_value(f"{quoted(text)} is no day of the week", _WEEKDAYS_EXPECTED)
    begin = WEEKDAYS.index(first)
    length = (WEEKDAYS.index(last) - begin) % len(WEEKDAYS) if dash else 0
    return [(begin + step) % len(WEEKDAYS) for step in range(length + 1)]


def _days(value: Any) -> Days:
    if not isinstance(value, list):
        raise invalid_value(f"{quoted(value)} is no list of days", f"a list of: {DAYS_EXPECTED}")
    try:
        return read_days(value)
    except InvalidInput as error:
        raise invalid_value(error.problem, error.expected) from None


def _shown_weekdays(days: tuple[int, ...]) -> list[str]:
    return [WEEKDAYS[day] for day in days]


Weekdays = Annotated[
    tuple[int, ...],
    PlainValidator(_weekdays),
    PlainSerializer(_shown_weekdays, when_used="json"),
    WithJsonSchema({"type": "array", "items": {"type": "string"}, "maxItems": _WEEKDAYS_MAX}, mode="validation"),
]
DayList = Annotated[
    Days,
    PlainValidator(_days),
    PlainSerializer(Days.texts, return_type=list[str], when_used="json"),
    WithJsonSchema({"type": "array", "items": {"type": "string"}, "maxItems": DAYS_MAX}, mode="validation"),
]


class CalendarBody(StrictModel):
    """A set of local days; what is left out, or null, is empty."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    weekdays: Annotated[Weekdays, NullIs(())] = Field(
        default=(), description="Days of each week that are in it, as `mon` or `mon-fri`; default none"
    )
    include: Annotated[DayList, NullIs(NO_DAYS)] = Field(
        default=NO_DAYS,
        description="Days that are in it besides: `2030-12-24`, a span `2030-12-24/2031-01-01` with both ends, or "
        f"`--12-25` for each year; at most {DAYS_MAX}, default none",
    )
    exclude: Annotated[DayList, NullIs(NO_DAYS)] = Field(
        default=NO_DAYS,
        description=f"Days of `weekdays` that are not in it, in the forms of `include`; at most {DAYS_MAX}, "
        "default none",
    )

    owner: Owner = None

    def resource(self, name: str, rev: int = 0) -> Calendar:
        return Calendar(
            name=name,
            rev=rev,
            weekdays=self.weekdays,
            include=self.include,
            exclude=self.exclude,
            owner=self.owner,
        )


class CalendarResponse(CalendarBody, Revisioned):
    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "business-days", "rev": 2, **_EXAMPLE}]})

    @classmethod
    def of(cls, calendar: Calendar) -> "CalendarResponse":
        return cls.model_construct(
            name=calendar.name,
            rev=calendar.rev,
            weekdays=calendar.weekdays,
            include=calendar.include,
            exclude=calendar.exclude,
            owner=calendar.owner,
        )
