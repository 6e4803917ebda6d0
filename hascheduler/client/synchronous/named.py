# Written by scripts/generate-client from hascheduler/client/asynchronous/named.py: change that one.
"""What schedules, definitions, lanes, calendars and tenants share: each is written as a whole, or patched, by name."""

from collections.abc import Iterator, Mapping
from typing import Any, Generic, Literal, TypeVar

from hascheduler.client.bodies import encoded
from hascheduler.client.requests import (
    MERGE_PATCH,
    Request,
    as_it_is,
    body_of,
    deleted,
    look_for,
    look_whether_gone,
    matching,
    named,
    not_there,
    page,
)
from hascheduler.client.results import ListPage
from hascheduler.client.synchronous.asking import Ask, each

T = TypeVar("T")


class NamedApi(Generic[T]):
    """``if_match`` is the ``rev`` that a change is meant for: where another change came first it is refused, 412; so it
    is with ``if_none_match="*"`` where there is one already."""

    _collection: str

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def get(self, name: str) -> T:
        request: Request[T] = Request("GET", named(self._collection, name), body_of)
        return self._ask(request)

    def find(self, name: str) -> T | None:
        """As `get`, and None where there is none."""
        request: Request[T | None] = Request("GET", named(self._collection, name), body_of, absent=lambda: None)
        return self._ask(request)

    def list(self) -> Iterator[T]:
        """All, by name."""
        for one in each(self._ask, f"/v1/{self._collection}", []):
            yield one

    def page(self, *, limit: int | None = None, after: str | None = None) -> ListPage[T]:
        """A page of at most ``limit``, by name: the first ones, or those after a name."""
        request: Request[ListPage[T]] = page(f"/v1/{self._collection}", [], as_it_is, limit, after)
        return self._ask(request)

    def put_document(
        self,
        name: str,
        document: Mapping[str, Any],
        *,
        if_match: str | int | None = None,
        if_none_match: Literal["*"] | None = None,
    ) -> T:
        """Write it as a whole, as a file or a program holds it: the replica says what is wrong with it."""
        path, headers, content = (
            named(self._collection, name),
            matching(if_match, if_none_match),
            encoded(dict(document)),
        )
        look = look_for(path, document) if headers else None  # it would meet its own revision, and be refused
        request: Request[T] = Request("PUT", path, body_of, headers=headers, content=content, look=look)
        return self._ask(request)

    def patch(self, name: str, changes: Mapping[str, Any], *, if_match: str | int | None = None) -> T:
        """Parts of it, as a JSON merge patch on what `get` shows: objects merge, None removes."""
        headers = {**MERGE_PATCH, **matching(if_match)}
        path, content = named(self._collection, name), encoded(dict(changes))
        look = None if if_match is None else look_for(path, changes, nulls_remove=True)
        request: Request[T] = Request("PATCH", path, body_of, headers=headers, content=content, look=look)
        return self._ask(request)

    def delete(self, name: str, *, if_match: str | int | None = None) -> bool:
        """False where there was none."""
        path = named(self._collection, name)
        headers, look = matching(if_match), look_whether_gone(path)
        return self._ask(Request("DELETE", path, deleted, headers=headers, look=look, absent=not_there))
