"""Waiting for what has no event: it is looked for again and again, for a limited time."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

LIMIT_S = 60.0
_POLL_EVERY_S = 0.05

Found = TypeVar("Found")


class NotWithin(AssertionError):
    """Something did not come; the text says what, and in what time."""


async def eventually(find: Callable[[], Awaitable[Found | None]], what: str, limit_s: float = LIMIT_S) -> Found:
    """Return the first thing that ``find`` finds; raise `NotWithin` when the time is over."""
    deadline = time.monotonic() + limit_s
    while True:
        found = await find()
        if found:
            return found
        if time.monotonic() > deadline:
            raise NotWithin(f"not within {limit_s:.0f} s: {what}")
        await asyncio.sleep(_POLL_EVERY_S)
