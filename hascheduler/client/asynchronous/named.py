"""What has a name: schedules, definitions, lanes, calendars and tenants are written as a whole, or patched, by name."""

from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from hascheduler.client.asynchronous.asking import Ask, each
from hascheduler.client.requests import (
    MERGE_PATCH,
    asked,
    delete,
    look_for,
    look_whether_gone,
    matching,
    named,
    page,
)
from hascheduler.client.results import JsonObject, ListPage

if TYPE_CHECKING:
    from hascheduler.client.nouns import N
else:
    N = TypeVar("N")
T = TypeVar("T")


class AsyncNamedApi(Generic[T]):
    """``if_match`` is the ``rev`` that a change is meant for: if another change came first it is refused, 412; so it is
    with ``if_none_match="*"`` if there is one already. ``read`` makes one of what the replica answers."""

    def __init__(self, ask: Ask, collection: str, read: Callable[[JsonObject], T]) -> None:
        self._ask = ask
        self._collection = collection
        self._read = read

    async def get(self, name: str) -> T:
        return await self._ask(asked(self._read, "GET", self._path(name)))

    async def find(self, name: str) -> T | None:
        """As `get`, and None if there is none."""
        read: Callable[[JsonObject], T | None] = self._read
        return await self._ask(asked(read, "GET", self._path(name), absent=lambda: None))

    async def list(self) -> AsyncIterator[T]:
        """All, by name."""
        async for one in each(self._ask, f"/v1/{self._collection}", [], self._read):
            yield one

    async def page(self, *, limit: int | None = None, after: str | None = None) -> ListPage[T]:
        """A page of at most ``limit``, by name: the first ones, or those after a name."""
        return await self._ask(page(f"/v1/{self._collection}", [], self._read, limit, after))

    async def put_document(
        self,
        name: str,
        document: Mapping[str, Any],
        *,
        if_match: str | int | None = None,
        if_none_match: Literal["*"] | None = None,
    ) -> T:
        """Write it as a whole, as a file or a program holds it: the replica says what is wrong with it."""
        path, headers = self._path(name), matching(if_match, if_none_match)
        look = look_for(path, document, self._read) if headers else None  # it would meet its own revision
        return await self._ask(asked(self._read, "PUT", path, body=dict(document), headers=headers, look=look))

    async def patch(self, name: str, changes: Mapping[str, Any], *, if_match: str | int | None = None) -> T:
        """Parts of it, as a JSON merge patch on what the API shows: objects merge, None removes."""
        path, headers = self._path(name), {**MERGE_PATCH, **matching(if_match)}
        look = None if if_match is None else look_for(path, changes, self._read, nulls_remove=True)
        return await self._ask(asked(self._read, "PATCH", path, body=dict(changes), headers=headers, look=look))

    async def delete(self, name: str, *, if_match: str | int | None = None) -> bool:
        """False if there was none."""
        path = self._path(name)
        return await self._ask(delete(path, headers=matching(if_match), look=look_whether_gone(path)))

    def _path(self, name: str, verb: str = "") -> str:
        return named(self._collection, name, verb)


class AsyncNounsApi(AsyncNamedApi[N]):
    """Those whose class is in `hascheduler.schema`: ``await scheduler.lanes.put(Lane(name="slow", weight=2))``."""

    def __init__(self, ask: Ask, collection: str) -> None:
        super().__init__(ask, collection, partial(_read_noun, collection))

    async def put(self, noun: N, *, if_match: str | int | None = None, if_none_match: Literal["*"] | None = None) -> N:
        """Make or replace it; fields that were not set get their defaults. To edit what was read, put a copy of it
        (``definition.model_copy(update={"max_concurrency": 4})``) with its ``rev`` as ``if_match``."""
        from hascheduler.client.nouns import said  # noqa: PLC0415  # programs that only submit need no pydantic

        return await self.put_document(noun.name, said(noun), if_match=if_match, if_none_match=if_none_match)


def _read_noun(collection: str, answer: JsonObject) -> Any:
    from hascheduler.client.nouns import read_noun  # noqa: PLC0415  # programs that only submit need no pydantic

    return read_noun(collection, answer)
