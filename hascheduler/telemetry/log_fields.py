"""The fields on every line of the log: which process, and which span it is in.

As steps of structlog rather than fields of the context, which threads of libraries do not inherit.
"""

import sys

from structlog.typing import EventDict

_OF_PROCESS: dict[str, str] = {}


def name_process(**fields: str) -> None:
    """Once, at start: these stand on every line from then on."""
    _OF_PROCESS.update(fields)


def add_process(_logger: object, _method: str, event: EventDict) -> EventDict:
    for name, value in _OF_PROCESS.items():
        event.setdefault(name, value)
    return event


def add_span(_logger: object, _method: str, event: EventDict) -> EventDict:
    """``trace_id`` and ``span_id`` while a span is current: ours, or one of a handler within it."""
    # Without the import there is no current span.
    api = sys.modules.get("opentelemetry.trace")
    if api is not None:
        context = api.get_current_span().get_span_context()
        if context.is_valid:
            event.setdefault("trace_id", format(context.trace_id, "032x"))
            event.setdefault("span_id", format(context.span_id, "016x"))
    return event
