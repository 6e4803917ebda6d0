"""The fields on each log line, and how often a lasting outage is logged.

The fields name the process that wrote the line, and its span. Processors of structlog add them, as threads of libraries
do not inherit fields of the context.
"""

import sys

from structlog.typing import EventDict

_AGAIN_AFTER_MS = 60_000
_REASONS_MAX = 16
_OF_PROCESS: dict[str, str] = {}


def name_process(**fields: str) -> None:
    """Put these fields on every line from now on; called once, at start."""
    _OF_PROCESS.update(fields)


def add_process(_logger: object, _method: str, event: EventDict) -> EventDict:
    for name, value in _OF_PROCESS.items():
        event.setdefault(name, value)
    return event


def add_span(_logger: object, _method: str, event: EventDict) -> EventDict:
    """Add ``trace_id`` and ``span_id`` while a span is current: ours, or one of a handler within it."""
    # Without the import there is no current span.
    api = sys.modules.get("opentelemetry.trace")
    if api is not None:
        context = api.get_current_span().get_span_context()
        if context.is_valid:
            event.setdefault("trace_id", format(context.trace_id, "032x"))
            event.setdefault("span_id", format(context.span_id, "016x"))
    return event


class Reminders:
    """Limits how often a lasting outage is logged: at once, and then once a minute for each reason.

    Owner of the reasons that were logged, and when; times are of one monotonic clock.
    """

    def __init__(self) -> None:
        self._logged_at: dict[str, int] = {}

    def is_due(self, reason: str, now_ms: int) -> bool:
        """Return True if ``reason`` should be logged now, and count it as logged."""
        logged_at = self._logged_at.get(reason)
        if logged_at is not None and now_ms - logged_at < _AGAIN_AFTER_MS:
            return False
        if len(self._logged_at) >= _REASONS_MAX:
            self._logged_at.clear()
        self._logged_at[reason] = now_ms
        return True

    def over(self) -> None:
        """End the outage: the next one is logged at once."""
        self._logged_at.clear()
