"""The ordered record of every decision, one document an entry, with its `journal_id` as ``_id``.

The insert is the fence. If two leaders want the same seq, they collide at the primary key, whatever their clocks and
leases show, and exactly one of them gets it. The entries of one name are one range of the ``_id`` index, newest last.
"""

from typing import Any

from bson import MaxKey, MinKey
from pymongo import ASCENDING, DESCENDING
from pymongo.errors import DuplicateKeyError

from hascheduler.dispatch.decisions import EXTRA_FIELDS, decode_decisions, encode_decisions, encode_extras
from hascheduler.errors import InvariantBroken
from hascheduler.model.collection import Collection
from hascheduler.model.documents.leadership import decode_journal_head, encode_journal_head, journal_id
from hascheduler.model.leadership import JournalHead
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.connection import MAJORITY, Database
from hascheduler.mongo.faults import faults
from hascheduler.ports import JournalEntry


class MongoJournal:
    """`hascheduler.ports.Journal`."""

    def __init__(self, database: Database) -> None:
        self._journal = database[Collection.JOURNAL.value].with_options(write_concern=MAJORITY)
        # Majority reads suffice. A recently deposed primary could miss the newest entries, but an insert behind its
        # tail then collides with them at the primary key. (Linearizable reads took 100 ms each.)

    async def tail(self, name: str) -> JournalHead | None:
        with faults("read the tail of the journal"):
            document = await self._journal.find_one(
                {"_id": entries_of(name)},
                dict.fromkeys(("decisions", *EXTRA_FIELDS), False),
                sort=[("_id", DESCENDING)],
            )
        return None if document is None else decode_journal_head(document["_id"], document)

    async def insert(self, entry: JournalEntry) -> bool:
        document = {
            **encode_journal_head(entry.head),
            "at_ms": entry.at_ms,
            "decisions": encode_decisions(entry.decisions),
            **encode_extras(entry.decisions),
        }
        with faults("append to the journal"):
            try:
                await self._journal.insert_one(document)
            except DuplicateKeyError:
                return False
        return True

    async def get(self, name: str, seq: int) -> JournalEntry | None:
        with faults("read the journal"):
            document = await self._journal.find_one({"_id": journal_id(name, seq)})
        return None if document is None else _entry(document)

    async def read(self, name: str, after_seq: int, before_seq: int) -> list[JournalEntry]:
        between = {"$gt": journal_id(name, after_seq), "$lt": journal_id(name, before_seq)}
        with faults("read the journal"):
            documents = await self._journal.find({"_id": between}).sort("_id", ASCENDING).to_list(None)
        return [_entry(document) for document in documents]

    async def trim(self, name: str, through_seq: int, before_ms: WallMs) -> int:
        old = {"$gte": journal_id(name, MinKey()), "$lte": journal_id(name, through_seq)}
        with faults("trim the journal"):
            answer = await self._journal.delete_many({"_id": old, "at_ms": {"$lt": before_ms}})
        return answer.deleted_count


def entries_of(name: str) -> dict[str, Any]:
    """Return the range of ``_id`` that holds the entries of that name."""
    return {"$gte": journal_id(name, MinKey()), "$lte": journal_id(name, MaxKey())}


def _entry(document: dict[str, Any]) -> JournalEntry:
    head = decode_journal_head(document["_id"], document)
    rows, at_ms = document.get("decisions"), document.get("at_ms")
    if not isinstance(rows, list) or not isinstance(at_ms, int):
        # Only this code writes entries; a decision can't be guessed.
        raise InvariantBroken(f"journal entry {head.name}/{head.seq} has no decisions or no time")
    decisions = decode_decisions(rows, *map(document.get, EXTRA_FIELDS))
    return JournalEntry(head, WallMs(at_ms), decisions)
