"""How many processors serve a shard, as a processor that looks for its shards asks."""

from datetime import timedelta
from typing import Any

from hascheduler.model.collection import Collection
from hascheduler.model.processor import ProcessorRef
from hascheduler.mongo.connection import Database
from hascheduler.mongo.work.store import MongoWorkStore, count_servers

LOG = frozenset({"log"})
DEAD_AFTER_MS = 5_000


async def register(database: Database, id: str, definitions: frozenset[str] = LOG, **more: Any) -> None:
    fields: dict[str, Any] = {"slots": 4, "draining": False, **more}
    processor = ProcessorRef(id=id, name="p", shard="s", definitions=definitions, beat=1, parked=0, **fields)
    await MongoWorkStore(database, 600_000).register(processor)


async def servers(database: Database, *definitions: str) -> int | None:
    return await count_servers(database, frozenset(definitions), DEAD_AFTER_MS)


async def test_those_that_run_one_of_the_definitions_are_counted(database: Database) -> None:
    assert await servers(database, "log") == 0
    await register(database, "p.1")
    await register(database, "p.2", frozenset({"log", "mail"}))
    await register(database, "p.3", frozenset({"*"}))
    assert [await servers(database, *names) for names in (["log"], ["mail", "x"], ["x"], ["*"])] == [3, 2, 1, 3]


async def test_those_that_take_no_jobs_or_show_no_life_are_not(database: Database) -> None:
    for id in ("p.1", "p.2", "p.3"):
        await register(database, id)
    await MongoWorkStore(database, 600_000).beat("p.2", 2, draining=True, parked=0)
    [before] = await database[Collection.PROCESSORS.value].find({"_id": "p.3"}).to_list(None)
    long_ago = before["expire_at"] - timedelta(milliseconds=DEAD_AFTER_MS)
    await database[Collection.PROCESSORS.value].update_one({"_id": "p.3"}, {"$set": {"expire_at": long_ago}})
    assert await servers(database, "log") == 1


async def test_of_a_database_that_does_not_answer_nothing_is_known(database: Database) -> None:
    await database.client.close()
    assert await servers(database, "log") is None
