"""Several dispatch messages for one processor as one: to a broker a message costs the same whatever is in it.

::

    {"v": 1, "kind": "bundle", "runs": [{"job": "…", "attempt": 1}, {"job": "…", "attempt": 1, "traceparent": "…"}]}

It is a matter between those who carry the messages: taken apart on arrival, so nobody else meets one.
"""

from collections.abc import Sequence
from typing import Any

import orjson

from hascheduler.errors import InvalidInput
from hascheduler.model.message import BYTES_MAX, VERSION, Message, MessageKind, checked_message
from hascheduler.model.trace import trace_in

KIND = "bundle"
MESSAGES_MAX = 100
_BYTES_MAX = MESSAGES_MAX * BYTES_MAX
_FIRST_BYTES = b'{"v":1,"kind":"bundle"'


def encode_bundle(messages: Sequence[Message]) -> bytes:
    """At most `MESSAGES_MAX`, all of them runs."""
    runs = [_run(message) for message in messages]
    return orjson.dumps({"v": VERSION, "kind": KIND, "runs": runs})


def unbundled(body: bytes) -> list[Message] | None:
    """The messages in ``body``, traces and all; None where it is no bundle, or one that can't be read."""
    if not body.startswith(_FIRST_BYTES) or len(body) > _BYTES_MAX:
        return None
    try:
        runs = orjson.loads(body)["runs"]
        if not isinstance(runs, list) or not 1 <= len(runs) <= MESSAGES_MAX:
            return None
        return [checked_message(MessageKind.RUN, run.get("job"), run.get("attempt"), trace_in(run)) for run in runs]
    except (ValueError, TypeError, KeyError, AttributeError, InvalidInput):
        return None


def _run(message: Message) -> dict[str, Any]:
    run: dict[str, Any] = {"job": message.job_id, "attempt": message.attempt}
    return run if message.trace is None else {**run, **message.trace.headers()}
