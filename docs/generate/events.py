"""The events of jobs and schedules: their types and fields, and the two ways to receive them."""

import inspect
from dataclasses import fields

from docs.generate.markdown import code, fenced, head, plain_docstring, table
from hascheduler.api.ops import events
from hascheduler.model.event import Event, EventType, encode_event
from hascheduler.rabbitmq.publisher import RabbitEventExchange

_INTRO = """\
One event for each step of a job's life, and one where times of a schedule are missed: once for each move of its cursor
that counts any, whichever replica leads. Events are made from the change stream alone, so every replica makes the same
ones with the same ids, and a client may go on at another replica.
"""
_MEANINGS = {
    EventType.SUBMITTED: "the job exists: a client submitted it, or its schedule fired",
    EventType.DISPATCHED: "the leader promised this attempt to one processor",
    EventType.STARTED: "the processor began this attempt",
    EventType.RETURNED: "the attempt was given back, lost, or failed with tries left; the job waits again",
    EventType.REPRIORITIZED: "the job has another priority",
    EventType.CANCEL_REQUESTED: "a running job was asked to stop",
    EventType.REVIVED: "a failed job waits again, because a client retried it",
    EventType.SUCCEEDED: "the job ended well",
    EventType.FAILED: "the job ended for good without success",
    EventType.CANCELLED: "the job was cancelled",
    EventType.SCHEDULE_MISSED: "times of the schedule got the verdict missed: there is no job for them",
}
_FIELDS = {
    "id": "the position in the stream; send it as `Last-Event-ID` to go on after it",
    "at": "when the database took the write, by its clock",
    "type": "one of the types above",
    "job": "the job's id; null where the event is of a schedule",
    "tenant": "its tenant, or the schedule's",
    "definition": "its definition, or that of the schedule's jobs",
    "schedule": "the schedule that made it, or that missed times",
    "attempt": "the attempt that the event is about",
    "processor": "that attempt's processor",
    "failures": "how many tries failed; where the job is returned or failed",
    "losses": "how many tries were lost with their processor; where the job is returned or failed",
    "retry_at": "when it may run again; where it is returned",
    "priority": "the new one; where it is reprioritized",
    "count": "how many times were missed; of `schedule.missed`",
    "nominal_at": "the first of them; times that fired may lie between it and the last",
    "through_at": "the last of them",
    "error": "why the job failed, its first 500 characters without secrets; where it failed",
}


def page() -> str:
    example = Event("1893456000.0000000007", 1_893_456_000_000, EventType.STARTED, "01J", "default", "log", attempt=1)
    sent = encode_event(example)
    assert len(sent) == len(fields(Event))
    return "\n".join(
        (
            head("Events", "hascheduler/model/event.py", _INTRO),
            table(("type", "means"), ((code(kind.value), _MEANINGS[kind]) for kind in EventType)),
            "## Fields\n",
            "A field is null where it does not apply, or where the change did not carry it.\n",
            table(("field", "what it is"), ((code(name), _FIELDS[name]) for name in sent)),
            "## Over HTTP\n",
            "`GET /v1/events`, with `type`, `definition`, … as filters.\n",
            _docstring(events),
            "## On RabbitMQ\n",
            "With `HASCHEDULER_EVENTS_EXCHANGE=name` the leader publishes each event to that topic exchange.\n",
            _docstring(RabbitEventExchange),
        )
    )


def _docstring(documented: object) -> str:
    """Return the docstring after its first line; what is indented becomes a block."""
    _, _, rest = (inspect.getdoc(documented) or "").partition("\n\n")
    parts: list[str] = []
    for paragraph in rest.replace("::\n\n", "\n\n").split("\n\n"):
        is_block = paragraph.startswith("    ")
        if is_block and parts and parts[-1].startswith("```"):
            parts[-1] = parts[-1].removesuffix("\n```\n") + "\n\n" + inspect.cleandoc(paragraph) + "\n```\n"
        elif is_block:
            parts.append(fenced(inspect.cleandoc(paragraph)))
        elif paragraph.strip() and paragraph.strip() != "::":
            parts.append(plain_docstring(paragraph) + "\n")
    return "\n".join(parts)
