"""Holds a request open until something happens, its client disconnects, or this replica stops."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import Request

from hascheduler.ports import Waiter


class ClientGone(Exception):
    """The client is gone."""


class ReplicaStopping(Exception):
    """This replica stops: the answer is what is known now."""


class WaitingClient:
    """The client of a request that is held open; from `waiting_client`."""

    def __init__(self, leaving: asyncio.Task[None]) -> None:
        self._leaving = leaving

    async def rung(self, bell: Waiter, limit_s: float) -> bool:
        """Whether ``bell`` rang within the limit; `ClientGone`, or `ReplicaStopping` where this replica ends."""
        ringing = asyncio.create_task(bell.wait(), name="bell")
        try:
            await asyncio.wait({ringing, self._leaving}, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
            rang = ringing.done()
        finally:
            await _ended(ringing)
        if self._leaving.done():
            raise ClientGone
        if rang and not ringing.result():
            raise ReplicaStopping
        return rang


@asynccontextmanager
async def waiting_client(request: Request) -> AsyncIterator[WaitingClient]:
    """The client of ``request``, whose body has been read."""
    leaving = asyncio.create_task(_disconnected(request), name="client")
    try:
        yield WaitingClient(leaving)
    finally:
        await _ended(leaving)


async def _ended(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.wait([task])


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
