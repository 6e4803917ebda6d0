"""The dispatch message: references only. The payload is read at start, in the write that starts the attempt.

JSON, so that a processor in any language can read it::

    {"v": 1, "kind": "run", "job": "fire:tick:1700000000000", "attempt": 1}
    {"v": 1, "kind": "cancel", "job": "…", "attempt": 1}

The message id is ``job/attempt``. A duplicate is harmless: the second start of an attempt loses its compare-and-set.

In its broker headers a message may also carry its trace: ``traceparent`` and ``tracestate`` of W3C Trace Context. If
they are missing or malformed, the job runs all the same.

Several run messages for one processor travel as one *bundle*, since a broker charges by message, not by size::

    {"v": 1, "kind": "bundle", "runs": [{"job": "…", "attempt": 1}, {"job": "…", "attempt": 1, "traceparent": "…"}]}

Only the adapters of a broker know bundles, and split them on arrival.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import orjson

from hascheduler.errors import InvalidInput
from hascheduler.model.trace import TraceContext, trace_from_headers

MESSAGE_VERSION = 1
MESSAGE_BYTES_MAX = 4_096
ATTEMPT_MAX = 2**53 - 1
BUNDLE_KIND = "bundle"
BUNDLE_MAX = 100
_BUNDLE_BYTES_MAX = BUNDLE_MAX * MESSAGE_BYTES_MAX
_BUNDLE_FIRST_BYTES = b'{"v":1,"kind":"bundle"'


class MessageKind(StrEnum):
    RUN = "run"
    """Run an attempt."""
    CANCEL = "cancel"
    """Stop an attempt."""


@dataclass(frozen=True, slots=True)
class Message:
    kind: MessageKind
    job_id: str
    attempt: int
    trace: TraceContext | None = None

    @property
    def message_id(self) -> str:
        return f"{self.job_id}/{self.attempt}"


def encode_message(message: Message) -> bytes:
    """Return the body; `message_headers` returns the rest."""
    return json.dumps(
        {"v": MESSAGE_VERSION, "kind": message.kind, "job": message.job_id, "attempt": message.attempt},
        separators=(",", ":"),
    ).encode()


def message_headers(message: Message) -> dict[str, str]:
    return {} if message.trace is None else message.trace.headers()


def decode_message(body: bytes) -> Message:
    """Return the message in ``body``, without its trace, or raise `InvalidInput` for the parking queue."""
    if len(body) > MESSAGE_BYTES_MAX:
        raise InvalidInput(("message",), f"{len(body)} bytes long", f"at most {MESSAGE_BYTES_MAX} bytes")
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        raise InvalidInput(("message",), "not JSON", "a JSON object") from None
    if not isinstance(fields, dict):
        raise InvalidInput(("message",), "not a JSON object", "a JSON object")
    if fields.get("v") != MESSAGE_VERSION:
        raise InvalidInput(("message", "v"), f"version {str(fields.get('v'))[:32]!r} is unknown", str(MESSAGE_VERSION))
    kind = fields.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise InvalidInput(("message", "kind"), f"{str(kind)[:32]!r} is unknown", "run or cancel")
    return checked_message(_KINDS[kind], fields.get("job"), fields.get("attempt"))


def checked_message(kind: MessageKind, job_id: object, attempt: object, trace: TraceContext | None = None) -> Message:
    """Return a message from unchecked fields; raise `InvalidInput` if they are not valid."""
    if not isinstance(job_id, str) or not job_id or not _is_storable(job_id):
        raise InvalidInput(("message", "job"), "missing or not a text", "a job id")
    if isinstance(attempt, bool) or not isinstance(attempt, int) or not 1 <= attempt <= ATTEMPT_MAX:
        raise InvalidInput(("message", "attempt"), "missing or not a positive number", "an attempt number from 1")
    return Message(kind, job_id, attempt, trace)


# Bundles


def encode_bundle(messages: Sequence[Message]) -> bytes:
    """Return the body of at most `BUNDLE_MAX` messages, all of them runs."""
    runs = [_run(message) for message in messages]
    return orjson.dumps({"v": MESSAGE_VERSION, "kind": BUNDLE_KIND, "runs": runs})


def decode_bundle(body: bytes) -> list[Message] | None:
    """Return the messages in ``body``, with their traces; None if it is not a bundle, or an unreadable one."""
    if not body.startswith(_BUNDLE_FIRST_BYTES) or len(body) > _BUNDLE_BYTES_MAX:
        return None
    try:
        runs = orjson.loads(body)["runs"]
        if not isinstance(runs, list) or not 1 <= len(runs) <= BUNDLE_MAX:
            return None
        return [
            checked_message(MessageKind.RUN, run.get("job"), run.get("attempt"), trace_from_headers(run))
            for run in runs
        ]
    except (ValueError, TypeError, KeyError, AttributeError, InvalidInput):
        return None


def _run(message: Message) -> dict[str, Any]:
    run: dict[str, Any] = {"job": message.job_id, "attempt": message.attempt}
    return run if message.trace is None else {**run, **message.trace.headers()}


_KINDS = {kind.value: kind for kind in MessageKind}


_FIRST_HALF, _LAST_HALF = chr(0xD800), chr(0xDFFF)  # the compiler refuses half a surrogate pair in a literal


def _is_storable(text: str) -> bool:
    # JSON can spell half a surrogate pair, which no database accepts, not even in a query.
    return text.isascii() or not any(_FIRST_HALF <= character <= _LAST_HALF for character in text)
