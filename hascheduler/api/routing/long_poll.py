"""Requests that wait, until something happens, the client disconnects or this replica stops, and what they share."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from starlette.types import Receive

from hascheduler.ports import Waiter

_POLL_EVERY_S = 0.25

Result = TypeVar("Result")


class ClientGone(Exception):
    """The client has disconnected."""


class ReplicaStopping(Exception):
    """This replica stops: the response is the current state."""


async def notified(waiter: Waiter, receive: Receive, limit_s: float) -> bool:
    """Return True if ``waiter`` was notified within the limit. The body of the request has been read.

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
    """Return the result of ``work``; None if it was cancelled by a disconnect or by ``is_over``."""
    working = asyncio.create_task(work, name="work")
    leaving = asyncio.create_task(_disconnected(receive), name="client")
    timeout_s = None if is_over is None else _POLL_EVERY_S
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


@dataclass(slots=True)
class _Share:
    waiting: int = 0
    is_made_here: bool = False
    all_cancel: bool = True


class SharedWaits:
    """Owner of the requests that wait at this replica for each job, and of whether a disconnect cancels the job.

    Requests under one idempotency key share a job, and each caller that knows a job's id may wait for it. So a
    disconnect cancels the job only if no other request waits, if the request that made the job was among those that
    waited, and if all that shared it meanwhile asked for that. A request that was answered before the job's end may ask
    again, so it counts as not having asked for that.

    A replica does not see the requests that wait at another one. There no request made the job, so none of them ever
    cancels it. Only the request that made it may.
    """

    def __init__(self) -> None:
        self._by_job: dict[str, _Share] = {}

    def join(self, job_id: str, *, made: bool, cancels: bool) -> None:
        """Count a request that begins to wait; `leave` must follow.

        It ``made`` the job, and it ``cancels`` the job if it disconnects.
        """
        share = self._by_job.setdefault(job_id, _Share())
        share.waiting += 1
        share.is_made_here |= made
        share.all_cancel &= cancels

    def keep(self, job_id: str) -> None:
        """Count a request that shares the job and does not wait for it."""
        if job_id in self._by_job:
            self._by_job[job_id].all_cancel = False

    def leave(self, job_id: str, *, disconnected: bool) -> bool:
        """Count a request that no longer waits, and return True if the job must be cancelled."""
        share = self._by_job[job_id]
        share.waiting -= 1
        share.all_cancel &= disconnected
        if share.waiting:
            return False
        del self._by_job[job_id]
        return share.is_made_here and share.all_cancel
