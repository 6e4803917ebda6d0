"""Payloads: how their placeholders are filled, and how large they may be.

**Placeholders.** ``${name}`` in any text, ``$$`` for a dollar sign. Only schedules that ask for it have their payload
rendered, at each fire, from values that the schedule and the nominal time fix; so every leader makes the same job.
A request may have `PLACEHOLDERS_MAX` of them; schedules of earlier releases may have more.

**Size.** A payload counts as compact JSON in UTF-8. If it is rendered, each placeholder counts as the longest text that
it can get, so the size follows from the schedule alone: it is the same at every nominal time, for every leader, and
when the schedule is written. Nothing is rendered to compute it: the work is linear in the payload as it is stored.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from hascheduler.errors import InvalidInput
from hascheduler.model.job import JOB_ID_TAIL_MAX
from hascheduler.model.values.instants import LATEST_MS, format_instant
from hascheduler.model.values.zone_data import read_zone

PAYLOAD_BYTES_MAX = 256 * 1024
"""The limit of every job. MongoDB holds 16 MiB; as BSON, a list of many small numbers takes six times its JSON size."""
PLACEHOLDERS_MAX = 2_000
"""The most ``${`` and ``$$`` in all payloads of a schedule: that many take half a millisecond at each fire."""
_UTC = ("schedule", "target", "job_id", "nominal_at", "nominal_date", "nominal_ms")
_LOCAL = ("local_date", "local_time", "local_offset")
PLACEHOLDERS = (*_UTC, *_LOCAL)
"""All placeholders but ``label.<key>`` for each label. Nominal ones are UTC, local ones are in the schedule's zone."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST_OFFSET = "-00:44:30"
"""The offset of Monrovia until 1972."""
# Between two "$$": after one no placeholder begins.
_PLACEHOLDER = re.compile(r"(\$\{[a-zA-Z0-9][a-zA-Z0-9._-]*\})")


# Placeholders


def placeholder_values(
    schedule: str, target: str, job_id: str, nominal_ms: int, *, zone: str, labels: Mapping[str, str]
) -> dict[str, str]:
    """Return the value of each placeholder; ``zone`` is the zone of the schedule's trigger."""
    nominal_at = format_instant(nominal_ms)
    local = _local(nominal_ms, zone)
    return {
        "schedule": schedule,
        "target": target,
        "job_id": job_id,
        "nominal_at": nominal_at,
        "nominal_date": nominal_at[:10],
        "nominal_ms": str(nominal_ms),
        "local_date": local[:10],
        "local_time": local[11:19],
        "local_offset": local[19:],
        **{f"label.{key}": value for key, value in labels.items()},
    }


def longest_values(schedule: str, target: str, labels: Mapping[str, str]) -> dict[str, str]:
    """Return the longest possible value of each placeholder, the same for every job of the schedule."""
    job_id = f"backfill:{schedule}:{'0' * JOB_ID_TAIL_MAX}"
    values = placeholder_values(schedule, target, job_id, LATEST_MS, zone="UTC", labels=labels)
    return values | {"local_offset": _LONGEST_OFFSET}


def render(payload: Any, values: Mapping[str, str]) -> Any:
    """Return ``payload`` with its placeholders filled; those that ``values`` lacks stay as they are."""
    match payload:
        case str():
            # No placeholder begins after "$$", and none spans it.
            return "$".join([_filled(part, values) for part in payload.split("$$")]) if "$" in payload else payload
        case list():
            return [render(value, values) for value in payload]
        case dict():
            return {key: render(value, values) for key, value in payload.items()}
        case _:
            return payload


def _filled(text: str, values: Mapping[str, str]) -> str:
    if "${" not in text:
        return text
    first, *others = text.split("${")
    filled = [first]
    for other in others:
        name, brace, rest = other.partition("}")
        value = values.get(name) if brace else None
        filled.append(f"${{{other}" if value is None else value + rest)
    return "".join(filled)


def _local(at_ms: int, zone: str) -> str:
    """Return ``2027-03-28T03:00:00+02:00``; in UTC if the schedule was broken by hand and has no valid zone."""
    moment = _EPOCH + timedelta(milliseconds=at_ms)
    with suppress(KeyError, ValueError, OSError):
        moment = moment.astimezone(read_zone(zone))
    return moment.isoformat(timespec="seconds")


def missing_placeholders(
    payload: Any, known: frozenset[str], path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the path and name of each placeholder in ``payload`` without a value in ``known``."""
    match payload:
        case str():
            names = (name[2:-1] for part in payload.split("$$") for name in _PLACEHOLDER.findall(part))
            yield from ((path, name) for name in names if name not in known)
        case Mapping():
            for key, value in payload.items():
                yield from missing_placeholders(value, known, (*path, key))
        case list():
            for index, value in enumerate(payload):
                yield from missing_placeholders(value, known, (*path, index))


# Size


def json_bytes(value: Any) -> int:
    """Return the size of ``value``; anything but JSON counts as its text, a text that is too long by its characters."""
    # Encoding a text takes eight times its size for a moment.
    is_too_long = isinstance(value, str) and len(value) > PAYLOAD_BYTES_MAX
    return len(value) if is_too_long else len(_json(value))


@dataclass(frozen=True, slots=True)
class RenderedSize:
    """The size of a payload.

    ``bytes`` is at least the size with all placeholders filled; ``placeholders`` is the number of ``${`` and ``$$``,
    ``values`` about the number of values.
    """

    bytes: int
    placeholders: int
    values: int

    def __add__(self, other: "RenderedSize") -> "RenderedSize":
        return RenderedSize(
            self.bytes + other.bytes, self.placeholders + other.placeholders, self.values + other.values
        )


NOTHING = RenderedSize(0, 0, 0)


def rendered_size(payload: Any, longest: Mapping[str, str]) -> RenderedSize:
    """Return the size of ``payload`` with its placeholders filled from ``longest``; without those, as it is.

    Placeholders in names count although they are not filled; one that gets shorter counts with its unfilled length.
    """
    text = _json(payload)
    size, escaped, opened = len(text), text.count(b"$$"), text.count(b"${")
    if opened and longest:
        # JSON has no such byte. No placeholder begins after "$$", and none spans two texts.
        unescaped = text.replace(b"$$", b"\0")
        for name, value in longest.items():
            grows = json_bytes(value) - len('""') - len(f"${{{name}}}")
            size += max(0, grows) * unescaped.count(f"${{{name}}}".encode())
    return RenderedSize(size, escaped + opened if longest else 0, text.count(b",") + 1)


def require_storable_size(size: int, path: tuple[str | int, ...], *, rendered: bool) -> None:
    """Raise `InvalidInput` if a payload of that size is too large."""
    if size > PAYLOAD_BYTES_MAX:
        filled = ", counted with the longest text for each placeholder" if rendered else ""
        raise InvalidInput(path, f"{size} bytes of JSON{filled}", f"at most {PAYLOAD_BYTES_MAX}")


def require_few_placeholders(count: int, path: tuple[str | int, ...]) -> None:
    """Raise `InvalidInput` if a schedule has more placeholders than `PLACEHOLDERS_MAX`."""
    if count > PLACEHOLDERS_MAX:
        raise InvalidInput(path, f"{count} placeholders (${{ and $$)", f"at most {PLACEHOLDERS_MAX}")


def _json(value: Any) -> bytes:
    try:
        return orjson.dumps(value, default=str)
    except TypeError:  # written by hand: integers of more than 64 bits, half a surrogate pair
        return json.dumps(value, ensure_ascii=False, default=str, skipkeys=True).encode("utf-8", "surrogatepass")
