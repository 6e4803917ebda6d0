"""With any documents in the database, a scan ends, and reports those that can't be read."""

from contextlib import suppress
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
from bson import Binary, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from pymongo.errors import WriteError

from hascheduler.model.collection import Collection
from tests.integration.check.healthy import AT_ONCE, Healthy

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
    report = await healthy.scan().look(AT_ONCE)
    assert report.at_ms
    for finding in report.findings:
        assert finding.what
        assert finding.hint
        assert len(finding.document) < 400


@pytest.mark.parametrize("document", [{"_id": "schema"}, {"_id": "schema", "version": "x"}, {"_id": 5}, {"_id": {}}])
async def test_a_malformed_schema_version_never_breaks_a_scan(healthy: Healthy, document: dict[str, Any]) -> None:
    await healthy.database.meta.insert_one(document)
    assert (await healthy.scan().look(AT_ONCE)).counts == {"unreadable": 1}


async def test_an_empty_database_lacks_only_its_collections_and_indexes(healthy: Healthy) -> None:
    await healthy.database.client.drop_database(healthy.database.name)
    report = await healthy.scan().look(AT_ONCE)
    assert set(report.counts) == {"index"}
    assert report.counts["index"] == len(Collection)
