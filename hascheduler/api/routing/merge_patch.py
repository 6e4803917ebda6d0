"""JSON merge patch (RFC 7396): objects merge, null removes, anything else replaces.

A patch is merged into what GET shows of the stored thing, and the whole is then checked like a replacement: there is
one way of checking, and what is left out by a null gets its default.
"""

import json
from typing import Any, TypeVar

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError

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
    """``merged`` as a request's body; refused as such a body would be."""
    try:
        return model.model_validate(merged)
    except ValidationError as error:
        errors = [{**one, "loc": ("body", *one["loc"])} for one in error.errors()]
        raise RequestValidationError(errors, body=merged) from None


def is_same_json(one: Any, other: Any) -> bool:
    """Objects with the same members in another order are the same."""
    return bool(one == other) and _text(one) == _text(other)


def _text(value: Any) -> str:
    # Stored values may be more than JSON; what has no form there is compared by its text.
    return json.dumps(value, sort_keys=True, default=str)
