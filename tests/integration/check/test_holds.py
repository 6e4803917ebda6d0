"""Times of a schedule are not compared with their verdicts while its partition is held: some may be elsewhere."""

from hascheduler.check.finding import FindingKind
from hascheduler.model.documents.leadership import encode_hold
from hascheduler.model.partition import Hold, partition_key, partition_of
from tests.integration.check.healthy import AT_ONCE, Healthy


async def test_times_are_compared_unless_their_partition_is_held(healthy: Healthy) -> None:
    await healthy.database.verdicts.delete_many({})
    await healthy.database.jobs.delete_many({"state": "succeeded"})
    schedule = await healthy.database.schedules.find_one({"_id": "tick"})
    assert schedule is not None
    key = partition_key(partition_of(schedule["job"]["tenant"]))
    holds = healthy.database["holds"]
    await holds.insert_one({"_id": 5, "held": True})
    other = partition_key(partition_of(schedule["job"]["tenant"]) ^ 1)
    await holds.insert_one(encode_hold(Hold(other, 1, is_held=True)))
    for rev, is_held in ((1, False), (2, True), (3, False)):
        await holds.replace_one({"_id": key}, encode_hold(Hold(key, rev, is_held=is_held)), upsert=True)
        report = await healthy.scan().look(AT_ONCE)
        is_missing = (FindingKind.VERDICT_MISSING, "schedules/tick") in [finding.key for finding in report.findings]
        assert is_missing is not is_held
