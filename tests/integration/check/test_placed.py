"""The look at what is not where the layout says, on a real server: whatever is stored, and by which index."""

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from pymongo.errors import WriteError

from hascheduler.check.finding import FindingKind
from hascheduler.model.collection import Collection
from hascheduler.mongo.connection import CLIENT_OPTIONS, Client, Database, connect, open_database
from tests.integration.check.healthy import AT_ONCE
from tests.integration.check.test_bounds import demand_index
from tests.integration.check.test_nonsense import IDS, mutated
from tests.sent_commands import SentCommands
from tests.unit.shards.test_check import ONE, TWO, Stored, keys

pytestmark = [pytest.mark.timeout(300)]


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
    report = await watched.scan(1).look(replace(AT_ONCE, batch=100))
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
async def test_mutated_documents_never_break_a_look(stored: Stored, collection: Collection) -> None:
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
            assert (await stored.scan(0).look(AT_ONCE)).at_ms
    report = await stored.look(replace(AT_ONCE, batch=7))
    for finding in report.findings:
        assert finding.what
        assert finding.hint
        assert len(finding.document) < 400
