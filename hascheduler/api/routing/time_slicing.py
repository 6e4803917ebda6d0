"""Runs long computations in short slices, so that no request blocks the event loop.

The work of one request may take longer than the loop may be blocked. Such work is a generator that yields every few
milliseconds; in each turn of the loop one slice of one generator runs, round robin.
"""

import asyncio
from collections.abc import Generator
from typing import TypeVar
from weakref import WeakKeyDictionary

Found = TypeVar("Found")

_SLICE_LOCKS: "WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock]" = WeakKeyDictionary()


async def run_in_slices(steps: Generator[None, None, Found]) -> Found:
    """Run ``steps`` to their end, let other tasks run after each of them, and give what they return."""
    lock = _SLICE_LOCKS.setdefault(asyncio.get_running_loop(), asyncio.Lock())
    while True:
        # The lock is first come, first served: a generator that has run a slice waits behind all others.
        async with lock:
            try:
                next(steps)
            except StopIteration as end:
                found: Found = end.value
                return found
        await asyncio.sleep(0)
