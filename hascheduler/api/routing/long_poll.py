"""Holds a request open until something happens, its client disconnects, or this replica stops."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from fastapi import Request
from starlette.types import Receive

from hascheduler.ports import Waiter

_LOOK_EVERY_S = 0.25

Result = TypeVar("Result")


class ClientGone(Exception):
    """The client has disconnected."""


class ReplicaStopping(Exception):
    """This replica stops: the answer is what is known now."""


class WaitingClient:
    """The client of a request that is held open; from `waiting_client`."""

    def __init__(self, disconnection: asyncio.Task[None]) -> None:
        self._disconnection = disconnection

    async def wait(self, waiter: Waiter, limit_s: float) -> bool:
        """Whether ``waiter`` was notified within the limit.

        `ClientGone` where the client has disconnected, `ReplicaStopping` where this replica stops.
        """
        notification = asyncio.create_task(waiter.wait(), name="waiter")
        try:
            await asyncio.wait(
                {notification, self._disconnection}, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED
            )
            is_notified = notification.done()
        finally:
            await _ended(notification)
        if self._disconnection.done():
            raise ClientGone
        if is_notified and not notification.result():
            raise ReplicaStopping
        return is_notified


@asynccontextmanager
async def waiting_client(request: Request) -> AsyncIterator[WaitingClient]:
    """The client of ``request``, whose body has been read."""
    disconnection = asyncio.create_task(_disconnected(request.receive), name="client")
    try:
        yield WaitingClient(disconnection)
    finally:
        await _ended(disconnection)


async def until_left(
    work: Coroutine[Any, Any, Result], receive: Receive, is_over: Callable[[], bool] | None = None
) -> Result | None:
    """What ``work`` returns; None where it was cancelled, as the client has disconnected, or ``is_over`` holds."""
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
