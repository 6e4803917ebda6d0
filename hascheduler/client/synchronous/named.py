# Written by scripts/generate-client from hascheduler/client/asynchronous/named.py: change that one.
"""What schedules, definitions, lanes and tenants share: each is written as a whole, or patched, under its name."""

from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

from hascheduler.client.bodies import encoded
from hascheduler.client.requests import MERGE_PATCH, Request, body_of, deleted, matching, named, not_there
from hascheduler.client.synchronous.asking import Ask, each

T = TypeVar("T")


class NamedApi(Generic[T]):
    """``if_match`` is the ``rev`` that a change is meant for: where another change came first it is refused, 412."""

    _collection: str

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def get(self, name: str) -> T:
        request: Request[T] = Request("GET", named(self._collection, name), body_of)
        return self._ask(request)

    def list(self) -> Iterator[T]:
        """All, by name."""
        for one in each(self._ask, f"/v1/{self._collection}", []):
            yield one

    def patch(self, name: str, changes: Mapping[str, Any], *, if_match: str | int | None = None) -> T:
        """Parts of it, as a JSON merge patch on what `get` shows: objects merge, None removes."""
        headers = {**MERGE_PATCH, **matching(if_match)}
        path, content = named(self._collection, name), encoded(dict(changes))
        request: Request[T] = Request("PATCH", path, body_of, headers=headers, content=content)
        return self._ask(request)

    def delete(self, name: str, *, if_match: str | int | None = None) -> bool:
        """False where there was none."""
        path = named(self._collection, name)
        return self._ask(Request("DELETE", path, deleted, headers=matching(if_match), absent=not_there))

    def _put(self, name: str, fields: Mapping[str, Any], if_match: str | int | None) -> T:
        path, content = named(self._collection, name), encoded(dict(fields))
        request: Request[T] = Request("PUT", path, body_of, headers=matching(if_match), content=content)
        return self._ask(request)
