"""Holds a request open until something happens, its client disconnects, or this replica stops."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import Request

from hascheduler.ports import Waiter


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
    disconnection = asyncio.create_task(_disconnected(request), name="client")
    try:
        yield WaitingClient(disconnection)
    finally:
        await _ended(disconnection)


async def _ended(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.wait([task])


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
