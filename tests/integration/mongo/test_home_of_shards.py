"""What only a real server shows of the home: races of upserts, its clock, and by which index it jumps."""

from typing import Any

from hascheduler.model.partition import partition_of
from hascheduler.mongo.connection import Database
from hascheduler.shards.home import LayoutStore, agreed_layout
from hascheduler.shards.layout import Layout
from hascheduler.shards.names import TENANTS_OF_SCHEDULES, Names
from tests.contract.checks import RACERS, raced
from tests.factories import NOW

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
