"""OpenTelemetry as the recorder of traces, behind `hascheduler.telemetry.tracing.Tracer`.

Spans have the names and attributes of OpenTelemetry's semantic conventions, and go to a collector as OpenTelemetry's
own ``OTEL_…`` variables say. Recording must never slow or stop the scheduler: a span costs memory until it is exported,
a thread of the SDK exports, and a collector that does not answer costs spans. The optional extra ``otel`` installs what
this module imports; only a process that traces imports it, so it is not part of `hascheduler.telemetry`.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from threading import Thread

import structlog
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.environment_variables import OTEL_EXPORTER_OTLP_PROTOCOL, OTEL_EXPORTER_OTLP_TRACES_PROTOCOL
from opentelemetry.sdk.resources import (
    SERVICE_INSTANCE_ID,
    SERVICE_NAME,
    SERVICE_VERSION,
    OTELResourceDetector,
    Resource,
)
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from hascheduler import __version__
from hascheduler.errors import InvalidInput
from hascheduler.model.trace import TraceContext, trace_from_headers
from hascheduler.model.values.redaction import redacted
from hascheduler.telemetry.tracing import JOB_ATTEMPT, JOB_ID, Attribute, Span, SpanKind

log = structlog.get_logger(__name__)

CLOSE_LIMIT_S = 2.0
_SUPPORTED = "http/protobuf"
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
        # With its collector away the SDK waits for longer than an ending process may.
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

    def current(self) -> AbstractContextManager[object]:
        # What the block raises is for `fail` to say.
        return trace.use_span(self._span, record_exception=False, set_status_on_exception=False)

    def end(self) -> None:
        self._span.end()


def otlp_tracer(
    service: str, instance: str, messaging: Mapping[str, str] | None, *, for_handlers: bool = False
) -> OpenTelemetryTracer:
    """Return a tracer that exports.

    With ``for_handlers`` it also exports the spans of handlers that trace by themselves and did not bring a provider of
    their own. The ``OTEL_…`` variables take precedence over ``service``; a mistake in them raises `InvalidInput`.
    """
    for variable in (OTEL_EXPORTER_OTLP_PROTOCOL, OTEL_EXPORTER_OTLP_TRACES_PROTOCOL):
        wanted = os.environ.get(variable, _SUPPORTED)
        if wanted != _SUPPORTED:
            raise InvalidInput((variable,), f"{wanted[:64]!r} is not supported", _SUPPORTED)
    try:
        provider = TracerProvider(resource=_resource(service, instance), shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(Exporter(OTLPSpanExporter())))
    except (ValueError, OSError) as error:
        raise InvalidInput(("OTEL_…",), f"OpenTelemetry refuses its variables: {str(error)[:200]}") from None
    if for_handlers and isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        trace.set_tracer_provider(provider)
    return OpenTelemetryTracer(provider, messaging)


class Exporter(SpanExporter):
    """An exporter that logs lost spans once, not with every batch, and never raises."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._lost = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        try:
            result = self._exporter.export(spans)
        except Exception:  # whatever a collector or the way to it comes up with
            result = SpanExportResult.FAILURE
        if result is not SpanExportResult.SUCCESS:
            if not self._lost:
                log.warning("span_export_failed", reason="the collector does not accept spans; they are dropped")
            self._lost += len(spans)
        elif self._lost:
            log.info("span_export_recovered", dropped=self._lost)
            self._lost = 0
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()


def _resource(service: str, instance: str) -> Resource:
    """Return what the environment says about this process, and the least that tells processes apart."""
    own = {SERVICE_NAME: service, SERVICE_VERSION: __version__, SERVICE_INSTANCE_ID: instance}
    return Resource.create({**own, **OTELResourceDetector().detect().attributes})
