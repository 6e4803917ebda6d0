"""Sends requests: retries them while that may help, and first finds out what happened if their outcome is unknown."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

import httpx2

from hascheduler.client.answer import as_it_is
from hascheduler.client.bodies import query_of
from hascheduler.client.exchange import Exchange, Tries
from hascheduler.client.failures import Refused, Retryable, Unavailable
from hascheduler.client.flows import Flow, Pause
from hascheduler.client.requests import PAGE, Request, asked, page_of
from hascheduler.client.results import JsonObject, ListPage

T = TypeVar("T")


class AsyncAsker:
    """The connection to the replicas of an exchange: sends each request until it is answered or patience runs out."""

    def __init__(self, exchange: Exchange, http: httpx2.AsyncClient, patience_s: float) -> None:
        self._exchange = exchange
        self._http = http
        self.patience_s = patience_s

    async def run(self, flow: Flow[T]) -> T:
        answer: object = None
        while True:
            try:
                step = flow.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            answer = None
            if isinstance(step, Pause):
                await asyncio.sleep(step.for_s)
            else:
                answer = await self.ask(step)

    async def ask(self, request: Request[T]) -> T:
        tries = Tries(self.patience_s, request.held_s, self._exchange.replicas)
        doubt: Retryable | None = None
        while True:
            try:
                if doubt is not None:
                    found: T | None = await self._probe(doubt)
                    if found is not None:
                        return found
                    doubt = None
                return await self._ask_once(request)
            except Retryable as met:
                doubt = doubt if met.probe is None else met
                pause_s = tries.pause_s(met)
            await asyncio.sleep(pause_s)

    async def _probe(self, doubt: Retryable) -> Any:
        """Return the result of the last try whose outcome is unknown."""
        try:
            return await self._ask_once(doubt.probe)
        except Retryable as met:
            raise Retryable(doubt.failure, met.after_s) from met
        except (Refused, Unavailable) as error:
            raise doubt.failure from error

    async def _ask_once(self, request: Request[T]) -> T:
        replica = self._exchange.replica
        try:
            response = await self._http.request(**self._exchange.sent(request, replica))
        except httpx2.HTTPError as error:
            raise self._exchange.unanswered(request, replica, error) from None
        return self._exchange.read_response(request, replica, response)

    async def follow(self, request: Request[Any]) -> AsyncIterator[str]:
        """Yield the lines of an endless answer as they come; one connection, and no second try."""
        replica = self._exchange.replica
        try:
            async with self._http.stream(**self._exchange.sent(request, replica)) as response:
                if not response.is_success:
                    await response.aread()
                    self._exchange.read_response(request, replica, response)
                async for line in response.aiter_lines():
                    yield line
        except Retryable as retryable:
            raise retryable.failure from None
        except httpx2.HTTPError as error:
            failure = self._exchange.unanswered(request, replica, error)
            raise (failure.failure if isinstance(failure, Retryable) else failure) from None


class AsyncPart:
    """A part of a scheduler; ``read`` makes the answer of the JSON, ``more`` are fields of the `Request`."""

    def __init__(self, asker: AsyncAsker) -> None:
        self._asker = asker

    async def _ask(self, read: Callable[[JsonObject], T], method: str, path: str, **more: Any) -> T:
        return await self._asker.ask(asked(read, method, path, **more))

    async def _get(self, read: Callable[[JsonObject], T], path: str, /, **parameters: Any) -> T:
        return await self._ask(read, "GET", path, query=query_of(**parameters))

    async def _post(self, read: Callable[[JsonObject], T], path: str, body: object = None, **more: Any) -> T:
        return await self._ask(read, "POST", path, body=body, **more)

    async def _page(self, read: Callable[[JsonObject], T], path: str, /, **parameters: Any) -> ListPage[T]:
        return await self._get(page_of(read), path, **parameters)

    async def _each(self, read: Callable[[JsonObject], T], path: str, /, **parameters: Any) -> AsyncIterator[T]:
        """Yield the items of a list, page after page."""
        after: str | None = None
        while True:
            part = await self._page(read, path, **parameters, limit=PAGE, after=after)
            for item in part.items:
                yield item
            after = part.next
            if after is None:
                return

    def _follow(self, path: str, more_s: float, /, **parameters: Any) -> AsyncIterator[str]:
        """Yield the lines of an endless answer; the replica may be silent for ``more_s`` longer than usual."""
        return self._asker.follow(asked(as_it_is, "GET", path, query_of(**parameters), more_s=more_s))
