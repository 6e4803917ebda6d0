"""The events that subscribers get: one for each step of a job's life, and one if times of a schedule are missed.

Events are made from the change stream alone, so every replica makes the same ones, with the same ids. The id is the
*position* of the change: the cluster time of its write, then, if that time has several events, a number::

    1893456000.0000000007            seconds, increment
    1893456000.0000000007.000001     the next event of the same time

Positions have a fixed width: as texts they sort in the order of the stream. Each change has room for
`EVENTS_OF_A_CHANGE_MAX` events; several changes have the same time if the database writes them at once.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from hascheduler.model.values.frozen import fast_frozen
from hascheduler.model.values.instants import format_instant

EVENTS_OF_A_CHANGE_MAX = 2
ERROR_LENGTH_MAX = 500
"""The longest error of an event: replicas keep thousands of events in memory."""
POSITION_PATTERN = r"^[0-9]{10}\.[0-9]{10}(\.[0-9]{6})?$"
_POSITION = re.compile(POSITION_PATTERN[:-1] + r"\Z")
_OF_TIME = 21
"""The length of a position without a number."""
_NUMBER_MAX = 999_999


class EventType(StrEnum):
    """The type of an event of a job or a schedule."""

    SUBMITTED = "submitted"
    """The job exists: a client submitted it, or its schedule fired."""
    DISPATCHED = "dispatched"
    """The leader assigned the attempt to a processor."""
    STARTED = "started"
    """The processor started the attempt."""
    RETURNED = "returned"
    """The attempt was given back, lost, or failed with tries left; the job waits again."""
    REPRIORITIZED = "reprioritized"
    """The priority of the job changed."""
    CANCEL_REQUESTED = "cancel_requested"
    """The running job was asked to stop."""
    REVIVED = "revived"
    """A client retried the failed or cancelled job; it waits again."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    """The job failed for good."""
    CANCELLED = "cancelled"
    SCHEDULE_MISSED = "schedule.missed"
    """Nominal times of a schedule got the verdict missed, so no job is made for them."""


@fast_frozen
@dataclass(frozen=True, slots=True)
class Event:
    """An event of a job or a schedule.

    ``at_ms`` is when the database took the write, by its clock. None: does not apply, or is not known here.

    ``attempt`` and ``processor`` are those that the event is about: if an attempt ended, the ended one's. ``failures``,
    ``losses`` and ``retry_at_ms`` are set if a job is returned, the first two also if it fails, ``priority`` if it
    changes. ``error`` is the beginning of a failed job's or a failed or lost attempt's error, without secrets. An event
    of a schedule has no ``job``, and the first and the last of ``count`` times.
    """

    id: str
    at_ms: int
    type: EventType
    job: str | None
    tenant: str | None = None
    definition: str | None = None
    schedule: str | None = None
    attempt: int | None = None
    processor: str | None = None
    failures: int | None = None
    retry_at_ms: int | None = None
    priority: int | None = None
    losses: int | None = None
    error: str | None = None
    count: int | None = None
    nominal_ms: int | None = None
    through_ms: int | None = None

    @property
    def is_identified(self) -> bool:
        """Return True if the event names the tenant and the definition of its job or schedule."""
        return self.tenant is not None and self.definition is not None


def encode_event(event: Event) -> Mapping[str, Any]:
    """Return the JSON object that the API's stream and the broker carry."""
    return {
        "id": event.id,
        "at": format_instant(event.at_ms),
        "type": event.type.value,
        "job": event.job,
        "tenant": event.tenant,
        "definition": event.definition,
        "schedule": event.schedule,
        "attempt": event.attempt,
        "processor": event.processor,
        "failures": event.failures,
        "losses": event.losses,
        "retry_at": _instant_or_none(event.retry_at_ms),
        "priority": event.priority,
        "error": event.error,
        "count": event.count,
        "nominal_at": _instant_or_none(event.nominal_ms),
        "through_at": _instant_or_none(event.through_ms),
    }


def _instant_or_none(at_ms: int | None) -> str | None:
    return None if at_ms is None else format_instant(at_ms)


def position(seconds: int, increment: int, number: int = 0) -> str:
    """Return the position of the ``number``-th event of a cluster time; numbers above the maximum share the last."""
    text = f"{seconds:010d}.{increment:010d}"
    return f"{text}.{min(number, _NUMBER_MAX):06d}" if number else text


def is_position(text: str) -> bool:
    return _POSITION.match(text) is not None


def seconds_of(position: str) -> int:
    """Return the seconds of the position's cluster time."""
    return int(position[:10])


def number_of(position: str) -> int:
    """Return the number of the position's event within its cluster time."""
    return int(position[_OF_TIME + 1 :] or 0)


def next_in_change(position: str) -> str:
    """Return the position of the second event of the change at ``position``."""
    return f"{position[:_OF_TIME]}.{min(number_of(position) + 1, _NUMBER_MAX):06d}"
