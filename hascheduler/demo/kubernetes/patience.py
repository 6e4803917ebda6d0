"""Waits until something is there, with a limit and with words for when it never is."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from hascheduler.errors import StoreUnavailable, WorldError

Found = TypeVar("Found")


async def once(look: Callable[[], Awaitable[Found | None]], what: str, *, patience_s: float, every_s: float) -> Found:
    """The first thing that ``look`` finds; while it fails it has found nothing. `StoreUnavailable` after the limit."""
    trouble = ""
    try:
        async with asyncio.timeout(patience_s):
            while True:
                try:
                    found = await look()
                except WorldError as error:
                    found, trouble = None, f" ({error})"
                if found is not None:
                    return found
                await asyncio.sleep(every_s)
    except TimeoutError:
        raise StoreUnavailable(f"not within {patience_s:g} s: {what}{trouble}") from None
