# Written by scripts/generate-client from hascheduler/client/asynchronous/named.py: change that one.
"""Named documents: schedules, definitions, lanes, calendars and tenants are written whole, or patched, by name."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from hascheduler.client.requests import MERGE_PATCH, Rev, delete, matching, named, probe_for
from hascheduler.client.results import JsonObject, ListPage
from hascheduler.client.synchronous.asking import Asker, Part

if TYPE_CHECKING:
    from hascheduler.client.nouns import N
else:
    N = TypeVar("N")
T = TypeVar("T")
IfNone = Literal["*"] | None


class NamedApi(Part, Generic[T]):
    """The methods of one kind of named document.

    ``if_match`` is the ``rev`` that a change applies to: if another change came first, it is refused (412). With
    ``if_none_match="*"`` it is refused if the document exists. ``read`` makes a document of the replica's answer.
    """

    def __init__(self, asker: Asker, collection: str, read: Callable[[JsonObject], T]) -> None:
        super().__init__(asker)
        self._collection = collection
        self._read = read

    def get(self, name: str) -> T:
        return self._get(self._read, self._path(name))

    def find(self, name: str) -> T | None:
        """Return the document as `get` does; None if there is none."""
        read: Callable[[JsonObject], T | None] = self._read
        return self._ask(read, "GET", self._path(name), absent=lambda: None)

    def list(self) -> Iterator[T]:
        """Yield all, by name."""
        return self._each(self._read, f"/v1/{self._collection}")

    def page(self, *, limit: int | None = None, after: str | None = None) -> ListPage[T]:
        """Return a page of at most ``limit``, by name: the first ones, or those after a name."""
        return self._page(self._read, f"/v1/{self._collection}", limit=limit, after=after)

    def put_document(
        self, name: str, document: Mapping[str, Any], *, if_match: Rev = None, if_none_match: IfNone = None
    ) -> T:
        """Write the whole document, as a file or a program holds it; the replica validates it."""
        path, headers = self._path(name), matching(if_match, if_none_match)
        # A retry would conflict with its own revision.
        probe = probe_for(path, document, self._read) if headers else None
        return self._ask(self._read, "PUT", path, body=dict(document), headers=headers, probe=probe)

    def patch(self, name: str, changes: Mapping[str, Any], *, if_match: Rev = None) -> T:
        """Change parts of it by a JSON merge patch on what the API shows: objects merge, None removes."""
        path, headers = self._path(name), {**MERGE_PATCH, **matching(if_match)}
        probe = None if if_match is None else probe_for(path, changes, self._read, nulls_remove=True)
        return self._ask(self._read, "PATCH", path, body=dict(changes), headers=headers, probe=probe)

    def delete(self, name: str, *, if_match: Rev = None) -> bool:
        """Delete it; return False if there was none."""
        return self._asker.ask(delete(self._path(name), matching(if_match)))

    def _path(self, name: str, verb: str = "") -> str:
        return named(self._collection, name, verb)


class NounsApi(NamedApi[N]):
    """The methods of a class of `hascheduler.schema`: ``await scheduler.lanes.put(Lane(name="slow", weight=2))``."""

    def __init__(self, asker: Asker, collection: str) -> None:
        super().__init__(asker, collection, lambda answer: _nouns().read_noun(collection, answer))

    def put(self, noun: N, *, if_match: Rev = None, if_none_match: IfNone = None) -> N:
        """Create or replace it; fields that were not set get their defaults.

        To edit what was read, put a copy of it (``definition.model_copy(update={"max_concurrency": 4})``) with its
        ``rev`` as ``if_match``.
        """
        body = _nouns().body_of(noun)
        return self.put_document(noun.name, body, if_match=if_match, if_none_match=if_none_match)


def _nouns() -> Any:
    from hascheduler.client import nouns  # noqa: PLC0415  # programs that only submit need no pydantic

    return nouns
