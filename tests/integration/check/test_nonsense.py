"""With any documents in the database, a scan ends and reports those that can't be read or stand in the wrong place."""

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
from bson import Binary, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from pymongo.errors import WriteError

from hascheduler.check.finding import FindingKind
from hascheduler.model.collection import Collection
from hascheduler.mongo.connection import CLIENT_OPTIONS, Client, Database, connect, open_database
from tests.integration.check.healthy import AT_ONCE, Healthy
from tests.integration.check.test_motion import demand_index
from tests.sent_commands import SentCommands
from tests.unit.shards.test_check import ONE, TWO, Stored, keys

pytestmark = [pytest.mark.timeout(300)]

VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, Int64(2**53), Int64(2**62), Int64(-(2**62)), 1.5, float("nan"), float("inf"),
    "", "x", "x" * 2_000, "\x00", "default", "tick", "schedule:😀", [], [1], [None], [[]], ["a", 1], {}, {"a": 1},
    {"shard": "default", "seq": 3}, {"shard": [], "seq": "x"}, {"type": "cron", "expression": "*"},
    {"type": "interval", "every_ms": 1, "anchor_ms": 0}, {"type": "once", "at_ms": -5},
    [{"trigger": {"type": "interval", "every_ms": 7, "anchor_ms": 0}, "since_ms": -5, "through_ms": 2**60}],
    datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC), ObjectId(), Binary(b"\xff"),
    Decimal128("1e400"), Regex("a"), Timestamp(1, 1), MinKey(), MaxKey(),
    [["fire", "tick", "soon", [0, 0, None], [0, 0, 0, 0, 0, 0]]], [["dispatch", ["a"], 1, "p"]], [["dance"]],
    [["pass_over", "tick", "missed", "a", "b", 1, None, [0, 0, None], [0, 0, 0, 0, 0, 0]]],
]  # fmt: skip
IDS: list[Any] = [
    1, -2.5, True, ObjectId(), {"a": 1}, {"shard": "default"}, {"shard": "default", "seq": "x"}, {"seq": 1},
    Binary(b"x"), datetime(2000, 1, 1, tzinfo=UTC), "", "fire:tick:", "fire:tick:abc", "fire:tick:99999999999999999999",
    "x" * 1_000, "fire::1", "tick:", "tick:zzz", MinKey(), Decimal128("1"),
]  # fmt: skip
"""An array can't be one."""
MUTATIONS = 200


def mutated(random: Random, document: dict[str, Any]) -> dict[str, Any]:
    changed = dict(document)
    for name in random.sample(sorted(document), min(len(document), random.randint(1, 3))):
        if name != "_id":
            changed[name] = random.choice(VALUES)
    if random.random() < 0.2 and len(changed) > 1:
        del changed[random.choice([name for name in changed if name != "_id"])]
    return changed


@pytest.mark.parametrize("collection", [collection for collection in Collection if collection is not Collection.META])
async def test_mutated_documents_of_every_kind_never_break_a_scan(healthy: Healthy, collection: Collection) -> None:
    random = Random(f"nonsense {collection}")
    documents = healthy.database[collection.value]
    if collection is Collection.TOKENS:
        await documents.drop_index("id")  # it would keep some of the nonsense out
    samples = await documents.find().limit(20).to_list(None) or [{"_id": "x", "state": "pending"}]
    for number in range(MUTATIONS):
        document = mutated(random, random.choice(samples))
        document["_id"] = (
            {"shard": random.choice(["default", "x"]), "seq": 100 + number}
            if collection is Collection.JOURNAL
            else f"{random.choice(['fire:tick:', 'job:', 'tick:', ''])}m{number}"
        )
        if random.random() < 0.1:
            document["_id"] = random.choice(IDS)
        with suppress(WriteError):  # two arrays in one index
            await documents.replace_one({"_id": document["_id"]}, document, upsert=True)
    report = await healthy.scan().run(AT_ONCE)
    assert report.at_ms
    for finding in report.findings:
        assert finding.what
        assert finding.hint
        assert len(finding.document) < 400


