"""The change stream on a real server: what it delivers, what it leaves out, and when it ends."""

import asyncio
from collections.abc import AsyncIterator

import bson
import pytest
from bson.raw_bson import RawBSONDocument

from hascheduler.dispatch.decisions import RecordVerdict, Settlement
from hascheduler.errors import HistoryLost
from hascheduler.mirror.changes import Change, Operation, Quarantined
from hascheduler.mirror.mirror import Mirror
from hascheduler.model.collection import Collection
from hascheduler.model.documents.lean_fields import LEAN_FIELDS
from hascheduler.model.event import EventType
from hascheduler.model.job import JobState
from hascheduler.model.leadership import EntryKind, JournalHead
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import FireCounts, Verdict, VerdictRun
from hascheduler.mongo.apply.claims import MongoClaimStore
from hascheduler.mongo.connection import Database
from hascheduler.mongo.jobs.store import MongoJobStore
from hascheduler.mongo.journal import MongoJournal
from hascheduler.mongo.schedules import MongoScheduleStore
from hascheduler.mongo.stream.source import MongoChangeSource, MongoChangeStream
from hascheduler.ports import JournalEntry
from hascheduler.schema.schedule import Basis
from tests.factories import NOW, make_schedule
from tests.integration.mongo.examples import RETENTION_MS, job, schedule

_PATIENCE_MS = 10_000


@pytest.fixture
async def stream(database: Database) -> AsyncIterator[MongoChangeStream]:
    stream = await MongoChangeSource(database).open(None)
    yield stream
    await stream.close()


async def received(stream: MongoChangeStream, count: int) -> list[Change]:
    changes: list[Change] = []
    while len(changes) < count:
        batch = await stream.next_batch(_PATIENCE_MS)
        assert batch.changes, f"silence after {changes}"
        changes += batch.changes
    assert len(changes) == count
    return changes


async def snapshot(stream: MongoChangeStream) -> list[Change]:
    return [change async for part in stream.snapshot() for change in part]


async def test_jobs_that_are_submitted_in_one_transaction_are_submitted_as_any_others(
    database: Database, stream: MongoChangeStream
) -> None:
    store = MongoJobStore(database, RETENTION_MS)
    await store.submit_all([job("a"), job("b", waits_for=("a",))])
    await store.submit(job("c"))
    events = Mirror().fold(await received(stream, 3)).events
    assert [(event.job, event.type) for event in events] == [(id, EventType.SUBMITTED) for id in "abc"]
    assert len({event.id for event in events}) == len(events)


async def test_an_update_of_other_fields_delivers_only_its_rev(database: Database, stream: MongoChangeStream) -> None:
    await database.jobs.insert_one({"_id": "a", "rev": 1})
    await database.jobs.update_one({"_id": "a"}, {"$set": {"late_results": [1]}})
    await database.jobs.update_one({"_id": "a"}, {"$set": {"late_results": [2]}, "$inc": {"rev": 1}})
    put, patch = await received(stream, 2)
    assert (put.operation, put.fields) == (Operation.PUT, {"rev": 1})
    assert (patch.operation, patch.fields) == (Operation.PATCH, {"rev": 2})


@pytest.mark.parametrize(
    "edit",
    [
        {"$set": {"job.priority": 9}, "$inc": {"rev": 1}},
        {"$unset": {"trigger.anchor_ms": ""}, "$inc": {"rev": 1}},
        {"$unset": {"cursor_ms": ""}},
    ],
)
async def test_a_part_of_a_field_changed_by_hand_is_read_whole(
    database: Database, stream: MongoChangeStream, edit: dict[str, dict[str, object]]
) -> None:
    await MongoScheduleStore(database).create(schedule("tick"))
    await database.schedules.update_one({"_id": "tick"}, edit)
    _, edited = await received(stream, 2)
    stored = await database.schedules.find_one({"_id": "tick"}, list(LEAN_FIELDS[Collection.SCHEDULES]))
    assert stored is not None
    assert edited.operation is Operation.PUT
    assert {"_id": "tick", **edited.fields} == stored


async def test_of_the_journal_only_inserts_are_delivered(database: Database, stream: MongoChangeStream) -> None:
    journal = MongoJournal(database)
    for seq in (1, 2):
        await journal.insert(JournalEntry(JournalHead("s", seq, 1, EntryKind.DECISIONS, "me", 0), WallMs(seq)))
    assert await journal.trim("s", 2, WallMs(2)) == 1
    await database.journal.update_one({}, {"$set": {"term": 9}})
    await database.definitions.insert_one({"_id": "end", "rev": 1})
    changes = await received(stream, 3)
    assert [change.id for change in changes] == [{"shard": "s", "seq": 1}, {"shard": "s", "seq": 2}, "end"]


