"""A partition that moves from a real database to one that no session covers as well: as between two MongoDBs."""

from collections.abc import Sequence

import pytest

from hascheduler.mongo.connection import Database
from hascheduler.ports.tenants import MARK
from tests.bench.partition_moves import PartitionPlan, measured_move

pytestmark = pytest.mark.real


async def test_all_of_a_partition_moves_between_two_mongodbs(two_mongodbs: Sequence[Database]) -> None:
    plan = PartitionPlan(pending=700, schedules=20, ended=900, verdicts=40)
    await measured_move(two_mongodbs, plan)
    here, there = two_mongodbs
    for collection, count in (("schedules", plan.schedules), ("verdicts", plan.verdicts)):
        assert await here[collection].count_documents({}) == 0
        assert await there[collection].count_documents({MARK: {"$gt": 0}}) == count
    assert await here.jobs.count_documents({}) == 0
    assert await there.jobs.count_documents({"state": "pending"}) == plan.pending
    assert await there.jobs.count_documents({}) >= plan.pending + plan.ended
