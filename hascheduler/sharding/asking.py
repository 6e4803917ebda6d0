"""Asks several shards at once."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

_Answer = TypeVar("_Answer")


async def ask_all(asked: Iterable[Coroutine[Any, Any, _Answer]]) -> list[_Answer]:
    """The answers in this order. The first that fails is raised once none is on its way any more: the others are
    cancelled, and what they write may be repeated, as every write of a port."""
    tasks = [asyncio.ensure_future(each) for each in asked]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
