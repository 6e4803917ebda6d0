"""How the parts of a scheduler ask a replica: the scheduler carries their requests out."""

from collections.abc import AsyncIterator
from typing import Any, Protocol, TypeVar

from hascheduler.client.requests import Request, body_of

T = TypeVar("T")

PAGE_LIMIT = 200


class Ask(Protocol):
    """Asks until there is an answer, for as long as the scheduler's patience lasts."""

    async def __call__(self, request: Request[T]) -> T: ...


class Follow(Protocol):
    """The lines of an answer that has no end, as they come; one connection, and no second try."""

    def __call__(self, request: Request[Any]) -> AsyncIterator[str]: ...


async def each(ask: Ask, path: str, query: list[tuple[str, str]]) -> AsyncIterator[Any]:
    """The items of a list, page after page."""
    after: list[tuple[str, str]] = []
    while True:
        page = await ask(Request("GET", path, body_of, [*query, ("limit", str(PAGE_LIMIT)), *after]))
        for item in page["items"]:
            yield item
        if page["next"] is None:
            return
        after = [("after", page["next"])]
