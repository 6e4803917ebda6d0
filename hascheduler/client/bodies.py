"""What a job may say, and which jobs may be meant: as keyword arguments, and as the JSON that is sent."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Required, TypedDict

from hascheduler.errors import InvalidInput
from hascheduler.model.job import JobState


class JobOptions(TypedDict, total=False):
    """What is left out has its default. Instants are datetimes with a zone, or RFC 3339 texts."""

    target: str
    priority: int
    tenant: str
    fairness_key: str
    lane: str
    mode: Literal["queued", "on_demand"]
    resources: Mapping[str, int]
    labels: Mapping[str, str]
    not_before: datetime | str
    expires_at: datetime | str
    depends_on: Sequence[str]
    on_dependency_failure: Literal["fail", "ignore"]


class BatchJob(JobOptions, total=False):
    """One of many. ``ref`` is what the others of its batch call it, as ``ref:NAME`` in their ``depends_on``."""

    definition: Required[str]
    payload: Any
    ref: str
    idempotency_key: str


class _JobAttributes(TypedDict, total=False):
    definition: str
    schedule: str
    tenant: str
    batch: str
    target: str
    labels: Mapping[str, str]


class JobErrorFilter(_JobAttributes, total=False):
    """All that is given must hold. ``since`` and ``until`` bound when jobs were submitted, ``id`` is how their ids
    begin. ``labels`` may be texts too, such as ``team=a``."""

    since: datetime | str
    until: datetime | str
    id: str


class JobChangeFilter(JobErrorFilter, total=False):
    """As `JobErrorFilter`. ``unschedulable``: only those that no living processor could ever run."""

    state: JobState | str
    unschedulable: bool


class JobListFilter(JobErrorFilter, total=False):
    """As `JobErrorFilter`; of several states any one. ``unschedulable``: only those that no living processor could ever
    run."""

    state: JobState | str | Sequence[JobState | str]
    unschedulable: bool


class ScheduleListFilter(TypedDict, total=False):
    """All that is given must hold. ``text`` is in the name, ``verdict`` was that of the last decided time; of several
    states or verdicts any one. ``ahead``: only those that fired ahead of time."""

    text: str
    state: Literal["active", "paused", "ended"] | Sequence[Literal["active", "paused", "ended"]]
    verdict: str | Sequence[str]
    tenant: str
    ahead: bool


class ScheduleChangeFilter(TypedDict, total=False):
    """All that is given must hold, as in `ScheduleListFilter`."""

    text: str
    state: Literal["active", "paused", "ended"]
    verdict: str
    tenant: str
    labels: Mapping[str, str]


class VerdictListFilter(TypedDict, total=False):
    """All that is given must hold. ``since`` and ``until`` bound when it was decided; ``text`` is in the schedule's
    name, ``labels`` are the schedule's: a mapping, or texts such as ``team=a``."""

    since: datetime | str
    until: datetime | str
    tenant: str
    text: str
    labels: Mapping[str, str] | Sequence[str]


def job_body(definition: str, payload: object, options: JobOptions) -> dict[str, Any]:
    return {"definition": definition, "payload": payload, **plain(**options)}


def plain(**fields: Any) -> dict[str, Any]:
    """Without what is None but for the payload, which may be; instants as texts."""
    return {name: _value(name, value) for name, value in fields.items() if value is not None or name == "payload"}


def query_of(**parameters: Any) -> list[tuple[str, str]]:
    """Without what is None; a sequence is a parameter many times, ``labels`` are ``label=key=value``."""
    query: list[tuple[str, str]] = []
    for name, value in plain(**parameters).items():
        each = [f"{key}={one}" for key, one in value.items()] if isinstance(value, Mapping) else value
        several = each if isinstance(each, Sequence) and not isinstance(each, str) else [each]
        texts = (str(one).lower() if isinstance(one, bool) else str(one) for one in several)
        query.extend(("label" if name == "labels" else name, text) for text in texts)
    return query


def encoded(body: object) -> bytes:
    """`InvalidInput` for what JSON can't hold."""
    try:
        return json.dumps(body, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(("body",), f"is nothing that JSON can hold: {error}", "JSON") from None


def _value(name: str, value: Any) -> Any:
    match value:
        case datetime() if name != "payload":
            if value.tzinfo is None:
                raise InvalidInput((name,), f"{value.isoformat()} has no zone", "a datetime with tzinfo, such as UTC")
            return value.isoformat()
        case JobState():
            return value.value
        case Mapping() if name != "payload":
            return dict(value)
        case Sequence() if name == "depends_on" and not isinstance(value, str):
            return list(value)
        case _:
            return value
