"""What a shard runs, and its part of each cap."""

from collections.abc import Sequence

import pytest

from hascheduler.mongo.connection import Client, open_database
from hascheduler.schema.definition import Definition
from hascheduler.shards.turns import keeps_to_parts

pytestmark = pytest.mark.real

CAPPED = {"report": Definition(name="report", max_concurrency=5), "load": Definition(name="load", tier=4)}


@pytest.mark.parametrize(
    ("running", "max_concurrency", "keeps"),
    [
        ({}, None, True),
        ({"other": 9}, None, True),
        ({"other": 9}, 18, True),
        ({"other": 10}, 18, False),
        ({"report": 3}, None, True),
        ({"report": 4}, None, False),
        ({"load": 2}, None, True),
        ({"load": 3}, None, False),
        ({"report": 3, "load": 2, "other": 1}, 11, True),
        ({"report": 3, "load": 2, "other": 1}, 10, False),
        ({"other": 1}, 1, True),
    ],
)
async def test_a_shard_that_runs_more_than_its_part_holds_up_new_ones(
    pymongo_client: Client,
    ready_databases: Sequence[str],
    running: dict[str, int],
    max_concurrency: int | None,
    *,
    keeps: bool,
) -> None:
    """Of five the first shard has three; a cap of one goes round, and is no part."""
    home, new = [open_database(pymongo_client, name) for name in ready_databases[:2]]
    jobs = [
        {"_id": f"{name}{number}", "state": ("dispatched", "running")[number % 2], "definition": name}
        for name, count in running.items()
        for number in range(count)
    ]
    await home["jobs"].insert_many([*jobs, {"_id": "waits", "state": "pending", "definition": "report"}])
    assert await keeps_to_parts([home, new], CAPPED, max_concurrency) is keeps
    if not keeps:
        await home["jobs"].update_many({"state": "running"}, {"$set": {"state": "succeeded"}})
        assert await keeps_to_parts([home, new], CAPPED, max_concurrency)
