"""Many callers, few exchanges: requests that arrive during one exchange go out together in the next.

A single request goes out at once, so batching costs no time under a light load. Under a heavy load the batches grow,
and each wait for a majority serves more requests. If no caller is in a hurry for the response, a pause after each
shared exchange makes the next batch larger.

`RequestBatcher` owns the waiting requests and at most one exchange, which runs in a task of its own: cancelling one
caller does not disturb the responses of the others.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from typing import Generic, TypeVar

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")

BATCH_MAX = 500


class RequestBatcher(Generic[_Request, _Response]):
    """Owner of the waiting requests. ``exchange`` returns one response or error for each request.

    If it raises, every request of the batch gets the error. ``pause_s`` follows each exchange that several requests
    shared.
    """

    def __init__(
        self,
        exchange: Callable[[Sequence[_Request]], Awaitable[Sequence[_Response | Exception]]],
        name: str,
        *,
        pause_s: float = 0,
    ) -> None:
        self._exchange = exchange
        self._name = name
        self._pause_s = pause_s
        self._waiting: deque[tuple[_Request, asyncio.Future[_Response]]] = deque()
        self._task: asyncio.Task[None] | None = None

    async def send(self, request: _Request) -> _Response:
        response: asyncio.Future[_Response] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, response))
        if self._task is None:
            # In a context of its own, without the time limit and the log context of the first caller.
            self._task = asyncio.create_task(self._run(), name=self._name, context=Context())
        return await response

    async def _run(self) -> None:
        batch: list[tuple[_Request, asyncio.Future[_Response]]] = []
        pause_s = 0.0
        try:
            while True:
                # Requests of the same turn of the loop join the batch.
                await asyncio.sleep(pause_s)
                batch = self._take()
                if not batch:
                    return
                await self._carry_out(batch)
                pause_s = self._pause_s if len(batch) > 1 and len(self._waiting) < BATCH_MAX else 0
        finally:
            self._task = None
            for _, response in (*batch, *self._waiting):
                response.cancel()  # only if this task was cancelled: the loop is closing
            self._waiting.clear()

    def _take(self) -> list[tuple[_Request, asyncio.Future[_Response]]]:
        batch: list[tuple[_Request, asyncio.Future[_Response]]] = []
        while self._waiting and len(batch) < BATCH_MAX:
            request, response = self._waiting.popleft()
            if not response.done():  # else its caller was cancelled
                batch.append((request, response))
        return batch

    async def _carry_out(self, batch: Sequence[tuple[_Request, asyncio.Future[_Response]]]) -> None:
        try:
            responses: Sequence[_Response | Exception] = await self._exchange([request for request, _ in batch])
        except Exception as error:
            responses = [error] * len(batch)
        for (_, future), response in zip(batch, responses, strict=True):
            if future.done():
                continue
            if isinstance(response, Exception):
                future.set_exception(response)
            else:
                future.set_result(response)
