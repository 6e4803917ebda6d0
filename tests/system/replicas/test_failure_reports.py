"""Each job that fails for good is reported once, though the leader dies in the midst of it."""

from collections import Counter

import pytest

from tests.system.processes import Processes, eventually
from tests.system.replicas.test_processors import MODULE

pytestmark = [pytest.mark.timeout(300)]

JOBS = 40


async def test_failures_are_reported_once_each_though_the_leader_dies_after_the_first(processes: Processes) -> None:
    await processes.together("one", "two")
    await processes.processor("worker", MODULE, "hascheduler.handlers.log", slots=2)
    await processes.put("/v1/definitions/traced", {"on_failure": "log", "retry": {"attempts": 1}})
    failed = {await processes.submit("traced", succeeds_in=9) for _ in range(JOBS)}

    async def one_has_failed() -> bool:
        return bool(await processes.database.jobs.find_one({"state": "failed"}))

    await eventually(one_has_failed, "the first has failed")
    await processes.lose_leader()

    async def all_are_marked() -> bool:
        marked = {"_id": {"$in": [*failed]}, "on_failure_job": {"$type": "string"}}
        return await processes.database.jobs.count_documents(marked) == JOBS

    await eventually(all_are_marked, "all failures are reported")
    await processes.settled()
    reports = await processes.database.jobs.find({"failed_job": {"$ne": None}}).to_list()
    assert Counter(job["failed_job"] for job in reports) == Counter(failed)
    assert {job["payload"]["error"] for job in reports} == {"LookupError: attempt 1 was never to succeed"}
    effects = processes.effects()
    assert {job["_id"]: len(effects[job["_id"]]) for job in reports} == {job["_id"]: 1 for job in reports}
