"""The place of a piece of work in a trace: W3C Trace Context, as headers carry it and as a job stores it.

Any client may send one, so a malformed trace counts as none: never an error, and never passed on.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

TRACEPARENT = "traceparent"
TRACESTATE = "tracestate"
_TRACEPARENT_LENGTH = 55
_TRACEPARENT_LENGTH_MAX = 256
"""The limit for the header of a later version, which may have more at its end."""
_TRACESTATE_LENGTH_MAX = 512
_FORM = re.compile(r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})")
_KNOWN_FLAGS = 0b11
"""Sampled and random; the others must be sent as 0."""


@dataclass(frozen=True, slots=True)
class TraceContext:
    """A valid trace.

    ``traceparent`` has version 00; ``tracestate`` is "" if there is none. See `trace_context`.
    """

    traceparent: str
    tracestate: str = ""

    @property
    def trace_id(self) -> str:
        return self.traceparent[3:35]

    def headers(self) -> dict[str, str]:
        state = {TRACESTATE: self.tracestate} if self.tracestate else {}
        return {TRACEPARENT: self.traceparent, **state}


def trace_context(traceparent: object, tracestate: object = None) -> TraceContext | None:
    """Return the trace in any two values; None if they are not a valid trace."""
    if not isinstance(traceparent, str) or not _TRACEPARENT_LENGTH <= len(traceparent) <= _TRACEPARENT_LENGTH_MAX:
        return None
    form = _FORM.match(traceparent)
    if form is None or form["version"] == "ff" or not (int(form["trace"], 16) and int(form["span"], 16)):
        return None
    rest = traceparent[_TRACEPARENT_LENGTH:]
    if rest and (form["version"] == "00" or not rest.startswith("-")):
        return None
    flags = int(form["flags"], 16) & _KNOWN_FLAGS
    return TraceContext(f"00-{form['trace']}-{form['span']}-{flags:02x}", _readable_state(tracestate))


def trace_from_headers(headers: Mapping[str, object]) -> TraceContext | None:
    """Return the trace in the headers of a message."""
    return trace_context(headers.get(TRACEPARENT), headers.get(TRACESTATE))


def _readable_state(tracestate: object) -> str:
    if not isinstance(tracestate, str) or len(tracestate) > _TRACESTATE_LENGTH_MAX:
        return ""
    return tracestate if tracestate.isascii() and tracestate.isprintable() else ""
