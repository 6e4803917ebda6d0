"""The minimum rate at which a client must send: a short grace, then an average rate.

With a time limit alone, a client could hold its place for the whole limit by sending a byte now and then.
"""

import asyncio
from dataclasses import dataclass

from starlette.requests import ClientDisconnect
from starlette.types import Receive

GRACE_S = 2.0
BYTES_PER_S_MIN = 16 * 1024
_SECOND_CHECK_S = 0.1


class BodyTooLarge(Exception):
    """The body is larger than allowed."""


@dataclass(frozen=True, slots=True)
class ReceiveDeadline:
    """When the next bytes of a transfer are due that began at ``began_s`` and may not go on after ``end_s``."""

    began_s: float
    end_s: float

    def due_s(self, received: int) -> float:
        """When more bytes must have arrived, given how many are there."""
        return min(self.end_s, self.began_s + GRACE_S + received / BYTES_PER_S_MIN)


async def receive_body(receive: Receive, bytes_max: int, patience_s: float) -> bytes:
    """The body of a request; `TimeoutError` where it is too slow, `BodyTooLarge`, `ClientDisconnect` as they say."""
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    arrival = ReceiveDeadline(began_s, began_s + patience_s)
    pieces: list[bytes] = []
    received, checked_twice = 0, False

    timer: asyncio.TimerHandle

    def check() -> None:
        nonlocal timer, checked_twice
        now_s, due_s = loop.time(), arrival.due_s(received)
        if due_s > now_s:
            timer = loop.call_at(due_s, check)
        elif not checked_twice:
            # This loop may have stalled while the bytes were in the socket's buffer.
            checked_twice = True
            timer = loop.call_later(_SECOND_CHECK_S, check)
        else:
            limit.reschedule(now_s)

    timer = loop.call_at(arrival.due_s(0), check)
    try:
        async with asyncio.timeout(None) as limit:
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                piece: bytes = message.get("body", b"")
                received += len(piece)
                if received > bytes_max:
                    raise BodyTooLarge
                pieces.append(piece)
                if not message.get("more_body", False):
                    return b"".join(pieces)
    finally:
        timer.cancel()
