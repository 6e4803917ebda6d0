"""The back-off before the next attempt has its full length, whatever the processor's clock says."""

import time

import pytest

from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.connection import connect, open_database
from hascheduler.mongo.state_updates import back_to_pending

DAY_MS, PAUSE_MS = 86_400_000, 2_000


@pytest.mark.parametrize("ahead_ms", [0, DAY_MS])
async def test_a_processor_whose_clock_is_ahead_does_not_put_its_jobs_off(
    ahead_ms: int, mongodb_uri: str, database_name: str
) -> None:
    client = connect(mongodb_uri)
    jobs = open_database(client, database_name)["jobs"]
    await jobs.insert_one({"_id": "j", "rev": 3, "attempts": [], "failures": 0})
    now_ms = time.time_ns() // 1_000_000
    at_ms = WallMs(now_ms + ahead_ms)
    retry = back_to_pending("failed", None, at_ms, retry_at_ms=WallMs(at_ms + PAUSE_MS))
    await jobs.update_one({"_id": "j"}, retry)
    job = await jobs.find_one({"_id": "j"})
    await client.close()
    assert job is not None
    assert now_ms + PAUSE_MS <= job["retry_at_ms"] <= time.time_ns() // 1_000_000 + PAUSE_MS
