"""Payloads: how their placeholders are filled, and how large they may be.

**Placeholders.** ``${name}`` in any text, ``$$`` for a dollar sign. Only schedules that ask for it have their payload
rendered, at each fire, from values that the schedule and the nominal time fix; so every leader makes the same job.

**Size.** A payload counts as compact JSON in UTF-8. Rendered, it counts with the longest text that each placeholder can
get, so the size follows from the schedule alone: it is the same at every nominal time, for every leader, and when the
schedule is written. Nothing is rendered to compute it: the work is linear in the payload as it is stored.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from string import Template
from typing import Any

import orjson

from hascheduler.errors import InvalidInput
from hascheduler.model.job import JOB_ID_TAIL_MAX
from hascheduler.model.values.instants import LATEST_MS, format_instant

PAYLOAD_BYTES_MAX = 256 * 1024
"""Of every job. MongoDB holds 16 MiB; as BSON, a list of many small numbers takes six times its JSON size."""
PLACEHOLDERS = ("schedule", "target", "job_id", "nominal_at", "nominal_date", "nominal_ms")
"""Beside these, ``label.<key>`` for each label. Dates and times are UTC."""
# As `render` reads them. JSON keeps them as they are, none spans two texts, and after "$$" none begins.
_PLACEHOLDER = re.compile(rb"\$(?:\$|\{([a-zA-Z0-9][a-zA-Z0-9._-]*)\})")


# Placeholders


def placeholder_values(
    schedule: str, target: str, job_id: str, nominal_ms: int, labels: Mapping[str, str]
) -> dict[str, str]:
    nominal_at = format_instant(nominal_ms)
    return {
        "schedule": schedule,
        "target": target,
        "job_id": job_id,
        "nominal_at": nominal_at,
        "nominal_date": nominal_at[:10],
        "nominal_ms": str(nominal_ms),
        **{f"label.{key}": value for key, value in labels.items()},
    }


def longest_values(schedule: str, target: str, labels: Mapping[str, str]) -> dict[str, str]:
    """As `placeholder_values`, but each value as long as it can get: the same for every job of the schedule."""
    job_id = f"backfill:{schedule}:{'0' * JOB_ID_TAIL_MAX}"
    return placeholder_values(schedule, target, job_id, LATEST_MS, labels)


def render(payload: Any, values: Mapping[str, str]) -> Any:
    """``payload`` with its placeholders filled; those that ``values`` lacks stay as they are."""
    match payload:
        case str():
            return _Template(payload).safe_substitute(values)
        case Mapping():
            return {key: render(value, values) for key, value in payload.items()}
        case list():
            return [render(value, values) for value in payload]
        case _:
            return payload


def missing_placeholders(
    payload: Any, known: frozenset[str], path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """The path and name of each placeholder in ``payload`` without a value in ``known``."""
    match payload:
        case str():
            names = (match["braced"] for match in _Template.pattern.finditer(payload))  # type: ignore[attr-defined]
            yield from ((path, name) for name in names if name is not None and name not in known)
        case Mapping():
            for key, value in payload.items():
                yield from missing_placeholders(value, known, (*path, key))
        case list():
            for index, value in enumerate(payload):
                yield from missing_placeholders(value, known, (*path, index))


class _Template(Template):
    idpattern = r"(?a:[a-zA-Z0-9][a-zA-Z0-9._-]*)"
    braceidpattern = idpattern
    # A bare name after a dollar sign stays as it is: payloads hold prices and shell variables.
    pattern = rf"""
        \$(?:
          (?P<escaped>\$) |
          (?P<named>(?!)) |
          \{{(?P<braced>{idpattern})\}} |
          (?P<invalid>(?!))
        )
    """  # type: ignore[assignment]  # the class replaces the text by what it compiles to


# Size


def json_bytes(value: Any) -> int:
    """The size of ``value``; what is no JSON counts as its text, a text that is too long by its characters."""
    # Encoding a text takes eight times its size for a moment.
    is_too_long = isinstance(value, str) and len(value) > PAYLOAD_BYTES_MAX
    return len(value) if is_too_long else len(_json(value))


def rendered_bytes_max(payload: Any, longest: Mapping[str, str]) -> int:
    """At least the size of ``payload`` with its placeholders filled from ``longest``.

    Placeholders in names count although they are not filled; one that gets shorter counts with its unfilled length.
    """
    text = _json(payload)
    size = len(text)
    if b"${" not in text:
        return size
    grows = {name: json_bytes(value) - len('""') - len(f"${{{name}}}") for name, value in longest.items()}
    for name, count in Counter(_PLACEHOLDER.findall(text)).items():
        size += count * max(0, grows.get(name.decode(), 0))
    return size


def require_storable_size(size: int, path: tuple[str | int, ...], *, rendered: bool) -> None:
    """`InvalidInput` if a payload of that size is too large."""
    if size > PAYLOAD_BYTES_MAX:
        filled = ", counted with the longest text for each placeholder" if rendered else ""
        raise InvalidInput(path, f"{size} bytes of JSON{filled}", f"at most {PAYLOAD_BYTES_MAX}")


def _json(value: Any) -> bytes:
    try:
        return orjson.dumps(value, default=str)
    except TypeError:  # written by hand: integers of more than 64 bits, half a surrogate pair
        return json.dumps(value, ensure_ascii=False, default=str, skipkeys=True).encode("utf-8", "surrogatepass")
