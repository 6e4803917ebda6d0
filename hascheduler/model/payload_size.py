"""How large a payload may be, as it is given and with its placeholders filled.

A payload counts as compact JSON in UTF-8. Filled, it counts with the longest text that each placeholder can get, so the
size follows from the schedule alone: it is the same at every nominal time, for every leader, and when the schedule is
written. Nothing is filled to learn it: the work is linear in the payload as it is stored.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import orjson

from hascheduler.errors import InvalidInput

PAYLOAD_BYTES_MAX = 256 * 1024
"""Of a job, however it is made. MongoDB holds 16 MiB; a list of many small numbers takes six times as much there."""

# As `rendering` reads them. JSON shows them as they are, none spans two texts, and what follows "$$" is none.
_PLACEHOLDER = re.compile(rb"\$(?:\$|\{([a-zA-Z0-9][a-zA-Z0-9._-]*)\})")


def json_bytes(value: Any) -> int:
    """The size of ``value``; what is no JSON counts as its text, and a text that is too long by its letters."""
    # To write a text out takes eight times its size for a moment.
    is_too_long = isinstance(value, str) and len(value) > PAYLOAD_BYTES_MAX
    return len(value) if is_too_long else len(_json(value))


def rendered_bytes_max(payload: Any, longest: Mapping[str, str]) -> int:
    """At least the size of ``payload`` with its placeholders filled from ``longest``.

    Those that stand in names are not filled and count all the same, and one that gets shorter counts as it is.
    """
    text = _json(payload)
    size = len(text)
    if b"${" not in text:
        return size
    grows = {name: json_bytes(value) - len('""') - len(f"${{{name}}}") for name, value in longest.items()}
    for name, count in Counter(_PLACEHOLDER.findall(text)).items():
        size += count * max(0, grows.get(name.decode(), 0))
    return size


def demand_storable(size: int, path: tuple[str | int, ...], *, rendered: bool) -> None:
    """`InvalidInput` where a payload of that size is too large."""
    if size > PAYLOAD_BYTES_MAX:
        filled = ", counted with the longest text for each placeholder" if rendered else ""
        raise InvalidInput(path, f"{size} bytes of JSON{filled}", f"at most {PAYLOAD_BYTES_MAX}")


def _json(value: Any) -> bytes:
    try:
        return orjson.dumps(value, default=str)
    except TypeError:  # written by hand: integers of more than 64 bits, half a surrogate pair
        return json.dumps(value, ensure_ascii=False, default=str, skipkeys=True).encode("utf-8", "surrogatepass")
