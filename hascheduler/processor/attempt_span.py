"""The span of one attempt: from its start in the database until the database knows its end, current in its handler."""

from contextlib import AbstractContextManager

from hascheduler.model.trace import TraceContext
from hascheduler.ports import Delivery, Outcome, StartedJob
from hascheduler.processor.failures import Failure
from hascheduler.processor.invocation import Drop, End, GiveBack
from hascheduler.telemetry.tracing import (
    JOB_ATTEMPT,
    JOB_DEFINITION,
    JOB_ID,
    JOB_SCHEDULE,
    OUTCOME,
    PROCESSOR,
    Attribute,
    Span,
    SpanKind,
    Tracer,
    traced,
)


def attempt_span(
    tracer: Tracer, delivery: Delivery, started: StartedJob, processor_id: str
) -> AbstractContextManager[Span]:
    attributes: dict[str, Attribute] = {
        JOB_ID: started.id,
        JOB_ATTEMPT: started.attempt,
        JOB_DEFINITION: started.definition,
        PROCESSOR: processor_id,
    }
    if started.schedule is not None:
        attributes[JOB_SCHEDULE] = started.schedule
    return traced(tracer, SpanKind.ATTEMPT, started.definition, _parent(delivery, started), attributes)


def say_end(span: Span, end: End) -> None:
    """How the attempt ended."""
    match end:
        case Outcome(state):
            span.set(OUTCOME, state.value)
        case Failure(error, error_type=error_type):
            span.set(OUTCOME, "failed")
            span.fail(error_type, error)
        case GiveBack():
            span.set(OUTCOME, "given_back")
        case Drop():
            span.set(OUTCOME, "revoked")


def _parent(delivery: Delivery, started: StartedJob) -> TraceContext | None:
    """What the message says, but where the job itself says that it belongs elsewhere: a message may be anybody's."""
    told, kept = delivery.trace, started.trace
    if told is not None and (kept is None or told.trace_id == kept.trace_id):
        return told
    return kept
