"""A tracer whose spans stay in memory, and how tests look at them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Sampler

from hascheduler.model.trace import TraceContext
from hascheduler.telemetry.otlp import OpenTelemetryTracer

CALLER = TraceContext("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")


@dataclass
class Recorded:
    """``handler`` is the tracer of a handler that traces by itself."""

    sampler: Sampler = ALWAYS_ON
    messaging: Mapping[str, str] | None = None
    exporter: InMemorySpanExporter = field(default_factory=InMemorySpanExporter)

    def __post_init__(self) -> None:
        self.provider = TracerProvider(sampler=self.sampler, shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = OpenTelemetryTracer(self.provider, self.messaging)
        self.handler = self.provider.get_tracer("handler")

    @property
    def names(self) -> list[str]:
        """In the order in which they ended."""
        return [span.name for span in self.exporter.get_finished_spans()]

    def one(self, name: str) -> ReadableSpan:
        found = [span for span in self.exporter.get_finished_spans() if span.name == name]
        assert len(found) == 1, f"{len(found)} of {name!r} among {self.names}"
        return found[0]


def id_of(span: ReadableSpan) -> str:
    assert span.context is not None
    return format(span.context.span_id, "016x")


def trace_of(span: ReadableSpan) -> str:
    assert span.context is not None
    return format(span.context.trace_id, "032x")


def parent_of(span: ReadableSpan) -> str | None:
    return None if span.parent is None else format(span.parent.span_id, "016x")


def span_id(context: TraceContext | None) -> str:
    assert context is not None
    return context.traceparent[36:52]
