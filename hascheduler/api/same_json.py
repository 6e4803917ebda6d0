"""Whether two values are the same JSON: 1, 1.0 and true are equal to Python, and not to who reads a payload."""

import json
from typing import Any


def is_same_json(one: Any, other: Any) -> bool:
    """Objects with the same members in another order are the same."""
    return bool(one == other) and _text(one) == _text(other)


def _text(value: Any) -> str:
    # Stored values may be more than JSON; what has no form there is compared by its text.
    return json.dumps(value, sort_keys=True, default=str)
