"""Make the events of a job or a schedule from one change of the stream.

They follow from the change and the job's state before it alone, so every replica that follows the stream makes the same
events. If a change was not seen (``rev`` was edited by hand), its events are missing: none are made up. A change that
the mirror is ahead of, because it read the document meanwhile, still gives its events.
"""

from collections.abc import Mapping
from typing import Any

from hascheduler.mirror.changes import Change, Operation
from hascheduler.model.documents.schedule import decode_missed
from hascheduler.model.event import ERROR_LENGTH_MAX, Event, EventType, next_in_change, seconds_of
from hascheduler.model.job import TERMINAL, JobRef, JobState, schedule_of
from hascheduler.model.values.fields import is_integer
from hascheduler.model.values.instants import LATEST_MS
from hascheduler.model.values.redaction import redacted_beginning
from hascheduler.schema.schedule import ScheduleRef

_ENDS = {state.value: EventType(state.value) for state in TERMINAL}
_PENDING, _DISPATCHED, _RUNNING = JobState.PENDING.value, JobState.DISPATCHED.value, JobState.RUNNING.value
_ENTERED = {
    _PENDING: EventType.RETURNED,
    _DISPATCHED: EventType.DISPATCHED,
    _RUNNING: EventType.STARTED,
    **_ENDS,
}
_CARRIED = {
    EventType.SUBMITTED: "submitted_at_ms",
    EventType.DISPATCHED: "dispatched_at_ms",
    EventType.STARTED: "started_at_ms",
    EventType.CANCEL_REQUESTED: "cancel_requested_at_ms",
    **dict.fromkeys(_ENDS.values(), "finished_at_ms"),
}
"""The field with the time of each change, for databases whose events have no time."""


def events_of(change: Change, known: JobRef | None) -> list[Event]:
    """Return the events in ``change`` of a job that was ``known`` before; at most `EVENTS_OF_A_CHANGE_MAX`.

    If the job is not known here, events of a patch have no tenant and no definition.
    """
    if not change.position or change.operation is _DELETE or not isinstance(change.id, str):
        return []
    fields = change.fields
    rev = _integer(fields.get("rev"))
    before = known if known is not None and rev is not None and rev > known.rev else None
    if change.operation is _PATCH:
        types = _types_of_patch(fields)
        subject: tuple[str | None, str | None] = (None, None) if known is None else (known.tenant, known.definition)
    else:
        types = _types_of_document(fields, known, before)
        subject = (_text(fields.get("tenant")), _text(fields.get("definition")))
    return [
        _event(type, change, next_in_change(change.position) if place else change.position, subject, before)
        for place, type in enumerate(types)
    ]


def events_of_schedule(change: Change, known: ScheduleRef | None) -> list[Event]:
    """Return an event if ``change`` counts times of the schedule as missed; ``known`` is the schedule before.

    The cursor passes each time once, by a write that compares its old place, and the same write says which times were
    missed. So exactly one change counts them, whoever leads. A whole document also repeats what an earlier change said.
    """
    missed = decode_missed(change.fields.get("missed"))
    if missed is None or known is None or not change.position:
        return []
    if change.operation is not Operation.PATCH and missed.last_ms <= known.cursor_ms:
        return []
    return [
        Event(
            change.position,
            seconds_of(change.position) * 1_000 if change.at_ms is None else change.at_ms,
            EventType.SCHEDULE_MISSED,
            None,
            known.template.tenant,
            known.template.definition,
            known.name,
            count=missed.count,
            nominal_ms=missed.first_ms,
            through_ms=missed.last_ms,
        )
    ]


def _types_of_patch(fields: Mapping[str, object]) -> list[EventType]:
    state = fields.get("state")
    if state == _PENDING and "attempt" in fields:
        # The attempt number grows without a claim, so that no decision about the old attempt can be applied any more.
        return [EventType.REVIVED]
    if isinstance(state, str):
        return [_ENTERED[state]] if state in _ENTERED else []
    if fields.get("cancel_requested_at_ms") is not None:
        return [EventType.CANCEL_REQUESTED]
    return [EventType.REPRIORITIZED] if "priority" in fields else []


