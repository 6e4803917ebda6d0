"""Fills the placeholders of a payload: ``${name}`` in any text of it, ``$$`` for a dollar sign.

Only schedules that ask for it have their payload filled, at each fire, from what the schedule and the nominal time fix;
so every leader makes the same job.
"""

from collections.abc import Iterator, Mapping
from string import Template
from typing import Any

from hascheduler.model.instants import LATEST_MS, format_instant
from hascheduler.model.job import JOB_ID_TAIL_MAX

PLACEHOLDERS = ("schedule", "target", "job_id", "nominal_at", "nominal_date", "nominal_ms")
"""Beside these, ``label.<key>`` for each label. Dates and times are UTC."""


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
    """As `placeholder_values`, each as long as it can be: the same for every job of the schedule."""
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
    """Where in ``payload`` which placeholder has no value in ``known``."""
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
