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


class JobFilter(TypedDict, total=False):
    """All that is given must hold."""

    state: JobState | str
    definition: str
    schedule: str
    tenant: str
    batch: str
    target: str
    labels: Mapping[str, str]


def job_body(definition: str, payload: object, options: JobOptions) -> dict[str, Any]:
    return {"definition": definition, "payload": payload, **plain(**options)}


def plain(**fields: Any) -> dict[str, Any]:
    """Without what is None but for the payload, which may be; instants as texts."""
    return {name: _value(name, value) for name, value in fields.items() if value is not None or name == "payload"}


def query_of(**parameters: Any) -> list[tuple[str, str]]:
    """Without what is None; a sequence is a parameter many times, ``labels`` are ``label=key=value``."""
    query: list[tuple[str, str]] = []
    for name, value in plain(**parameters).items():
        if name == "labels":
            query.extend(("label", f"{key}={one}") for key, one in value.items())
        elif isinstance(value, Sequence) and not isinstance(value, str):
            query.extend((name, str(one)) for one in value)
        else:
            query.append((name, str(value)))
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
