"""Templates of bodies: a text in which ``${name}`` stands for a value of the job.

::

    ${job_id}  ${attempt}  ${definition}  ${target}  ${schedule}  ${nominal_at}     of the job
    ${values.order}  ${values.order.lines.0}                                        of the payload's values
    ${payload.method}                                                               of the payload itself
    ${values.name|json}      as JSON, quotes and all, for a text that is to be JSON
    $${                      a literal ${

A text is put in as it is; anything else, and anything with ``|json``, as JSON. Nothing that was put in is read as a
template again. A name that has no value is an `InvalidInput`: half a text is worse than none.
"""

import re
from collections.abc import Mapping
from typing import Any

import orjson

from hascheduler.errors import InvalidInput
from hascheduler.model.values.instants import format_instant
from hascheduler.processor import JobContext
from processors.payloads import shown

_PLACEHOLDER = re.compile(r"\$(?P<literal>\$\{)|\$\{(?P<inside>[^{}]*)(?P<closed>\}?)")
_PATH = ("payload", "body_template")
_FILLED_BYTES_MAX = 4 * 1024 * 1024
"""A value may be used many times, so a small payload could ask for a body of any size."""


def filled(template: str, job: JobContext) -> str:
    """``template`` with the values of ``job`` in it."""
    known = _known(job)
    parts: list[str] = []
    size, position = 0, 0
    for found in _PLACEHOLDER.finditer(template):
        between = template[position : found.start()]
        put_in = "${" if found["literal"] else _value(found, known)
        parts += (between, put_in)
        size += len(between) + len(put_in)
        if size > _FILLED_BYTES_MAX:
            raise InvalidInput(_PATH, "too long once it is filled in", f"at most {_FILLED_BYTES_MAX} characters")
        position = found.end()
    return "".join((*parts, template[position:]))


def _known(job: JobContext) -> Mapping[str, Any]:
    payload = job.payload if isinstance(job.payload, dict) else {}
    known = {
        "job_id": job.id,
        "attempt": job.attempt,
        "definition": job.definition,
        "target": job.target,
        "payload": payload,
        "values": payload.get("values", {}),
    }
    if job.schedule is not None:
        known["schedule"] = job.schedule
    if job.nominal_ms is not None:
        known["nominal_at"] = format_instant(job.nominal_ms)
    return known


def _value(found: re.Match[str], known: Mapping[str, Any]) -> str:
    if not found["closed"]:
        near = found[0][:40]
        raise InvalidInput(_PATH, f"{shown(near)} is not closed", "${name}, or $${ for a literal ${")
    name, bar, form = found["inside"].partition("|")
    if bar and form != "json":
        raise InvalidInput(_PATH, f"{shown(form)} is unknown", "|json, or nothing")
    value: Any = known
    for part in name.split("."):
        value = _part(value, part, name, known)
    if isinstance(value, str) and not bar:
        return value
    return orjson.dumps(value, default=str).decode()


def _part(value: Any, part: str, name: str, known: Mapping[str, Any]) -> Any:
    if isinstance(value, Mapping) and part in value:
        return value[part]
    if isinstance(value, list) and part.isascii() and part.isdecimal() and len(part) < 9 and int(part) < len(value):
        return value[int(part)]
    raise InvalidInput(
        _PATH,
        f"${{{name[:100]}}} has no value in this job",
        f"one of {', '.join(sorted(known))}, or a field of payload or values",
    )
