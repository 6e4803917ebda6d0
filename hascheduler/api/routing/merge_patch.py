"""JSON merge patch (RFC 7396): objects merge, null removes, anything else replaces. And equality of JSON values.

A patch is merged into what GET shows of the stored resource, and the result is validated like a replacement: there is
one validation, and a field that a null removes gets its default.
"""

import json
from typing import Any


def merge_patch(target: Any, patch: Any) -> Any:
    """Return ``target`` after ``patch``; neither is changed."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


def is_same_json(one: Any, other: Any) -> bool:
    """Return whether they are the same, whatever the order of members."""
    return bool(one == other) and _text(one) == _text(other)


def _text(value: Any) -> str:
    # Stored values may be more than JSON; values without a JSON form are compared by their text.
    return json.dumps(value, sort_keys=True, default=str)
