"""Builds the JSON and the query of requests; splits many jobs into as few requests as possible."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from hascheduler.errors import InvalidInput
from hascheduler.model.job import JobState
from hascheduler.model.values.instants import parse_duration

REQUEST_JOBS_MAX = 1_000
REQUEST_BYTES_MAX = 1536 * 1024
"""The most that one request holds; a replica takes 2 MiB."""
_WHOLE = f"at most {REQUEST_JOBS_MAX} jobs and 1.5 MiB"

Group = list[Any]


def plain(**fields: Any) -> dict[str, Any]:
    """Return the fields without those that are None, except the payload, which may be None; instants become texts."""
    return {name: _value(name, value) for name, value in fields.items() if value is not None or name == "payload"}


def delayed(fields: Mapping[str, Any], delay: timedelta | str | None) -> Mapping[str, Any]:
    """Return the fields of a submit, which may begin after ``delay`` from now, by this machine's clock."""
    if delay is None:
        return fields
    if fields.get("not_before") is not None:
        raise InvalidInput(("delay",), "cannot be combined with not_before", "only one of them")
    delay_ms = parse_duration(delay.total_seconds() if isinstance(delay, timedelta) else delay, ("delay",))
    return {**fields, "not_before": datetime.now(UTC) + timedelta(milliseconds=delay_ms)}


def query_of(**parameters: Any) -> list[tuple[str, str]]:
    """Return the query without None values: one item per element of a sequence, ``label=key=value`` per label."""
    query: list[tuple[str, str]] = []
    for name, value in plain(**parameters).items():
        each = [f"{key}={one}" for key, one in value.items()] if isinstance(value, Mapping) else value
        several = each if isinstance(each, Sequence) and not isinstance(each, str) else [each]
        texts = (str(one).lower() if isinstance(one, bool) else str(one) for one in several)
        query.extend(("label" if name == "labels" else name, text) for text in texts)
    return query


def encoded(body: object) -> bytes:
    """Return the value as JSON; raise `InvalidInput` if JSON can't hold it.

    Datetimes, dates, times and UUIDs become texts, as do decimals, which keep all digits; enum members become their
    values, dataclasses and pydantic models objects.
    """
    try:
        return json.dumps(body, allow_nan=False, default=_as_json).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(("body",), f"can't be encoded as JSON: {error}", "JSON") from None


def _as_json(value: Any) -> Any:
    match value:
        case datetime() if value.tzinfo is None:
            raise TypeError(f"{value.isoformat()} has no time zone; expected a datetime with tzinfo, such as UTC")
        case datetime() | date() | time():
            return value.isoformat()
        case UUID() | Decimal():
            return str(value)
        case Enum():
            return value.value
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
        case _ if callable(dump := getattr(value, "model_dump", None)):  # pydantic is not imported for this
            return dump(mode="json")
    raise TypeError(f"{type(value).__name__} is not JSON")


def split_jobs(jobs: Sequence[Any], *, atomic: bool = False) -> list[Group]:
    """Return the jobs of each request. Jobs that name each other by ``ref:``, or are ``atomic``, must fit into one."""
    groups: list[Group] = [[]]
    size = 0
    for job in jobs:
        own = len(encoded(job))
        if groups[-1] and (len(groups[-1]) >= REQUEST_JOBS_MAX or size + own > REQUEST_BYTES_MAX):
            groups.append([])
            size = 0
        groups[-1].append(job)
        size += own
    needed = f"{len(jobs)} jobs need {len(groups)} requests"
    if len(groups) > 1 and atomic:
        raise InvalidInput(("jobs",), f"{needed}, but are atomic", f"{_WHOLE} for an atomic batch")
    if len(groups) > 1 and any(_names_others(job) for job in jobs):
        raise InvalidInput(("jobs",), f"{needed}, but depend on each other by ref:", f"{_WHOLE} with ref:")
    return groups


def group_key(key: str, number: int) -> str:
    """Return the idempotency key of that group: always the same for the same jobs."""
    return key if number == 0 else f"{key}/{number}"


def _names_others(job: Any) -> bool:
    named = job.get("depends_on") if isinstance(job, dict) else None
    return isinstance(named, list) and any(isinstance(one, str) and one.startswith("ref:") for one in named)


def _value(name: str, value: Any) -> Any:
    match value:
        case JobState():
            return value.value
        case _ if name == "payload":
            return value
        case datetime() if value.tzinfo is None:
            raise InvalidInput((name,), f"{value.isoformat()} has no time zone", "a datetime with tzinfo, such as UTC")
        case datetime():
            return value.isoformat()
        case Mapping():
            return dict(value)
        case Sequence() if name == "depends_on" and not isinstance(value, str):
            return list(value)
        case _:
            return value
