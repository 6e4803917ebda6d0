"""Lines of the log: the fields on each of them, and how often one about the same outage is written.

The fields say which process wrote the line, and in which span. Steps of structlog add them, as threads of libraries do
not inherit fields of the context.
"""

import sys

from structlog.typing import EventDict

_AGAIN_AFTER_MS = 60_000
_REASONS_MAX = 16
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


class Reminders:
    """How often one agent logs an outage that lasts: at once, and then once a minute for each reason.

    Owner of the reasons that were logged, and when; times are of one monotonic clock.
    """

    def __init__(self) -> None:
        self._logged_at: dict[str, int] = {}

    def is_due(self, reason: str, now_ms: int) -> bool:
        """Whether to log ``reason`` now; if so, it counts as logged."""
        logged_at = self._logged_at.get(reason)
        if logged_at is not None and now_ms - logged_at < _AGAIN_AFTER_MS:
            return False
        if len(self._logged_at) >= _REASONS_MAX:
            self._logged_at.clear()
        self._logged_at[reason] = now_ms
        return True

    def over(self) -> None:
        """The outage is over: the next one is logged at once."""
        self._logged_at.clear()
