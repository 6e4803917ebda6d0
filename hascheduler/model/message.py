"""The dispatch message: references only. The payload is read at start, in the write that starts the attempt.

JSON, so that a processor in any language can read it::

    {"v": 1, "kind": "run", "job": "fire:tick:1700000000000", "attempt": 1}
    {"v": 1, "kind": "cancel", "job": "…", "attempt": 1}

The message id is ``job/attempt``. A duplicate is harmless: the second start of an attempt loses its compare-and-set.
"""

import json
from dataclasses import dataclass
from enum import StrEnum

from hascheduler.errors import InvalidInput

VERSION = 1
BYTES_MAX = 4_096
ATTEMPT_MAX = 2**53 - 1


class MessageKind(StrEnum):
    RUN = "run"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class Message:
    kind: MessageKind
    job_id: str
    attempt: int

    @property
    def message_id(self) -> str:
        return f"{self.job_id}/{self.attempt}"


def encode_message(message: Message) -> bytes:
    return json.dumps(
        {"v": VERSION, "kind": message.kind, "job": message.job_id, "attempt": message.attempt}, separators=(",", ":")
    ).encode()


def decode_message(body: bytes) -> Message:
    """The message in ``body``; whatever is not one is an `InvalidInput` that says why, for the parking queue."""
    if len(body) > BYTES_MAX:
        raise InvalidInput(("message",), f"{len(body)} bytes long", f"at most {BYTES_MAX} bytes")
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        raise InvalidInput(("message",), "not JSON", "a JSON object") from None
    if not isinstance(fields, dict):
        raise InvalidInput(("message",), "not a JSON object", "a JSON object")
    if fields.get("v") != VERSION:
        raise InvalidInput(("message", "v"), f"version {str(fields.get('v'))[:32]!r} is unknown", str(VERSION))
    kind, job_id, attempt = fields.get("kind"), fields.get("job"), fields.get("attempt")
    if not isinstance(kind, str) or kind not in set(MessageKind):
        raise InvalidInput(("message", "kind"), f"{str(kind)[:32]!r} is unknown", "run or cancel")
    if not isinstance(job_id, str) or not job_id or not _is_storable(job_id):
        raise InvalidInput(("message", "job"), "missing or not a text", "a job id")
    if isinstance(attempt, bool) or not isinstance(attempt, int) or not 1 <= attempt <= ATTEMPT_MAX:
        raise InvalidInput(("message", "attempt"), "missing or not a positive number", "an attempt number from 1")
    return Message(MessageKind(kind), job_id, attempt)


def _is_storable(text: str) -> bool:
    # JSON can spell half a surrogate pair, which no database takes, not even in a question.
    return not any("\ud800" <= character <= "\udfff" for character in text)
