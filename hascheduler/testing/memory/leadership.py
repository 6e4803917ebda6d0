"""Leadership in memory: leases, the journal, accounts, reports of failovers; heartbeats of replicas."""

from collections.abc import Iterator, Sequence

from hascheduler.dispatch.accounts import AccountsSnapshot, decode_accounts, encode_accounts
from hascheduler.dispatch.decisions import EXTRA_FIELDS, decode_decisions, encode_decisions, encode_extras
from hascheduler.model.collection import Collection
from hascheduler.model.documents import leadership
from hascheduler.model.leadership import JournalHead, LeaseRecord
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import FAILOVERS_MAX, JournalEntry
from hascheduler.schema.failover import Failover, encode_failover, failover_id, readable_failovers
from hascheduler.schema.noun import document_of
from hascheduler.schema.replica import ReplicaStatus
from hascheduler.testing.memory.database import Document, MemoryDatabase, MemoryStore

REPLICA_KEPT_MS = 60_000


class MemoryLeaseStore(MemoryStore):
    """`hascheduler.ports.LeaseStore`."""

    async def get(self, name: str) -> LeaseRecord | None:
        async with self._connection.exchange("leases.get") as database:
            document = database.find(Collection.LEASES, name)
            return None if document is None else leadership.readable_lease(document["_id"], document)

    async def create(self, record: LeaseRecord) -> bool:
        async with self._connection.exchange("leases.create") as database:
            there = database.find(Collection.LEASES, record.name)
            if there is None or leadership.readable_lease(there["_id"], there) is not None:
                return database.insert(Collection.LEASES, leadership.encode_lease(record))
            database.replace(Collection.LEASES, leadership.encode_lease(record))
            return True

    async def update(self, expected: LeaseRecord, proposed: LeaseRecord) -> bool:
        async with self._connection.exchange("leases.update") as database:
            stored = database.find(Collection.LEASES, expected.name)
            version = (expected.holder, expected.term, expected.renewals)
            if stored is None or (stored.get("holder"), stored.get("term"), stored.get("renewals")) != version:
                return False
            database.replace(Collection.LEASES, leadership.encode_lease(proposed))
            return True


class MemoryJournal(MemoryStore):
    """`hascheduler.ports.Journal`."""

    async def tail(self, name: str) -> JournalHead | None:
        async with self._connection.exchange("journal.tail") as database:
            newest = max(_documents_of(database, name), key=_seq, default=None)
            return None if newest is None else leadership.decode_journal_head(newest["_id"], newest)

    async def insert(self, entry: JournalEntry) -> bool:
        async with self._connection.exchange("journal.insert") as database:
            return database.insert(
                Collection.JOURNAL,
                {
                    **leadership.encode_journal_head(entry.head),
                    "at_ms": entry.at_ms,
                    "decisions": encode_decisions(entry.decisions),
                    **encode_extras(entry.decisions),
                },
            )

    async def get(self, name: str, seq: int) -> JournalEntry | None:
        async with self._connection.exchange("journal.get") as database:
            document = database.find(Collection.JOURNAL, leadership.journal_id(name, seq))
            return None if document is None else _journal_entry(document)

    async def read(self, name: str, after_seq: int, before_seq: int) -> list[JournalEntry]:
        async with self._connection.exchange("journal.read") as database:
            between = [doc for doc in _documents_of(database, name) if after_seq < _seq(doc) < before_seq]
            return [_journal_entry(document) for document in sorted(between, key=_seq)]

    async def trim(self, name: str, through_seq: int, before_ms: WallMs) -> int:
        async with self._connection.exchange("journal.trim") as database:
            old = [
                document["_id"]
                for document in _documents_of(database, name)
                if _seq(document) <= through_seq and document["at_ms"] < before_ms
            ]
            return sum(database.delete(Collection.JOURNAL, id) for id in old)


def _documents_of(database: MemoryDatabase, name: str) -> Iterator[Document]:
    entries = database.documents(Collection.JOURNAL)
    return (each for each in entries if each["_id"] == leadership.journal_id(name, _seq(each)))


def _seq(document: Document) -> int:
    return int(document["_id"]["seq"])


def _journal_entry(document: Document) -> JournalEntry:
    head = leadership.decode_journal_head(document["_id"], document)
    decisions = decode_decisions(document["decisions"], *map(document.get, EXTRA_FIELDS))
    return JournalEntry(head, WallMs(document["at_ms"]), decisions)


class MemoryAccountStore(MemoryStore):
    """`hascheduler.ports.AccountStore`."""

    async def save(self, name: str, term: int, accounts: AccountsSnapshot) -> bool:
        async with self._connection.exchange("accounts.save") as database:
            stored = database.find(Collection.ACCOUNTS, name)
            if stored is not None and stored["term"] > term:
                return False
            database.replace(Collection.ACCOUNTS, {"_id": name, "term": term, **encode_accounts(accounts)})
            return True

    async def load(self, name: str) -> AccountsSnapshot:
        async with self._connection.exchange("accounts.load") as database:
            return decode_accounts(database.find(Collection.ACCOUNTS, name) or {})


class MemoryReplicaBoard(MemoryStore):
    """`hascheduler.ports.ReplicaBoard`."""

    async def beat(self, status: ReplicaStatus) -> WallMs | None:
        async with self._connection.exchange("replicas.beat") as database:
            expiry = {"expire_at": database.instant_in(REPLICA_KEPT_MS)}
            database.replace(Collection.REPLICAS, {**document_of(status), **expiry})
        # None: tests set the time of this database, so no clock may be compared with it.
        return None

    async def remove(self, replica_id: str) -> None:
        async with self._connection.exchange("replicas.remove") as database:
            database.delete(Collection.REPLICAS, replica_id)


class MemoryFailoverStore(MemoryStore):
    """`hascheduler.ports.FailoverStore`."""

    async def save(self, failover: Failover) -> None:
        async with self._connection.exchange("failovers.save") as database:
            database.replace(Collection.FAILOVERS, encode_failover(failover))
            for document in _newest_first(database, failover.shard)[FAILOVERS_MAX:]:
                database.delete(Collection.FAILOVERS, document["_id"])

    async def newest(self, name: str, limit: int) -> Sequence[Failover]:
        async with self._connection.exchange("failovers.newest") as database:
            return readable_failovers(_newest_first(database, name)[:limit])


def _newest_first(database: MemoryDatabase, name: str) -> list[Document]:
    found = [each for each in database.documents(Collection.FAILOVERS) if each["_id"] == failover_id(name, _term(each))]
    return sorted(found, key=_term, reverse=True)


def _term(document: Document) -> int:
    return int(document["_id"]["term"])
