"""A live system whose leader was killed has nothing broken; a planted defect is reported everywhere."""

import json
from typing import Any

import pytest

from tests.system.processes import Processes, eventually

pytestmark = [pytest.mark.timeout(300)]


async def checked(processes: Processes, *options: str) -> tuple[int, dict[str, Any]]:
    """`hascheduler check`: its status, and what it says."""
    status, out, _ = await processes.command("check", "--json", *options)
    return status, json.loads(out)


async def test_a_defect_planted_in_a_live_system_is_reported_everywhere(processes: Processes) -> None:
    await processes.together("one", "two", "three", HASCHEDULER_AUDIT_INTERVAL="10s")
    await processes.processor("worker")
    await processes.schedule("tick")
    jobs = processes.database.jobs

    async def some() -> list[dict[str, Any]]:
        found = await jobs.find({"schedule": "tick", "state": "succeeded"}).sort("_id", 1).to_list()
        return found if len(found) > 10 else []

    await eventually(some, "some fires")
    lost = await processes.lose_leader()
    del processes.replicas[lost.name]
    status, said = await checked(processes)
    assert (status, said["findings"], said["complete"]) == (0, [], True)
    assert processes.logged("mirror_mismatch") == []
    fired = await some()
    await jobs.delete_one({"_id": fired[5]["_id"]})
    status, said = await checked(processes)
    assert status == 1
    [finding] = said["findings"]
    assert (finding["kind"], finding["document"]) == ("verdict_missing", "schedules/tick")
    assert finding["hint"]
    assert said["counts"] == {"verdict_missing": 1}

    async def shown() -> bool:
        # Each replica shows it, not only the leader.
        answers = [
            (await processes.http.get(replica.url + "/v1/cluster")).json() for replica in processes.replicas.values()
        ]
        return all((answer["findings"] or {}).get("counts") == {"verdict_missing": 1} for answer in answers)

    await eventually(shown, "every replica shows what the leader found", 60)
    metrics = (
        'hascheduler_check_findings{kind="verdict_missing"} 1.0',
        'hascheduler_check_findings{kind="overdue"} 0.0',
        "hascheduler_mirror_mismatches 0.0",
    )

    async def measured() -> bool:
        leader, _ = await processes.leader()
        metrics_text = (await processes.http.get(leader.url + "/metrics")).text
        return all(one in metrics_text for one in metrics)

    await eventually(measured, "the leader's metrics have it", 60)
    lines = processes.logged("check_finding")
    # Once; should another one come to lead meanwhile, once by that one too.
    terms = (await processes.leader())[1]
    assert 0 < len(lines) <= terms
    for line in lines:
        assert (line["level"], line["kind"], line["document"]) == ("error", "verdict_missing", "schedules/tick")
