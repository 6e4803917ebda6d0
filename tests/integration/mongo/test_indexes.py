"""Hot queries use an index; races, clock and jumps of the shards' home."""

from collections.abc import Mapping
from typing import Any

import pytest

from hascheduler.model.collection import Collection
from hascheduler.model.job import LIVE, JobState
from hascheduler.model.partition import partition_of
from hascheduler.mongo.connection import Database
from hascheduler.mongo.journal import entries_of
from hascheduler.shards.home import LayoutStore, agreed_layout
from hascheduler.shards.layout import Layout
from hascheduler.shards.names import TENANTS_OF_SCHEDULES, Names
from tests.contract.checks import RACERS, raced
from tests.factories import NOW
from tests.sent_commands import stages_of

NEWEST_FIRST = {"_id": -1}

HOT: dict[str, tuple[Collection, dict[str, Any], dict[str, int], str]] = {
    "snapshot of live jobs": (
        Collection.JOBS,
        {"state": {"$in": sorted(state.value for state in LIVE)}},
        {},
        "state_submitted",
    ),
    "batches that jobs wait for": (Collection.JOBS, {"batch": {"$in": ["b1", "b2"]}}, {}, "batch_submitted"),
    "claim": (
        Collection.JOBS,
        {"_id": {"$in": ["j1", "j2"]}, "state": {"$in": ["pending"]}, "attempt": 0},
        {},
        "_id_",
    ),
    "start": (
        Collection.JOBS,
        {"_id": "j1", "attempt": 1, "processor": "p", "state": {"$in": ["dispatched", "running"]}},
        {},
        "_id_",
    ),
    "tail of the journal": (Collection.JOURNAL, {"_id": entries_of("s1")}, NEWEST_FIRST, "_id_"),
    "schedules that fire": (Collection.SCHEDULES, {"_id": {"$in": ["a", "b"]}}, {}, "_id_"),
}


@pytest.mark.parametrize("name", HOT)
@pytest.mark.usefixtures("new_database")
async def test_a_hot_query_uses_its_index_and_sorts_nothing(database: Database, name: str) -> None:
    states = [state.value for state in JobState]
    await database.jobs.insert_many(
        [
            {
                "_id": f"j{number}",
                "state": states[number % len(states)],
                "attempt": 0,
                "definition": f"d{number % 7}",
                "schedule": f"s{number % 5}" if number % 2 else None,
                "batch": f"b{number % 9}" if number % 3 else None,
            }
            for number in range(300)
        ]
    )
    await database.journal.insert_many([{"_id": {"shard": f"s{n % 3}", "seq": n}} for n in range(300)])
    collection, query, sort, index = HOT[name]
    command: dict[str, Any] = {"find": collection.value, "filter": query, "limit": 50}
    if sort:
        command["sort"] = sort
    plan = (await database.command({"explain": command, "verbosity": "queryPlanner"}))["queryPlanner"]["winningPlan"]
    stages = stages_of(plan)
    assert not {stage["stage"] for stage in stages} & {"COLLSCAN", "SORT"}
    used = {stage.get("indexName", "_id_") for stage in stages if _reads_index(stage)}
    assert used == {index}, plan


def _reads_index(stage: Mapping[str, Any]) -> bool:
    return stage["stage"] in {"IXSCAN", "IDHACK", "EXPRESS"}


SHARDS = ("default", "0001")


async def test_of_many_replicas_that_start_at_once_one_makes_the_layout(database: Database) -> None:
    layouts = await raced(agreed_layout(database, SHARDS, lambda: NOW) for _ in range(RACERS))
    assert set(layouts) == {Layout.even(SHARDS)}
    store = LayoutStore(database)
    changes = [Layout.even(SHARDS).beginning({number: 0, number + 1: 1}) for number in range(RACERS)]
    assert sum(await raced(store.replace(1, change) for change in changes)) == 1
    assert await store.get() in changes


async def test_of_many_creates_at_once_those_of_one_partition_get_the_name(database: Database) -> None:
    names = Names(database, lambda: NOW)
    for number in range(5):
        name, partitions = f"tick-{number}", [each % 3 for each in range(RACERS)]
        got = await raced(names.reserve(name, each) for each in partitions)
        bound = await names.partition_of(name)
        assert got == [each == bound for each in partitions]


async def test_the_names_of_a_million_jobs_are_found_by_jumps_in_an_index(database: Database) -> None:
    names = Names(database, lambda: NOW)
    await database.jobs.insert_many(
        [
            {"_id": f"s{at % 7}@{at}", "schedule": f"s{at % 7}", "tenant": "t1", "submitted_at_ms": at}
            for at in range(700)
        ]
    )
    await database.jobs.insert_many([{"_id": f"job:{at}", "tenant": "t2", "submitted_at_ms": at} for at in range(100)])
    await names.reserve_all(database)
    bound = {each["_id"]: each["partition"] async for each in database.names.find({})}
    assert bound == {f"s{number}": partition_of("t1") for number in range(7)}
    command: dict[str, Any] = {"aggregate": "jobs", "pipeline": TENANTS_OF_SCHEDULES, "cursor": {}}
    plan = str(await database.command({"explain": command, "verbosity": "queryPlanner"}))
    assert "DISTINCT_SCAN" in plan
