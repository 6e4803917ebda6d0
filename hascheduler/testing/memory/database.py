"""The documents, the history of their changes, and a client's connection to both.

None of the database's methods awaits, so everything a caller does between two awaits is one transaction. Documents are
never changed in place: `find` returns one version, which never changes and is only to be read. Every change of a
document is one event of the history; a write that changes nothing adds none. Events hold the lean fields, as a mirror
gets them.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar, cast

from hascheduler.errors import HistoryLost, InvalidInput, StoreUnavailable
from hascheduler.mirror.changes import Change, Operation
from hascheduler.model.collection import Collection
from hascheduler.model.documents.lean_fields import LEAN_FIELDS
from hascheduler.model.event import position
from hascheduler.model.values.instants import WallMs, to_datetime
from hascheduler.ports import ListPosition

Document = Mapping[str, Any]
T = TypeVar("T")

EVENTS_MAX = 100_000
NESTED_MAX = 178
"""The deepest nesting of objects and lists, the document itself not counted; MongoDB takes 178 or 179, by the write."""
_LARGEST = 2**63 - 1
_A_SECOND = 1_000
"""The number of events in one second of the order."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """A collection was dropped with all its documents, without an event for each."""

    collection: str


class History:
    """All changes in one total order: events and their numbers, which only grow.

    Each event has a time of its own, on a clock that only orders: its position is made of its number. Events can be
    forgotten, from the oldest on; a stream that has not read them by then has lost history.
    """

    def __init__(self, events_max: int = EVENTS_MAX) -> None:
        self._events: deque[Change | Dropped] = deque(maxlen=events_max)
        self._newest = 0
        self.news = asyncio.Event()
        """Set at the next event or at `wake`. Take it before reading, and wait for it after."""

    @property
    def newest(self) -> int:
        """Return the number of the newest event; 0 before the first."""
        return self._newest

    @property
    def last(self) -> Change | Dropped | None:
        """Return the newest event; None if it is forgotten."""
        return self._events[-1] if self._events else None

    def append(self, event: Change | Dropped) -> None:
        self._add(event)
        self.wake()

    def after(self, number: int, limit: int) -> list[Change | Dropped]:
        """Return at most ``limit`` events after event ``number``; raise `HistoryLost` if some of them are forgotten."""
        forgotten = self._newest - len(self._events)
        if number < forgotten:
            raise HistoryLost(f"the history begins after {forgotten}; the stream is at {number}")
        first = number - forgotten
        # By index: a deque finds its newest as fast as its oldest; an iterator would pass all before them.
        return [self._events[n] for n in range(first, min(first + limit, len(self._events)))]

    def forget(self) -> None:
        """Forget every event so far."""
        self._events.clear()
        self.wake()

    def wake(self) -> None:
        """Make every waiting stream read again."""
        self.news.set()
        self.news = asyncio.Event()

    def _add(self, event: Change | Dropped) -> None:
        self._newest += 1
        if isinstance(event, Change):
            event = replace(event, position=position(*divmod(self._newest, _A_SECOND)))
        self._events.append(event)


class MemoryDatabase:
    def __init__(self, events_max: int = EVENTS_MAX) -> None:
        self.history = History(events_max)
        self._documents: dict[Collection, dict[Hashable, Document]] = {collection: {} for collection in Collection}
        self._now_ms = WallMs(0)

    # Reading

    def find(self, collection: Collection, id: object) -> Document | None:
        return self._documents[collection].get(_key(id))

    def documents(self, collection: Collection) -> Iterator[Document]:
        """Return all documents, in no particular order."""
        return iter(self._documents[collection].values())

    def page(
        self,
        collection: Collection,
        after: str | None,
        limit: int,
        *,
        newest_first: bool = False,
        which: Callable[[Document], bool] = lambda _: True,
    ) -> list[Document]:
        """Return at most ``limit`` documents for which ``which`` is true, by id, only ids beyond ``after``."""
        documents = self._documents[collection]
        ids = sorted((key for key in documents if isinstance(key, str)), reverse=newest_first)
        beyond = (id for id in ids if after is None or (id < after if newest_first else id > after))
        return list(islice((documents[id] for id in beyond if which(documents[id])), limit))

    # Writing

    def insert(self, collection: Collection, document: Document) -> bool:
        """Insert the document; return False, with nothing written, if there is one with that id."""
        key = _key(document["_id"])
        if key in self._documents[collection]:
            return False
        self._put(collection, key, stored_form(document))
        return True

    def replace(self, collection: Collection, document: Document) -> None:
        """Insert the document, or replace the one with that id."""
        self._put(collection, _key(document["_id"]), stored_form(document))

    def update(self, collection: Collection, document: Document, fields: Mapping[str, Any]) -> Document:
        """Set ``fields`` in the stored ``document``; return the new version."""
        key = _key(document["_id"])
        changed = {
            name: value
            for name, value in stored_form(fields).items()
            if name not in document or not _is_same(document[name], value)
        }
        if not changed:
            return document
        updated = {**document, **changed}
        self._documents[collection][key] = updated
        lean = {name: changed[name] for name in LEAN_FIELDS.get(collection, ()) if name in changed}
        # Only inserts of the journal become events.
        if lean and collection is not Collection.JOURNAL:
            self.history.append(Change(collection, Operation.PATCH, updated["_id"], lean))
        return updated

    def delete(self, collection: Collection, id: object) -> bool:
        document = self._documents[collection].pop(_key(id), None)
        if document is not None and collection in LEAN_FIELDS and collection is not Collection.JOURNAL:
            self.history.append(Change(collection, Operation.DELETE, document["_id"], {}))
        return document is not None

    def drop(self, collection: Collection) -> None:
        """Remove all documents at once; every stream ends there."""
        self._documents[collection].clear()
        self.history.append(Dropped(collection))

    # Time

    def instant_in(self, span_ms: int) -> datetime:
        """Return the instant ``span_ms`` after the database's now."""
        return to_datetime(self._now_ms + span_ms)

    def pass_time_to(self, now_ms: WallMs) -> None:
        """Set the time to ``now_ms`` (never back), and delete what has expired by then."""
        self._now_ms = max(self._now_ms, now_ms)
        now = to_datetime(self._now_ms)
        for collection in Collection:
            expired = [
                document["_id"]
                for document in self._documents[collection].values()
                if isinstance(document.get("expire_at"), datetime) and document["expire_at"] <= now
            ]
            for id in expired:
                self.delete(collection, id)

    def _put(self, collection: Collection, key: Hashable, document: Document) -> None:
        before = self._documents[collection].get(key)
        # A replacement keeps its document's place.
        self._documents[collection][key] = document
        if before != document and collection in LEAN_FIELDS:
            self.history.append(put_of(collection, document))


