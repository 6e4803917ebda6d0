"""Our spans as OpenTelemetry's, named and described by its semantic conventions."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from threading import Thread

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from hascheduler import __version__
from hascheduler.model.redaction import redacted
from hascheduler.model.trace import TraceContext, trace_from_headers
from hascheduler.telemetry.tracing import JOB_ATTEMPT, JOB_ID, Attribute, Span, SpanKind

CLOSE_LIMIT_S = 2.0
_KINDS = {
    SpanKind.SUBMIT: trace.SpanKind.SERVER,
    SpanKind.FIRE: trace.SpanKind.INTERNAL,
    SpanKind.DISPATCH: trace.SpanKind.PRODUCER,
    SpanKind.ATTEMPT: trace.SpanKind.CONSUMER,
}
_OPERATIONS = {SpanKind.DISPATCH: ("send", "publish"), SpanKind.ATTEMPT: ("process", "process")}
"""Type and name of the messaging operation."""
_FORMAT = TraceContextTextMapPropagator()


class OpenTelemetryTracer:
    """`hascheduler.telemetry.tracing.Tracer`. ``messaging`` describes what carries the messages, if anything does."""

    enabled = True

    def __init__(self, provider: TracerProvider, messaging: Mapping[str, str] | None = None) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("hascheduler", __version__)
        self._messaging = messaging

    def start(
        self, kind: SpanKind, subject: str, parent: TraceContext | None, attributes: Mapping[str, Attribute]
    ) -> Span:
        described = dict(attributes)
        if self._messaging is not None and kind in _OPERATIONS:
            type, name = _OPERATIONS[kind]
            described |= {
                **self._messaging,
                "messaging.operation.type": type,
                "messaging.operation.name": name,
                "messaging.message.id": f"{attributes.get(JOB_ID)}/{attributes.get(JOB_ATTEMPT)}",
            }
        # Whatever is current here is not its parent: a loop of the leader serves many traces.
        context = Context() if parent is None else _FORMAT.extract(parent.headers(), Context())
        return _OpenTelemetrySpan(
            self._tracer.start_span(f"{kind} {subject}", context, kind=_KINDS[kind], attributes=described)
        )

    def close(self) -> None:
        # A collector that is away has the SDK wait for longer than a process has that was told to end.
        closing = Thread(target=self._provider.shutdown, name="closing the traces", daemon=True)
        closing.start()
        closing.join(CLOSE_LIMIT_S)


class _OpenTelemetrySpan:
    __slots__ = ("_span", "context")

    def __init__(self, span: trace.Span) -> None:
        self._span = span
        headers: dict[str, str] = {}
        _FORMAT.inject(headers, trace.set_span_in_context(span, Context()))
        self.context = trace_from_headers(headers)

    def set(self, name: str, value: Attribute) -> None:
        self._span.set_attribute(name, value)

    def fail(self, error_type: str, description: str = "") -> None:
        self._span.set_attribute("error.type", error_type)
        self._span.set_status(trace.StatusCode.ERROR, redacted(description))

    def current(self) -> AbstractContextManager[None]:
        return _current(self._span)

    def end(self) -> None:
        self._span.end()


@contextmanager
def _current(span: trace.Span) -> Iterator[None]:
    # What the block raises is for `fail` to say.
    with trace.use_span(span, record_exception=False, set_status_on_exception=False):
        yield
