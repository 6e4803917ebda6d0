"""A deployment is updated from the previous release to this one, process by process, or half way and back."""

import pytest

from tests.system.upgrade.fleet import Fleet
from tests.system.upgrade.releases import Release

pytestmark = [pytest.mark.timeout(600)]

REPLICAS, PROCESSORS = ("one", "two", "three"), ("worker", "helper")


async def _all_run(fleet: Fleet, version: str) -> None:
    assert [await fleet.runs(name) for name in REPLICAS] == [version] * 3


async def test_a_rolling_update_loses_nothing(fleet: Fleet, previous: Release, present: Release) -> None:
    fleet.release = previous
    await fleet.set_out()
    await _all_run(fleet, previous.version)
    async with fleet.load():
        await fleet.goes_on(20)
        fleet.release = present
        for name in REPLICAS:
            await fleet.upgrade_replica(name)
            await fleet.goes_on(5)
        for name in PROCESSORS:
            await fleet.upgrade_processor(name)
            await fleet.goes_on(5)
        assert (await fleet.migrated())["schema_version"] == {"before": None, "after": 1}
        await fleet.goes_on(20)
    await _all_run(fleet, present.version)
    cluster = await fleet.cluster("one")
    assert {replica["name"]: replica["version"] for replica in cluster["replicas"]} == dict.fromkeys(
        REPLICAS, present.version
    )
    assert (cluster["schema"]["version"], cluster["quarantine"]) == (1, [])
    status, shown, _ = await fleet.command("cluster", "--url", fleet.replicas["one"].url)
    assert status == 0
    assert shown.count(present.version) == 3
    assert "schema version 1" in shown
    await fleet.assert_nothing_was_lost(10)


async def test_an_update_that_is_rolled_back_half_way_loses_nothing(
    fleet: Fleet, previous: Release, present: Release
) -> None:
    fleet.release = previous
    await fleet.set_out()
    async with fleet.load():
        await fleet.goes_on(10)
        fleet.release = present
        for name in REPLICAS[:2]:
            await fleet.upgrade_replica(name)
        await fleet.upgrade_processor(PROCESSORS[0])
        await fleet.goes_on(10)
        fleet.release = previous
        for name in REPLICAS[:2]:
            await fleet.upgrade_replica(name)
            await fleet.goes_on(5)
        await fleet.upgrade_processor(PROCESSORS[0])
        await fleet.goes_on(10)
    await _all_run(fleet, previous.version)
    await fleet.assert_nothing_was_lost(10)
