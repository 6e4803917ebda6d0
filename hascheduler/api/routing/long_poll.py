"""Holds a request open until something happens, its client disconnects, or this replica stops."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from starlette.types import Receive

from hascheduler.ports import Waiter

_LOOK_EVERY_S = 0.25

Result = TypeVar("Result")


class ClientGone(Exception):
    """The client has disconnected."""


class ReplicaStopping(Exception):
    """This replica stops: the answer is what is known now."""


async def notified(waiter: Waiter, receive: Receive, limit_s: float) -> bool:
    """Return whether ``waiter`` was notified within the limit. The body of the request has been read.

    `ClientGone` if the client has disconnected, `ReplicaStopping` if this replica stops.
    """
    notification = asyncio.create_task(waiter.wait(), name="waiter")
    leaving = asyncio.create_task(_disconnected(receive), name="client")
    try:
        await asyncio.wait({notification, leaving}, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
        is_notified, has_left = notification.done(), leaving.done()
    finally:
        await _ended(notification, leaving)
    if has_left:
        raise ClientGone
    if is_notified and not notification.result():
        raise ReplicaStopping
    return is_notified


async def until_left(
    work: Coroutine[Any, Any, Result], receive: Receive, is_over: Callable[[], bool] | None = None
) -> Result | None:
    """Return what ``work`` does; None if it was cancelled, as the client has disconnected, or ``is_over`` holds."""
    working = asyncio.create_task(work, name="work")
    leaving = asyncio.create_task(_disconnected(receive), name="client")
    timeout_s = None if is_over is None else _LOOK_EVERY_S
    try:
        while is_over is None or not is_over():
            done, _ = await asyncio.wait({working, leaving}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if done:
                break
    finally:
        await _ended(working, leaving)
    return None if working.cancelled() else working.result()


async def _ended(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