@dataclass(slots=True)
class _Fault:
    of: str
    calls_left: int
    carried_out: bool


class MemoryConnection:
    """One client's connection: the place where answers get lost, on request and never by chance.

    A fault hits this connection, of one replica or processor, while the others go on. ``database`` itself has no
    faults: read it directly to see what is stored.
    """

    def __init__(self, database: MemoryDatabase) -> None:
        self.database = database
        self._faults: list[_Fault] = []
        self._is_cut = False
        self.breaks = 0
        """How often the streams of this connection were broken."""

    # Faults

    def fail_next(self, calls: int = 1, *, of: str = "", carried_out: bool = False) -> None:
        """Make the next ``calls`` exchanges raise `StoreUnavailable`.

        Each raises before anything is done, or, if ``carried_out``, after everything is done. ``of`` selects the
        exchanges whose name begins with it: ``"work.finish"``, or ``"work"`` for all of that store.
        """
        self._faults.append(_Fault(of, calls, carried_out))

    def cut(self) -> None:
        """Let no exchange through until `restore`, and end every open stream; each may be resumed."""
        self._is_cut = True
        self.breaks += 1
        self.database.history.wake()

    def restore(self) -> None:
        self._is_cut = False

    @asynccontextmanager
    async def exchange(self, name: str) -> AsyncIterator[MemoryDatabase]:
        """Run one transaction called ``name``. The body must not await: nothing else happens while it runs."""
        fault = self._take_fault(name)
        # Other tasks run meanwhile, as with a real server.
        await asyncio.sleep(0)
        if self._is_cut or (fault and not fault.carried_out):
            raise StoreUnavailable(f"{name}: no answer")
        yield self.database
        if fault:
            raise StoreUnavailable(f"{name}: the answer got lost")

    def _take_fault(self, name: str) -> _Fault | None:
        for fault in self._faults:
            if name.startswith(fault.of):
                fault.calls_left -= 1
                if fault.calls_left == 0:
                    self._faults.remove(fault)
                return fault
        return None


