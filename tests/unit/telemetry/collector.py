"""A collector of traces: takes OTLP over HTTP on a port of its own and keeps every span."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class CollectedSpan:
    service: str
    scope: str
    name: str
    trace: str
    id: str
    parent: str
    """Empty where it has none."""
    attributes: dict[str, Any]
    failed: bool


@dataclass
class Collector:
    url: str
    spans: list[CollectedSpan] = field(default_factory=list)

    def of(self, trace: str) -> list[CollectedSpan]:
        return [span for span in self.spans if span.trace == trace]


@contextmanager
def collecting() -> Iterator[Collector]:
    class Taking(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/v1/traces":
                collector.spans.extend(_read(body))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Taking)
    collector = Collector(f"http://127.0.0.1:{server.server_port}")
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    try:
        yield collector
    finally:
        server.shutdown()
        serving.join()
        server.server_close()


def _read(body: bytes) -> Iterator[CollectedSpan]:
    for of_process in ExportTraceServiceRequest.FromString(body).resource_spans:
        service = _attributes(of_process.resource.attributes)["service.name"]
        for of_scope in of_process.scope_spans:
            for span in of_scope.spans:
                yield CollectedSpan(
                    service=service,
                    scope=of_scope.scope.name,
                    name=span.name,
                    trace=span.trace_id.hex(),
                    id=span.span_id.hex(),
                    parent=span.parent_span_id.hex(),
                    attributes=_attributes(span.attributes),
                    failed=span.status.code == span.status.STATUS_CODE_ERROR,
                )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}