def _types_of_document(fields: Mapping[str, object], known: JobRef | None, before: JobRef | None) -> list[EventType]:
    state, attempt = fields.get("state"), fields.get("attempt")
    if not isinstance(state, str) or state not in _ENTERED:
        return []
    if before is not None:
        if state != before.state or (state != _PENDING and attempt != before.attempt):
            return [_ENTERED[state]]
        if fields.get("cancel_requested_at_ms") is not None and before.cancel_requested_at_ms is None:
            return [EventType.CANCEL_REQUESTED]
        return [EventType.REPRIORITIZED] if fields.get("priority") != before.priority else []
    if state in _ENDS:
        return [_ENDS[state]]
    if fields.get("rev") == 1:
        # A fire may be inserted as dispatched.
        return [EventType.SUBMITTED, EventType.DISPATCHED] if state == _DISPATCHED else [EventType.SUBMITTED]
    return [EventType.REVIVED] if known is None and state == _PENDING and _integer(attempt) else []


def _event(
    type: EventType, change: Change, id: str, subject: tuple[str | None, str | None], before: JobRef | None
) -> Event:
    """Return the event; ``subject`` is the tenant and the definition of the job."""
    fields: Mapping[str, Any] = change.fields
    job = str(change.id)
    processor = None
    if type not in _WAITING:
        processor = _text(fields.get("processor")) or (before.processor if before else None)
    failures = losses = retry_at_ms = priority = error = None
    if type in _COUNTED:
        failures = _integer(_value("failures", fields, before))
        losses = _integer(_value("losses", fields, before))
        if type is _RETURNED:
            retry_at_ms = _instant(_value("retry_at_ms", fields, before))
            text = _last_error(fields, before)
        else:
            text = _text(fields.get("error"))
        error = None if text is None else redacted_beginning(text, ERROR_LENGTH_MAX)
    elif type is _REPRIORITIZED:
        priority = _integer(fields.get("priority"))
    # By position: there are several for each job.
    return Event(
        id,
        _at_ms(type, change),
        type,
        job,
        subject[0],
        subject[1],
        schedule_of(job),
        0 if type is _SUBMITTED else _integer(_value("attempt", fields, before)),
        processor,
        failures,
        retry_at_ms,
        priority,
        losses,
        error,
    )


# Module names, because looking up an enum member costs more than comparing it.
_SUBMITTED, _RETURNED, _REPRIORITIZED = EventType.SUBMITTED, EventType.RETURNED, EventType.REPRIORITIZED
_PATCH, _DELETE = Operation.PATCH, Operation.DELETE
_WAITING = frozenset({EventType.SUBMITTED, EventType.REVIVED})
_COUNTED = frozenset({EventType.RETURNED, EventType.FAILED})


def _value(name: str, fields: Mapping[str, Any], before: JobRef | None) -> Any:
    """Return the value after the change: the changed one, or the one before."""
    return fields[name] if name in fields else getattr(before, name, None)


def _last_error(fields: Mapping[str, Any], before: JobRef | None) -> str | None:
    """Return the error of the attempt that has just ended; a whole document also repeats that of an earlier one."""
    number, _, error = (_text(fields.get("last_error")) or "").partition(" ")
    return _text(error) if number == str(_value("attempt", fields, before)) else None


def _at_ms(type: EventType, change: Change) -> int:
    if change.at_ms is not None:
        return change.at_ms
    carried = _instant(change.fields.get(_CARRIED.get(type, "")))
    return seconds_of(change.position) * 1_000 if carried is None else carried


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _integer(value: object) -> int | None:
    return value if is_integer(value) else None


def _instant(value: object) -> int | None:
    instant = _integer(value)
    return instant if instant is not None and 0 <= instant < LATEST_MS else None
