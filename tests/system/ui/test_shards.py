"""Of several shards the page shows each, who leads it, and how many each replica leads."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.system.shards.processes import SHARDS, TENANTS, ShardedProcesses, sharded_environment
from tests.system.ui.browser import Browser


@pytest.fixture
async def processes(
    tmp_path: Path, mongodb_uri: str, amqp_url: str, database_name: str
) -> AsyncIterator[ShardedProcesses]:
    running = ShardedProcesses(
        tmp_path, sharded_environment(mongodb_uri, amqp_url, database_name), mongodb_uri, database_name
    )
    try:
        yield running
    finally:
        await running.stop()


async def test_the_leader_of_each_shard_is_shown_and_who_follows_it(
    processes: ShardedProcesses, browser: Browser
) -> None:
    one, _two = await processes.together("one", "two")
    await processes.processor("worker")
    await processes.spread()
    await processes.schedule("nightly", "1h", tenant=TENANTS[2])
    await browser.open(f"{one.url}/ui")
    for shard in SHARDS:
        await browser.sees(shard, "[aria-label=Shards]")
    await browser.sees("leads 2 shards", "[aria-label=Replicas]")
    assert await browser.inaccessible() == []
    await processes.replicas["two"].kill()
    leaders = await processes.leaders()
    assert {leader.name for leader in leaders.values()} == {"one"}
    await browser.sees("leads 4 shards", "[aria-label=Replicas]")
    await browser.until(lambda: "two" not in browser.text("[aria-label=Shards]"), "the leader that follows, everywhere")
    assert browser.complaints((one.url,)) == []
