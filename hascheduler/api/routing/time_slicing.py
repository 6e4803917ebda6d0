"""Long work in short turns, so that no request keeps the loop from all others.

What one request may ask for takes longer than the loop may stand still. Such work is a generator that yields every few
milliseconds; of all of them, one alone goes on in each turn of the loop, one after the other.
"""

import asyncio
from collections.abc import Generator
from typing import TypeVar
from weakref import WeakKeyDictionary

Found = TypeVar("Found")

_TURNS: "WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock]" = WeakKeyDictionary()


async def run_in_slices(steps: Generator[None, None, Found]) -> Found:
    """Goes through ``steps``, lets everything else run after each of them, and gives what they return."""
    turn = _TURNS.setdefault(asyncio.get_running_loop(), asyncio.Lock())
    while True:
        # First come, first served: who has had a turn waits behind all others.
        async with turn:
            try:
                next(steps)
            except StopIteration as end:
                found: Found = end.value
                return found
        await asyncio.sleep(0)
