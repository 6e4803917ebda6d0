"""Many callers, few exchanges: what is asked while one exchange is under way goes out together in the next.

Alone a question goes out at once, so gathering costs no time where there is little to do; under load the batches grow
by themselves, and with them what one majority wait is good for. Where an answer is not what anybody waits for, a rest
after each exchange that several shared makes the next one larger.

`RequestBatcher` owns the questions that wait and at most one exchange, in a task of its own: a caller that is cancelled
takes nobody's answer along.
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
    """``exchange`` gives one answer or error for each question; where it raises, all who asked get the error."""

    def __init__(
        self,
        exchange: Callable[[Sequence[_Request]], Awaitable[Sequence[_Response | Exception]]],
        name: str,
        *,
        rest_s: float = 0,
    ) -> None:
        self._exchange = exchange
        self._name = name
        self._rest_s = rest_s
        self._waiting: deque[tuple[_Request, asyncio.Future[_Response]]] = deque()
        self._task: asyncio.Task[None] | None = None

    async def ask(self, question: _Request) -> _Response:
        answer: asyncio.Future[_Response] = asyncio.get_running_loop().create_future()
        self._waiting.append((question, answer))
        if self._task is None:
            # In a context of its own: neither the time limit nor the log lines of whoever happened to ask first.
            self._task = asyncio.create_task(self._run(), name=self._name, context=Context())
        return await answer

    async def _run(self) -> None:
        batch: list[tuple[_Request, asyncio.Future[_Response]]] = []
        rest_s = 0.0
        try:
            while True:
                # Whoever asks in the same turn of the loop is taken along.
                await asyncio.sleep(rest_s)
                batch = self._take()
                if not batch:
                    return
                await self._carry_out(batch)
                rest_s = self._rest_s if len(batch) > 1 and len(self._waiting) < BATCH_MAX else 0
        finally:
            self._task = None
            for _, answer in (*batch, *self._waiting):
                answer.cancel()  # only where this task was cancelled: the loop is closing
            self._waiting.clear()

    def _take(self) -> list[tuple[_Request, asyncio.Future[_Response]]]:
        batch: list[tuple[_Request, asyncio.Future[_Response]]] = []
        while self._waiting and len(batch) < BATCH_MAX:
            question, answer = self._waiting.popleft()
            if not answer.done():  # whoever asked has gone
                batch.append((question, answer))
        return batch

    async def _carry_out(self, batch: Sequence[tuple[_Request, asyncio.Future[_Response]]]) -> None:
        try:
            answers: Sequence[_Response | Exception] = await self._exchange([question for question, _ in batch])
        except Exception as error:
            answers = [error] * len(batch)
        for (_, future), answer in zip(batch, answers, strict=True):
            if future.done():
                continue
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)
