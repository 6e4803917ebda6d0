"""The API through the SDK, by any replica that answers: some are being killed."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from hascheduler.client import AsyncScheduler, Refused, Unavailable
from hascheduler.errors import CallerError, StoreUnavailable, WorldError

ANSWER_S = 5.0
_OWN_TROUBLE = (404, 429)
_REFUSED = (401, 403)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """The answers of one replica that is ready: ``/v1/cluster``, and the items of ``/v1/processors``."""

    cluster: dict[str, Any]
    processors: list[dict[str, Any]]


class ReplicaApi:
    """``urls`` has the addresses of those that may answer now, by name; ``scheduler_of`` gives the SDK for one."""

    def __init__(self, scheduler_of: Callable[[str], AsyncScheduler], urls: Callable[[], Mapping[str, str]]) -> None:
        self._scheduler_of = scheduler_of
        self._urls = urls

    async def ask(self, question: Callable[[AsyncScheduler], Awaitable[T]], *, avoid: str = "") -> T:
        """The first answer that is not the replica's own trouble; ``avoid`` is asked last.

        `StoreUnavailable` where none answers, a `CallerError` where the request or the token is refused.
        """
        trouble = "no replica to ask"
        for _, url in sorted(self._urls().items(), key=lambda one: one[0] == avoid):
            try:
                return await question(self._scheduler_of(url))
            except Unavailable as unavailable:
                trouble = str(unavailable)
            except Refused as refused:
                if refused.status in _REFUSED:
                    raise CallerError(f"{url} answered {refused}") from None
                if refused.status not in _OWN_TROUBLE:
                    raise
                trouble = f"{url} answered {refused}"
        raise StoreUnavailable(trouble)

    async def create(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """The schedule as it was created; also where an earlier answer got lost."""
        try:
            return await self.ask(lambda scheduler: scheduler.schedules.create_document(document))
        except Refused as refused:
            if refused.status != 409:
                raise
        return await self.ask(lambda scheduler: scheduler.schedules.get(document["name"]))

    async def snapshot(self, *, avoid: str = "") -> ClusterSnapshot | None:
        """What a replica sees that is ready; None where none is."""
        try:
            cluster = await self.ask(lambda scheduler: scheduler.cluster.status(), avoid=avoid)
            processors = await self.ask(lambda scheduler: scheduler.cluster.processors(), avoid=avoid)
        except StoreUnavailable:
            return None
        return ClusterSnapshot({**cluster}, [{**one} for one in processors]) if cluster["ready"] else None


@asynccontextmanager
async def open_replica_api(urls: Callable[[], Mapping[str, str]], **options: Any) -> AsyncIterator[ReplicaApi]:
    """With the ``options`` of `AsyncScheduler`; each replica is asked once, and the next one instead."""
    async with AsyncExitStack() as stack:
        opened: dict[str, AsyncScheduler] = {}

        def scheduler_of(url: str) -> AsyncScheduler:
            if url not in opened:
                opened[url] = AsyncScheduler(url, patience=0, answer_timeout=ANSWER_S, **options)
                stack.push_async_exit(opened[url])
            return opened[url]

        yield ReplicaApi(scheduler_of, urls)


async def until(
    look: Callable[[], Awaitable[T | None]], what: str, patience_s: float = 60.0, every_s: float = 0.2
) -> T:
    """Return the first result that is not None; a `WorldError` counts as None until the time is over."""
    trouble = ""
    try:
        async with asyncio.timeout(patience_s):
            while True:
                try:
                    found = await look()
                except WorldError as error:
                    found, trouble = None, f" ({error})"
                if found is not None:
                    return found
                await asyncio.sleep(every_s)
    except TimeoutError:
        raise StoreUnavailable(f"not within {patience_s:g} s: {what}{trouble}") from None