@pytest.mark.parametrize("document", [{"_id": "schema"}, {"_id": "schema", "version": "x"}, {"_id": 5}, {"_id": {}}])
async def test_a_malformed_schema_version_never_breaks_a_scan(healthy: Healthy, document: dict[str, Any]) -> None:
    await healthy.database.meta.insert_one(document)
    assert (await healthy.scan().run(AT_ONCE)).counts == {"unreadable": 1}


async def test_an_empty_database_lacks_only_its_collections_and_indexes(healthy: Healthy) -> None:
    await healthy.database.client.drop_database(healthy.database.name)
    report = await healthy.scan().run(AT_ONCE)
    assert set(report.counts) == {"index"}
    assert report.counts["index"] == len(Collection)


@pytest.fixture
async def databases(mongodb_uri: str, ready_databases: Sequence[str]) -> AsyncIterator[Sequence[Database]]:
    client = connect(mongodb_uri)
    yield [open_database(client, name) for name in ready_databases]
    await client.close()


@pytest.fixture
async def stored(databases: Sequence[Database]) -> Stored:
    return await Stored(databases[:3]).made()


async def test_of_many_jobs_one_of_each_tenant_is_read_from_an_index(mongodb_uri: str, stored: Stored) -> None:
    second = stored.databases[1]
    many = [{"_id": f"job:{each}", "tenant": f"{ONE}", "submitted_at_ms": each} for each in range(100, 1_100)]
    await second["jobs"].insert_many(many)
    await stored.job(1, "job:x", TWO)
    commands = SentCommands()
    client: Client = Client(mongodb_uri, **CLIENT_OPTIONS, event_listeners=[commands])
    watched = Stored([open_database(client, database.name) for database in stored.databases])
    report = await watched.scan(1).run(replace(AT_ONCE, batch=100))
    await client.close()
    assert keys(report) == [(FindingKind.MISPLACED, "jobs/job:x")]
    assert report.looked_at["tenants of jobs"] == 2
    finds = [command for command in commands.sent if "find" in command]
    assert {command["find"] for command in finds} == {"routing", "names", "schedules", "jobs"}
    assert all(command["readConcern"]["level"] == "majority" for command in finds)
    for command in finds:
        if "tenant" in command["filter"]:
            await demand_index(second, command)


@pytest.mark.parametrize("collection", [Collection.JOBS, Collection.SCHEDULES, Collection.NAMES, Collection.ROUTING])
async def test_mutated_documents_never_break_a_scan(stored: Stored, collection: Collection) -> None:
    random = Random(f"nonsense of places {collection}")
    samples: list[dict[str, Any]] = [
        {"_id": "x", "tenant": ONE, "submitted_at_ms": 5, "job": {"tenant": ONE}, "partition": 7, "use": 1, "at_ms": 5}
    ]
    for number in range(100):
        index = random.randrange(3) if collection in (Collection.JOBS, Collection.SCHEDULES) else 0
        documents = stored.databases[index][collection.value]
        document = mutated(random, random.choice(await documents.find().limit(10).to_list(None) or samples))
        if isinstance(document.get("job"), dict) and random.random() < 0.5:
            document["job"] = mutated(random, document["job"])
        document["_id"] = f"m{number}" if random.random() < 0.8 else random.choice(IDS)
        if collection is Collection.ROUTING:
            document["_id"] = "routing"
        with suppress(WriteError):  # two arrays in one index
            await documents.replace_one({"_id": document["_id"]}, document, upsert=True)
        if collection is Collection.ROUTING and number % 10 == 0:
            assert (await stored.scan(0).run(AT_ONCE)).at_ms
    report = await stored.look(replace(AT_ONCE, batch=7))
    for finding in report.findings:
        assert finding.what
        assert finding.hint
        assert len(finding.document) < 400
