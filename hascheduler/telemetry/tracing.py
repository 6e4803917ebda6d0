"""The port of traces: the spans along a job's way, whatever records them.

::

    SUBMIT  or  FIRE            the request that asked for the job; the fire that made it. Kept with the job
       └─ DISPATCH              one message of the leader, once an attempt
            └─ ATTEMPT          the handler at work, and whatever it traces itself

A retry is another DISPATCH and another ATTEMPT in the same trace. If no message goes out (transport ``mongo``, HTTP
processors), the attempt follows the submit directly.

`NO_TRACING` records nothing and passes on what it is given: a caller's trace reaches the handler through processes that
do not trace.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from enum import StrEnum
from typing import Protocol

from hascheduler.errors import CallerError
from hascheduler.model.trace import TraceContext

Attribute = str | int | bool
JOB_ID = "hascheduler.job.id"
JOB_ATTEMPT = "hascheduler.job.attempt"
JOB_DEFINITION = "hascheduler.job.definition"
JOB_SCHEDULE = "hascheduler.job.schedule"
JOBS = "hascheduler.jobs"
OUTCOME = "hascheduler.outcome"
TERM = "hascheduler.term"
PROCESSOR = "hascheduler.processor"


class SpanKind(StrEnum):
    """What a span is about; the span's name is this and the name of its subject."""

    SUBMIT = "submit"
    FIRE = "fire"
    DISPATCH = "dispatch"
    ATTEMPT = "attempt"


class Span(Protocol):
    """One piece of work from its `Tracer.start` to `end`; a span that is never ended is never recorded."""

    @property
    def context(self) -> TraceContext | None:
        """Return the parent for what belongs to this span; without tracing, the span's own parent, if any."""

    def set(self, name: str, value: Attribute) -> None: ...

    def fail(self, error_type: str, description: str = "") -> None:
        """Mark the span as failed. Secrets are removed from ``description``."""

    def current(self) -> AbstractContextManager[object]:
        """Make the span current within the block, in this task and all that it starts, so that others nest in it."""

    def end(self) -> None: ...


class Tracer(Protocol):
    """Makes spans. None of its methods raises, or waits for the collector."""

    @property
    def enabled(self) -> bool:
        """Return True if it records; otherwise callers should not gather what only spans need."""

    def start(
        self, kind: SpanKind, subject: str, parent: TraceContext | None, attributes: Mapping[str, Attribute]
    ) -> Span:
        """Start a span now; without ``parent`` it begins a trace."""

    def close(self) -> None:
        """Hand over what is recorded, within two seconds, for which the caller waits."""


@contextmanager
def traced(
    tracer: Tracer,
    kind: SpanKind,
    subject: str,
    parent: TraceContext | None,
    attributes: Mapping[str, Attribute],
) -> Iterator[Span]:
    """Run the block as a current span. An exception is the span's failure, unless it is the caller's own mistake."""
    span = tracer.start(kind, subject, parent, attributes)
    try:
        with span.current():
            yield span
    except CallerError:
        raise
    except BaseException as error:
        span.fail(type(error).__qualname__, str(error))
        raise
    finally:
        span.end()


class _Untraced:
    """A `Span` that records nothing."""

    __slots__ = ("context",)

    def __init__(self, context: TraceContext | None) -> None:
        self.context = context

    def set(self, name: str, value: Attribute) -> None:
        pass

    def fail(self, error_type: str, description: str = "") -> None:
        pass

    def current(self) -> AbstractContextManager[object]:
        return nullcontext()

    def end(self) -> None:
        pass


class _NoTracing:
    enabled = False

    def start(
        self, kind: SpanKind, subject: str, parent: TraceContext | None, attributes: Mapping[str, Attribute]
    ) -> Span:
        return _Untraced(parent) if parent is not None else UNTRACED

    def close(self) -> None:
        pass


UNTRACED: Span = _Untraced(None)
NO_TRACING: Tracer = _NoTracing()
