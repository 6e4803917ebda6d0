"""Many calls at once."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

RACERS = 50

T = TypeVar("T")


async def raced(calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The answers of all ``calls``, which are under way together."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(call) for call in calls]
    return [task.result() for task in tasks]
