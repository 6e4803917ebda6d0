"""Stored calendars: ``{_id: name, v, rev, weekdays: [0…6], include: [text], exclude: [text], owner}``."""

from collections.abc import Mapping
from typing import Any

from hascheduler.errors import InvalidInput
from hascheduler.model.calendar import WEEKDAYS, Calendar, Days, read_days
from hascheduler.model.schema_version import WRITTEN_VERSION, require_known_version
from hascheduler.model.values.fields import Document, identifier, integer, is_integer, text_or_none

CALENDAR_FIELDS = ("v", "rev", "weekdays", "include", "exclude", "owner")


def encode_calendar(calendar: Calendar) -> dict[str, Any]:
    return {
        "_id": calendar.name,
        "v": WRITTEN_VERSION,
        "rev": calendar.rev,
        "weekdays": list(calendar.weekdays),
        "include": calendar.include.texts(),
        "exclude": calendar.exclude.texts(),
        "owner": calendar.owner,
    }


def decode_calendar(id: object, fields: Document) -> Calendar:
    """What is left out is not taken for empty: a calendar that was broken by hand must not pass for another one."""
    require_known_version(fields)
    weekdays = _list(fields, "weekdays")
    if len(weekdays) > len(WEEKDAYS) or not all(is_integer(day) and 0 <= day < len(WEEKDAYS) for day in weekdays):
        raise InvalidInput(("weekdays",), f"{str(weekdays)[:64]}", "a list of numbers from 0 (Monday) to 6")
    return Calendar(
        name=identifier(id),
        rev=integer(fields, "rev"),
        weekdays=tuple(sorted(set(weekdays))),
        include=_days(fields, "include"),
        exclude=_days(fields, "exclude"),
        owner=text_or_none(fields, "owner"),
    )


def _days(fields: Mapping[str, Any], name: str) -> Days:
    try:
        return read_days(_list(fields, name))
    except InvalidInput as error:
        raise InvalidInput((name, *error.path), error.problem, error.expected) from None


def _list(fields: Mapping[str, Any], name: str) -> list[Any]:
    value = fields.get(name)
    if not isinstance(value, list):
        raise InvalidInput((name,), f"a {type(value).__name__}", "a list")
    return value
