"""The documents, and the writes that change them.

Owner of all documents. None of its methods awaits, so whatever a caller does between two awaits is one transaction.
Documents are never changed in place: what `find` gives is that version for ever, to be read only. Every change of a
document is one event of the history; a write that changes nothing is none.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

from hascheduler.mirror.changes import Change, Operation
from hascheduler.model.collection import Collection
from hascheduler.model.documents.lean_fields import LEAN_FIELDS
from hascheduler.model.values.instants import WallMs, to_datetime
from hascheduler.testing.memory.history import EVENTS_MAX, Dropped, History
from hascheduler.testing.memory.storable import stored_form, stored_value

Document = Mapping[str, Any]


class MemoryDatabase:
    def __init__(self, events_max: int = EVENTS_MAX) -> None:
        self.history = History(events_max)
        self._documents: dict[Collection, dict[Hashable, Document]] = {collection: {} for collection in Collection}
        self._now_ms = WallMs(0)

    # Reading

    def find(self, collection: Collection, id: object) -> Document | None:
        return self._documents[collection].get(_key(id))

    def documents(self, collection: Collection) -> Iterator[Document]:
        """All of them, in no order that means anything."""
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
        """At most ``limit`` of those for which ``which`` holds, by id, only ids beyond ``after``."""
        documents = self._documents[collection]
        ids = sorted((key for key in documents if isinstance(key, str)), reverse=newest_first)
        beyond = (id for id in ids if after is None or (id < after if newest_first else id > after))
        return list(islice((documents[id] for id in beyond if which(documents[id])), limit))

    # Writing

    def insert(self, collection: Collection, document: Document) -> bool:
        """False, and nothing written, when there is one by that id."""
        key = _key(document["_id"])
        if key in self._documents[collection]:
            return False
        self._put(collection, key, stored_form(document))
        return True

    def replace(self, collection: Collection, document: Document) -> None:
        """Insert, or put in the place of the one by that id."""
        self._put(collection, _key(document["_id"]), stored_form(document))

    def update(self, collection: Collection, document: Document, fields: Mapping[str, Any]) -> Document:
        """Set ``fields`` in the stored ``document``; the new version of it."""
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
        """Everything in it goes at once, and every stream ends there."""
        self._documents[collection].clear()
        self.history.append(Dropped(collection))

    # Time

    def instant_in(self, span_ms: int) -> datetime:
        """The instant that is ``span_ms`` from the database's now."""
        return to_datetime(self._now_ms + span_ms)

    def pass_time_to(self, now_ms: WallMs) -> None:
        """Sets the time to ``now_ms`` (never earlier than before), and deletes what has expired by then."""
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


def put_of(collection: Collection, document: Document) -> Change:
    """The document as a mirror sees it."""
    lean = {name: document[name] for name in LEAN_FIELDS[collection] if name in document}
    return Change(collection, Operation.PUT, document["_id"], lean)


def _is_same(before: object, after: object) -> bool:
    """As the database compares: 1 and true are equal to Python only."""
    return before == after and repr(before) == repr(after)


def _key(id: object) -> Hashable:
    id = stored_value(id)
    # An id may be an object, as the journal's are, and those have no hash.
    return id if isinstance(id, str) else (type(id).__name__, repr(id))