async def test_the_snapshot_holds_live_jobs_and_the_newest_entry_of_each_shard(
    database: Database, stream: MongoChangeStream
) -> None:
    await database.jobs.insert_many([{"_id": state.value, "state": state.value} for state in JobState])
    journal = MongoJournal(database)
    for shard, seq in (("a", 1), ("a", 12), ("ab", 3), ("b", 2), ("b", 1)):
        await journal.insert(JournalEntry(JournalHead(shard, seq, 1, EntryKind.DECISIONS, "me", 0), WallMs(seq)))
    await database.journal.insert_many([{"_id": "by hand"}, {"_id": {}}, {"_id": {"other": 1}}])
    changes = await snapshot(stream)
    jobs = {change.id for change in changes if change.collection is Collection.JOBS}
    assert jobs == {"pending", "dispatched", "running"}
    mirror = Mirror()
    mirror.fold(changes)
    heads = [mirror.journal_head(shard) for shard in ("a", "ab", "b")]
    assert [head.seq for head in heads if head is not None] == [12, 3, 2]


async def test_a_document_that_is_hard_to_decode_is_quarantined_and_the_others_go_on(
    database: Database, stream: MongoChangeStream
) -> None:
    broken = bson.encode({"_id": "broken", "rev": 1, "target": "XX"}).replace(b"XX", b"\xff\xfe")
    far = bson.encode({"_id": "far", "rev": bson.DatetimeMS(10**15)})
    odd = {"_id": "odd", "rev": {"$ref": 5, "$id": 1}}
    jobs = database.jobs
    for document in (RawBSONDocument(broken), RawBSONDocument(far), odd, {"_id": 7, "rev": 1}):
        await jobs.insert_one(document)
    await MongoJobStore(database, RETENTION_MS).submit(job("fine"))
    mirror = Mirror()
    facts = mirror.fold(await received(stream, 5)).facts
    assert [fact.id for fact in facts if isinstance(fact, Quarantined)] == ["broken", "far", "odd", "7"]
    assert set(mirror.nouns(Collection.JOBS)) == {"fine"}


@pytest.mark.parametrize("loss", ["drop", "rename away", "rename onto", "drop the database"])
async def test_a_lost_collection_ends_the_stream(database: Database, stream: MongoChangeStream, loss: str) -> None:
    match loss:
        case "drop":
            await database.definitions.drop()
        case "rename away":
            await database.definitions.rename("elsewhere")
        case "rename onto":
            await database.other.insert_one({})
            await database.other.rename("definitions", dropTarget=True)
        case _:
            await database.client.drop_database(database.name)
    with pytest.raises(HistoryLost):
        await received(stream, 1)


async def test_a_resync_after_a_dropped_collection_creates_it_with_its_indexes(database: Database) -> None:
    made = await database.processors.index_information()
    source = MongoChangeSource(database)
    stream = await source.open(None)
    await database.processors.drop()
    await database.processors.insert_one({"_id": "p"})
    with pytest.raises(HistoryLost):
        await received(stream, 1)
    await stream.close()
    await (await source.open(None)).close()
    assert len(made) > 1
    assert await database.processors.index_information() == made


async def test_other_collections_deliver_no_changes(database: Database, stream: MongoChangeStream) -> None:
    await database.other.insert_one({"_id": "x"})
    await database.other.drop()
    await database.jobs.insert_one({"_id": "a"})
    assert [change.id for change in await received(stream, 1)] == ["a"]


async def test_cancelled_waits_lose_nothing(database: Database, stream: MongoChangeStream) -> None:
    seen: list[object] = []
    for number in range(200):
        waiting = asyncio.create_task(stream.next_batch(_PATIENCE_MS))
        await asyncio.sleep(0)
        await database.jobs.insert_one({"_id": str(number)})
        waiting.cancel()
        [answer] = await asyncio.gather(waiting, return_exceptions=True)
        if not isinstance(answer, BaseException):
            seen += [change.id for change in answer.changes]
    seen += [change.id for change in await received(stream, 200 - len(seen))]
    assert seen == [str(number) for number in range(200)]


async def test_more_than_fits_the_buffer_arrives_in_order(database: Database, stream: MongoChangeStream) -> None:
    ids = [f"{number:05}" for number in range(6_000)]
    await database.jobs.insert_many([{"_id": id} for id in ids])
    assert [change.id for change in await received(stream, len(ids))] == ids


async def test_a_move_of_the_cursor_that_counts_missed_times_tells_them_in_one_change(
    database: Database, stream: MongoChangeStream
) -> None:
    """Whole, also when it replaces what an earlier one told; a move that counts none says nothing of them."""
    await MongoScheduleStore(database).create(make_schedule())
    claims, mirror = MongoClaimStore(database, RETENTION_MS), Mirror()
    told: list[list[tuple[int | None, int | None, int | None]]] = []
    mirror.fold(await received(stream, 1))
    for verdict, first, last in (("missed", 1, 3), ("missed", 4, 9), ("excluded", 10, 10), ("missed", 11, 11)):
        run = VerdictRun("tick", Verdict(verdict), second(first), second(last), last - first + 1)
        decision = RecordVerdict(run, Basis(second(first - 1), NOW), FireCounts(missed=last))
        assert await claims.apply([decision], second(12), majority=True) == [Settlement.DONE]
        [change] = await received(stream, 1)
        assert change.operation is Operation.PATCH
        told.append([(each.nominal_ms, each.through_ms, each.count) for each in mirror.fold([change]).events])
    assert told == [
        [(second(1), second(3), 3)],
        [(second(4), second(9), 6)],
        [],
        [(second(11), second(11), 1)],
    ]


def second(number: int) -> WallMs:
    return WallMs(NOW + number * 1_000)
