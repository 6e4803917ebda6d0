"""The tracing span of a request that submits jobs, within the caller's trace if it sends one; the jobs continue it."""

from contextlib import AbstractContextManager

from fastapi import Request

from hascheduler.api.services import ApiServices
from hascheduler.model.trace import TRACEPARENT, TRACESTATE, TraceContext, trace_context
from hascheduler.telemetry.tracing import Attribute, Span, SpanKind, traced


def submit_span(
    request: Request | None, services: ApiServices, subject: str, **attributes: Attribute
) -> AbstractContextManager[Span]:
    """``attributes`` have dots in their names; ``subject`` is a definition where there is one. ``request`` is None for
    a job that an operation makes."""
    if request is None:
        return traced(services.tracer, SpanKind.SUBMIT, subject, None, attributes)
    described = {"http.request.method": request.method, "url.path": request.scope["path"], **attributes}
    return traced(services.tracer, SpanKind.SUBMIT, subject, _caller(request), described)


def _caller(request: Request) -> TraceContext | None:
    parents = request.headers.getlist(TRACEPARENT)
    return trace_context(parents[0], ",".join(request.headers.getlist(TRACESTATE))) if len(parents) == 1 else None
