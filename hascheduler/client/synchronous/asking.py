# Written by scripts/generate-client from hascheduler/client/asynchronous/asking.py: change that one.
"""How the parts of a scheduler ask a replica: the scheduler carries their requests out."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from hascheduler.client.flows import Flow
from hascheduler.client.requests import PAGE, Request, page
from hascheduler.client.results import JsonObject

T = TypeVar("T")


class Ask(Protocol):
    """Asks until there is an answer, for as long as the scheduler's patience lasts."""

    def __call__(self, request: Request[T]) -> T: ...


class Run(Protocol):
    """Carries out what takes more than one request."""

    def __call__(self, flow: Flow[T]) -> T: ...


class Follow(Protocol):
    """The lines of an answer that has no end, as they come; one connection, and no second try."""

    def __call__(self, request: Request[Any]) -> Iterator[str]: ...


def each(ask: Ask, path: str, query: Sequence[tuple[str, str]], read: Callable[[JsonObject], T]) -> Iterator[T]:
    """The items of a list, page after page."""
    after: str | None = None
    while True:
        part = ask(page(path, query, read, PAGE, after))
        for item in part.items:
            yield item
        after = part.next
        if after is None:
            return
