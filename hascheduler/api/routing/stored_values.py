"""Values of stored documents that an answer shows as they are: instants, texts, any BSON value as plain JSON."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from hascheduler.errors import InvalidInput
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.forms import is_calendar_ms


def instant(fields: Mapping[str, Any], name: str) -> WallMs:
    """Return the stored instant; raise `InvalidInput` if no calendar has it."""
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not is_calendar_ms(value):
        raise InvalidInput((name,), "not an instant", "milliseconds since 1970")
    return WallMs(value)


def instant_or_none(fields: Mapping[str, Any], name: str) -> WallMs | None:
    return None if fields.get(name) is None else instant(fields, name)


def texts(fields: Mapping[str, Any], name: str) -> dict[str, str]:
    """Return a stored mapping of texts, such as labels; raise `InvalidInput` if it is none."""
    value = fields.get(name) or {}
    if not isinstance(value, Mapping) or not all(isinstance(text, str) for text in value.values()):
        raise InvalidInput((name,), "not an object of texts")
    return dict(value)


def plain_json(value: Any) -> Any:
    """Return ``value`` with a text for everything that JSON has no form for: BSON has more types."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case datetime():
            return (value if value.tzinfo else value.replace(tzinfo=UTC)).isoformat()
        case Mapping():
            return {str(key): plain_json(item) for key, item in value.items()}
        case list() | tuple():
            return [plain_json(item) for item in value]
        case _:
            return str(value)
