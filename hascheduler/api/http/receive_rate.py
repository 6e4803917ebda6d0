"""How fast what a client sends has to arrive: a short grace, then a least rate on average.

A time limit alone lets a client hold its place for all of it with a byte now and then.
"""

import asyncio
from dataclasses import dataclass

from starlette.types import Receive

GRACE_S = 2.0
BYTES_PER_S_MIN = 16 * 1024
_SECOND_LOOK_S = 0.1


class BodyTooLarge(Exception):
    """More bytes came than there may be."""


class BodyInterrupted(Exception):
    """The client left before it had sent everything."""


@dataclass(frozen=True, slots=True)
class ReceiveDeadline:
    """Began at ``began_s``, and may not go on after ``end_s``."""

    began_s: float
    end_s: float

    def due_s(self, received: int) -> float:
        """When more has to be there, where so many bytes have arrived."""
        return min(self.end_s, self.began_s + GRACE_S + received / BYTES_PER_S_MIN)


async def receive_body(receive: Receive, bytes_max: int, patience_s: float) -> bytes:
    """The body of a request; `TimeoutError` where it is too slow, `BodyTooLarge`, `BodyInterrupted` as they say."""
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    arrival = ReceiveDeadline(began_s, began_s + patience_s)
    pieces: list[bytes] = []
    received, looked_twice = 0, False

    timer: asyncio.TimerHandle

    def look() -> None:
        nonlocal timer, looked_twice
        now_s, due_s = loop.time(), arrival.due_s(received)
        if due_s > now_s:
            timer = loop.call_at(due_s, look)
        elif not looked_twice:
            # It may be this loop that stood still, with the bytes at the door.
            looked_twice = True
            timer = loop.call_later(_SECOND_LOOK_S, look)
        else:
            limit.reschedule(now_s)

    timer = loop.call_at(arrival.due_s(0), look)
    try:
        async with asyncio.timeout(None) as limit:
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise BodyInterrupted
                piece: bytes = message.get("body", b"")
                received += len(piece)
                if received > bytes_max:
                    raise BodyTooLarge
                pieces.append(piece)
                if not message.get("more_body", False):
                    return b"".join(pieces)
    finally:
        timer.cancel()
