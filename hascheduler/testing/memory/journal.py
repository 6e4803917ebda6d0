"""The ordered record of every decision."""

from collections.abc import Iterator

from hascheduler.dispatch.decisions import BESIDE, decode_decisions, encode_beside, encode_decisions
from hascheduler.model.collection import Collection
from hascheduler.model.documents.journal import decode_journal_head, encode_journal_head, journal_id
from hascheduler.model.instants import WallMs
from hascheduler.model.journal import JournalHead
from hascheduler.ports import JournalEntry
from hascheduler.testing.memory.connection import MemoryConnection
from hascheduler.testing.memory.database import Document, MemoryDatabase


class MemoryJournal:
    """`hascheduler.ports.Journal`."""

    def __init__(self, connection: MemoryConnection) -> None:
        self._connection = connection

    async def tail(self, shard: str) -> JournalHead | None:
        async with self._connection.exchange("journal.tail") as database:
            newest = max(_documents_of(database, shard), key=_seq, default=None)
            return None if newest is None else decode_journal_head(newest["_id"], newest)

    async def insert(self, entry: JournalEntry) -> bool:
        async with self._connection.exchange("journal.insert") as database:
            return database.insert(
                Collection.JOURNAL,
                {
                    **encode_journal_head(entry.head),
                    "at_ms": entry.at_ms,
                    "decisions": encode_decisions(entry.decisions),
                    **encode_beside(entry.decisions),
                },
            )

    async def get(self, shard: str, seq: int) -> JournalEntry | None:
        async with self._connection.exchange("journal.get") as database:
            document = database.find(Collection.JOURNAL, journal_id(shard, seq))
            return None if document is None else _entry(document)

    async def read(self, shard: str, after_seq: int, before_seq: int) -> list[JournalEntry]:
        async with self._connection.exchange("journal.read") as database:
            between = [doc for doc in _documents_of(database, shard) if after_seq < _seq(doc) < before_seq]
            return [_entry(document) for document in sorted(between, key=_seq)]

    async def trim(self, shard: str, through_seq: int, before_ms: WallMs) -> int:
        async with self._connection.exchange("journal.trim") as database:
            old = [
                document["_id"]
                for document in _documents_of(database, shard)
                if _seq(document) <= through_seq and document["at_ms"] < before_ms
            ]
            return sum(database.delete(Collection.JOURNAL, id) for id in old)


def _documents_of(database: MemoryDatabase, shard: str) -> Iterator[Document]:
    return (document for document in database.documents(Collection.JOURNAL) if document["_id"]["shard"] == shard)


def _seq(document: Document) -> int:
    return int(document["_id"]["seq"])


def _entry(document: Document) -> JournalEntry:
    head = decode_journal_head(document["_id"], document)
    decisions = decode_decisions(document["decisions"], *map(document.get, BESIDE))
    return JournalEntry(head, WallMs(document["at_ms"]), decisions)