class MemoryStore:
    """A port's store: each call is one exchange with the database."""

    def __init__(self, connection: MemoryConnection) -> None:
        self._connection = connection


class RetainingStore(MemoryStore):
    """A store whose documents expire: jobs ``retention_ms`` after their end, records after their time."""

    def __init__(self, connection: MemoryConnection, retention_ms: int) -> None:
        super().__init__(connection)
        self._retention_ms = retention_ms


def put_of(collection: Collection, document: Document) -> Change:
    """Return the document as a mirror sees it."""
    lean = {name: document[name] for name in LEAN_FIELDS[collection] if name in document}
    return Change(collection, Operation.PUT, document["_id"], lean)


def is_after(position: ListPosition | None, place: tuple[int, str]) -> bool:
    """Return True if a list, newest first, has ``place`` after ``position``, which may have no id.

    A position without an id is before all of its instant.
    """
    if position is None:
        return True
    return place[0] <= position.at_ms if position.id is None else place < (position.at_ms, position.id)


def _is_same(before: object, after: object) -> bool:
    """Compare as the database does: 1 and true are equal only in Python."""
    return before == after and repr(before) == repr(after)


def _key(id: object) -> Hashable:
    id = _stored(id, NESTED_MAX)
    # An id may be an object, as in the journal, and objects have no hash.
    return id if isinstance(id, str) else (type(id).__name__, repr(id))


def stored_form(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of ``document`` as a database would return it; raise `InvalidInput` if it could not hold it."""
    return {_name(key): _stored(value, NESTED_MAX) for key, value in document.items()}


def copied(stored: T) -> T:
    """Return a copy of a stored value, which the reader may change."""
    copy: Any = stored
    if isinstance(stored, dict):
        copy = {key: copied(item) for key, item in stored.items()}
    elif isinstance(stored, list):
        copy = [copied(item) for item in stored]
    return cast(T, copy)


def _stored(value: Any, deeper: int) -> Any:
    match value:
        case str():
            return _text(value)
        case None | bool() | float() | datetime():
            return value
        case int():
            if not -_LARGEST - 1 <= value <= _LARGEST:
                raise _refused("an integer has more than 64 bits")
            return int(value)
        case Mapping() | list() | tuple() if deeper == 0:
            raise _refused("nested too deeply")
        case Mapping():
            return {_name(key): _stored(item, deeper - 1) for key, item in value.items()}
        case list() | tuple():
            return [_stored(item, deeper - 1) for item in value]
        case _:
            raise _refused(f"a {type(value).__name__} has no stored form")


def _name(key: object) -> str:
    if not isinstance(key, str):
        raise _refused("a key that is not a text")
    if "\0" in key:
        raise _refused("a key contains NUL")
    return _text(key)


def _text(text: str) -> str:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise _refused("a text contains an unpaired surrogate") from None
    return str(text)


def _refused(problem: str) -> InvalidInput:
    return InvalidInput(("document",), f"can't be stored: {problem}", "JSON with 64-bit integers")
