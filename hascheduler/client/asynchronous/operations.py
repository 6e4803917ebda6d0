"""``scheduler.operations``: one action on all jobs or schedules that match, with a progress and a stop."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Unpack

from hascheduler.client.asynchronous.asking import Ask, each
from hascheduler.client.bodies import OperationFilter, encoded, plain
from hascheduler.client.flows import key_of
from hascheduler.client.requests import Request, as_it_is, body_of, demand_key, named, page
from hascheduler.client.results import ListPage
from hascheduler.client.wire import MatchedResponse, OperationAction, OperationResponse

Progressed = Callable[[OperationResponse], None]
_LOOK_EVERY_S = 0.5


class AsyncOperationsApi:
    """An operation goes on without the program that began it."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def count(
        self, action: OperationAction, *, priority: int | None = None, **filter: Unpack[OperationFilter]
    ) -> MatchedResponse:
        """How many match and are not as asked; changes nothing. ``priority`` as for `start`."""
        body = _body(action, filter, dry_run=True, **plain(priority=priority))
        return await self._ask(Request("POST", "/v1/operations", body_of, content=encoded(body), more_s=60))

    async def start(
        self,
        action: OperationAction,
        *,
        priority: int | None = None,
        catch_up: bool | None = None,
        reason: str | None = None,
        expected: int | None = None,
        idempotency_key: str | None = None,
        **filter: Unpack[OperationFilter],
    ) -> OperationResponse:
        """Begin it; the answer comes at once. ``expected`` is the count that you agreed to: `Refused` (409) where
        more than 10 % more match now. ``priority`` is for ``reprioritize_jobs``, ``catch_up`` for ``resume_schedules``.
        """
        key = key_of(idempotency_key)
        more = plain(priority=priority, catch_up=catch_up, reason=reason, expected=expected)
        content, headers = encoded(_body(action, filter, **more)), {"Idempotency-Key": demand_key(key)}
        return await self._ask(
            Request("POST", "/v1/operations", body_of, headers=headers, content=content, more_s=60, key=key)
        )

    async def get(self, operation_id: str) -> OperationResponse:
        return await self._ask(Request("GET", named("operations", operation_id), body_of))

    async def stop(self, operation_id: str) -> OperationResponse:
        """It ends after the slice that is under way: what is changed stays so. May be repeated."""
        return await self._ask(Request("POST", named("operations", operation_id, "stop"), body_of))

    async def wait(
        self, operation_id: str, timeout: float | None = None, progress: Progressed | None = None
    ) -> OperationResponse:
        """The operation when it has ended, or after ``timeout`` seconds as it is then; ``progress`` hears of it twice a
        second."""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            operation = await self.get(operation_id)
            if operation["state"] != "running" or (until is not None and time.monotonic() >= until):
                return operation
            if progress is not None:
                progress(operation)
            await asyncio.sleep(_LOOK_EVERY_S)

    async def list(self) -> AsyncIterator[OperationResponse]:
        """The operations of the last days, the newest first."""
        async for operation in each(self._ask, "/v1/operations", []):
            yield operation

    async def page(self, *, limit: int | None = None, after: str | None = None) -> ListPage[OperationResponse]:
        return await self._ask(page("/v1/operations", [], as_it_is, limit, after))


def _body(action: OperationAction, filter: OperationFilter, **more: object) -> Mapping[str, object]:
    return {"action": action, "filter": plain(**filter), **more}
