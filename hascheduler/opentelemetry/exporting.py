"""Sends spans to a collector over OTLP/HTTP, as OpenTelemetry's own ``OTEL_…`` variables say."""

import os
from collections.abc import Mapping, Sequence

import structlog
from opentelemetry import trace
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

from hascheduler import __version__
from hascheduler.errors import InvalidInput
from hascheduler.opentelemetry.tracer import OpenTelemetryTracer

log = structlog.get_logger(__name__)

_SPOKEN = "http/protobuf"


def otlp_tracer(
    service: str, instance: str, messaging: Mapping[str, str] | None, *, for_handlers: bool = False
) -> OpenTelemetryTracer:
    """A tracer that exports; ``for_handlers`` too, that trace by themselves and did not bring a provider of their own.

    The ``OTEL_…`` variables come before ``service``; what is wrong with them is an `InvalidInput`.
    """
    for variable in (OTEL_EXPORTER_OTLP_PROTOCOL, OTEL_EXPORTER_OTLP_TRACES_PROTOCOL):
        wanted = os.environ.get(variable, _SPOKEN)
        if wanted != _SPOKEN:
            raise InvalidInput((variable,), f"{wanted[:64]!r} is not spoken here", _SPOKEN)
    try:
        provider = TracerProvider(resource=_resource(service, instance), shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(Exporter(OTLPSpanExporter())))
    except (ValueError, OSError) as error:
        raise InvalidInput(("OTEL_…",), f"OpenTelemetry refuses its variables: {str(error)[:200]}") from None
    if for_handlers and isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        trace.set_tracer_provider(provider)
    return OpenTelemetryTracer(provider, messaging)


class Exporter(SpanExporter):
    """``exporter``, but what does not get through is told once, not with every batch, and raises nothing."""

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
                log.warning("spans_not_exported", reason="the collector does not take them; they are dropped")
            self._lost += len(spans)
        elif self._lost:
            log.info("spans_exported_again", dropped=self._lost)
            self._lost = 0
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()


def _resource(service: str, instance: str) -> Resource:
    """What the environment says of this process, and of what it does not say the least that tells them apart."""
    own = {SERVICE_NAME: service, SERVICE_VERSION: __version__, SERVICE_INSTANCE_ID: instance}
    return Resource.create({**own, **OTELResourceDetector().detect().attributes})
