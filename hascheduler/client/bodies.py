"""What is asked, as the JSON and the query that are sent."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from hascheduler.client.options import JobOptions
from hascheduler.errors import InvalidInput
from hascheduler.model.job import JobState


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
