"""The events of jobs and schedules: their types and fields, and the two ways to receive them."""

import inspect
from dataclasses import fields

from docs.generate.markdown import code, fenced, plain_docstring, table
from hascheduler.api.ops import events
from hascheduler.model.event import Event, EventType, encode_event
from hascheduler.rabbitmq.publisher import RabbitEventExchange

_INTRO = """\
## Events

There is one event for each step of a job's life, and one whenever a schedule misses fire times. All replicas make the
same events with the same ids from the change stream, so a client may continue at another replica.
"""
_MEANINGS = {
    EventType.SUBMITTED: "the job exists: a client submitted it, or its schedule fired",
    EventType.DISPATCHED: "the leader gave this attempt to a processor",
    EventType.STARTED: "the processor began this attempt",
    EventType.RETURNED: "the attempt was given back, lost, or failed with tries left; the job waits again",
    EventType.REPRIORITIZED: "the job has another priority",
    EventType.CANCEL_REQUESTED: "a running job was asked to stop",
    EventType.REVIVED: "a failed job waits again, because a client retried it",
    EventType.SUCCEEDED: "the job succeeded",
    EventType.FAILED: "the job failed for good",
    EventType.CANCELLED: "the job was cancelled",
    EventType.SCHEDULE_MISSED: "fire times of the schedule got the verdict missed, and have no job",
}
_FIELDS = {
    "id": "the position in the stream; send it as `Last-Event-ID` to continue after it",
    "at": "when the database made the write, by its clock",
    "type": "one of the types above",
    "job": "the job's id; null for an event of a schedule",
    "tenant": "its tenant, or the schedule's",
    "definition": "its definition, or that of the schedule's jobs",
    "schedule": "the schedule that made it, or that missed times",
    "attempt": "the attempt that the event is about",
    "processor": "that attempt's processor",
    "failures": "how many tries failed, if the job is returned or failed",
    "losses": "how many tries were lost with their processor, if the job is returned or failed",
    "retry_at": "when it may run again, if it is returned",
    "priority": "the new one, if it is reprioritized",
    "count": "how many fire times `schedule.missed` covers",
    "nominal_at": "the first of them; times that fired may lie between it and the last",
    "through_at": "the last of them",
    "error": "why the job or the returned attempt failed: the first 500 characters, without secrets",
}


def section() -> str:
    example = Event("1893456000.0000000007", 1_893_456_000_000, EventType.STARTED, "01J", "default", "log", attempt=1)
    sent = encode_event(example)
    assert len(sent) == len(fields(Event))
    return "\n".join(
        (
            _INTRO,
            table(("type", "means"), ((code(kind.value), _MEANINGS[kind]) for kind in EventType)),
            "### Fields of an event\n",
            "A field is null if it does not apply, or if the change did not carry it.\n",
            table(("field", "what it is"), ((code(name), _FIELDS[name]) for name in sent)),
            "### Events over HTTP\n",
            "`GET /v1/events`, with `type`, `definition`, … as filters.\n",
            _docstring(events),
            "### Events on RabbitMQ\n",
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
