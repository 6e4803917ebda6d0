"""JSON merge patch (RFC 7396): objects merge, null removes, anything else replaces. And equality of JSON values.

A patch is merged into what GET shows of the stored resource, and the result is validated like a replacement: there is
one validation, and a field that a null removes gets its default.
"""

import json
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from hascheduler.api.routing.route_rules import InvalidBody
from hascheduler.schema.noun import parse_request

Model = TypeVar("Model", bound=BaseModel)


def merge_patch(target: Any, patch: Any) -> Any:
    """``target`` after ``patch``; neither is changed."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


def whole(model: type[Model], merged: Any) -> Model:
    """``merged`` validated as a request's body, with the errors of such a body."""
    try:
        return parse_request(model, merged)
    except ValidationError as error:
        errors = [{**one, "loc": ("body", *one["loc"])} for one in error.errors()]
        raise InvalidBody(errors, merged, model) from None


def is_same_json(one: Any, other: Any) -> bool:
    """Objects with the same members in another order are the same."""
    return bool(one == other) and _text(one) == _text(other)


def _text(value: Any) -> str:
    # Stored values may be more than JSON; values without a JSON form are compared by their text.
    return json.dumps(value, sort_keys=True, default=str)
