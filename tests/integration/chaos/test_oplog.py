"""Versions from the oplog of a real mongod."""

import time
from random import Random
from typing import Any

from pymongo import AsyncMongoClient

from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import new_job_document
from hascheduler.model.documents.leadership import encode_hold
from hascheduler.model.partition import Hold, partition_key, partition_of
from hascheduler.mongo.connection import connect, open_database
from hascheduler.mongo.tenants import MongoTenantStore
from hascheduler.ports.tenants import Key
from tests.chaos.evidence import Oplog
from tests.checkers.evidence import Commit
from tests.factories import make_job


async def test_the_oplog_gives_every_version_and_the_last_is_what_is_stored(
    mongodb_uri: str, database_name: str
) -> None:
    chance = Random(7)
    async with AsyncMongoClient[dict[str, Any]](mongodb_uri) as client:
        since = (await client.admin.command("ping"))["operationTime"]
        jobs = client[database_name][Collection.JOBS.value]
        await jobs.insert_many([{"_id": f"j{number}", "rev": 0, "a": {"b": []}, "l": []} for number in range(5)])
        writes = 0
        for turn in range(60):
            update: Any = chance.choice(
                [
                    {"$inc": {"rev": 1}},
                    {"$push": {"l": {"n": turn}}, "$inc": {"rev": 1}},
                    {"$push": {"l": {"$each": [{"n": turn}], "$slice": -2}}, "$inc": {"rev": 1}},
                    {"$set": {"a.c": turn, f"f{turn % 3}": {"x": turn}}, "$inc": {"rev": 1}},
                    {"$unset": {"f0": ""}, "$inc": {"rev": 1}},
                    {"$push": {"a.b": turn}, "$inc": {"rev": 1}},
                    [{"$set": {"l": {"$concatArrays": ["$l", [{"n": turn}]]}, "rev": {"$add": ["$rev", 1]}}}],
                ]
            )
            writes += (await jobs.update_one({"_id": f"j{turn % 5}"}, update)).modified_count
        await jobs.delete_one({"_id": "j4"})
        oplog = Oplog(client, database_name, since, epoch_ms=0)
        await oplog.read()
        stored = {job["_id"]: job async for job in jobs.find()}
    assert {id: each[-1].after for id, each in _by_id(oplog.commits).items()} == {**stored, "j4": None}
    assert len(oplog.commits) == 5 + writes + 1
    for each in _by_id(oplog.commits).values():
        revs = [commit.after["rev"] for commit in each if commit.after is not None]
        assert revs == list(range(len(revs)))


def _by_id(commits: list[Commit]) -> dict[str, list[Commit]]:
    found: dict[str, list[Commit]] = {}
    for commit in commits:
        found.setdefault(commit.id, []).append(commit)
    return found


async def test_a_dropped_collection_is_the_end_of_each_of_its_documents(mongodb_uri: str, database_name: str) -> None:
    async with AsyncMongoClient[dict[str, Any]](mongodb_uri) as client:
        since = (await client.admin.command("ping"))["operationTime"]
        leases = client[database_name][Collection.LEASES.value]
        await leases.insert_one({"_id": "default", "term": 1})
        await leases.drop()
        oplog = Oplog(client, database_name, since, epoch_ms=time.time_ns() // 1_000_000)
        await oplog.read()
    assert [commit.after for commit in oplog.commits] == [{"_id": "default", "term": 1}, None]
    assert all(abs(commit.at_s) < 60 for commit in oplog.commits)


async def test_nothing_happens_to_a_document_that_moves_with_its_partition(
    mongodb_uri: str, database_name: str
) -> None:
    names = [database_name, f"{database_name}-0001"]
    key, moved = partition_key(partition_of("acme")), Key("jobs", "j")
    left, held = Hold(key, 5, is_held=True, released=5), Hold(key, 6, is_held=True, is_silent=True)
    async with connect(mongodb_uri) as client:
        since = (await client.admin.command("ping"))["operationTime"]
        here, there = databases = [open_database(client, name) for name in names]
        source, target = (MongoTenantStore(database, 60_000) for database in databases)
        await here["holds"].insert_one(encode_hold(left))
        await there["holds"].insert_one(encode_hold(held))
        await here["jobs"].insert_one({**new_job_document(make_job("j", tenant="acme")), "rev": 1})
        await target.put(held, await source.read([moved]), mark=3)
        await here["jobs"].update_one({"_id": "j"}, {"$set": {"rev": 2}})
        await target.put(held, await source.read([moved]), mark=3)
        await source.take(left, await source.versions_of([moved]))
        await there["jobs"].update_one({"_id": "j"}, {"$set": {"rev": 3}})
        left_here = await here["jobs"].count_documents({})
        oplog = Oplog(client, names[0], since, 0, names[1:])
        await oplog.read()
        for name in names:
            await client.drop_database(name)
    assert left_here == 0
    revs = [
        (commit.before and commit.before["rev"], commit.after and commit.after["rev"])
        for commit in oplog.commits
        if commit.collection is Collection.JOBS
    ]
    assert revs == [(None, 1), (1, 2), (2, 3)]
