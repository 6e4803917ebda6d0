"""A live system under load whose leaders are killed has nothing broken; a planted defect is reported everywhere."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import httpx
import pytest

from hascheduler.check.finding import Finding
from hascheduler.mongo.check.scan import Deployment, MongoInvariantScan
from hascheduler.mongo.connection import open_database
from tests.integration.check.healthy import AT_ONCE, CONFIG
from tests.system.processes import Processes, eventually

pytestmark = [pytest.mark.timeout(300)]

SCHEDULES = {"tick": "200ms", "tock": "500ms", "slow": "3s"}
SHARP = replace(CONFIG, heartbeat_timeout_ms=1_500, motion_ms=30_000, patience_ms=60_000)
"""Graces as short as a takeover here allows, so that what is not motion shows within the test."""


@asynccontextmanager
async def load(processes: Processes) -> AsyncIterator[None]:
    """Jobs are submitted all the time, at whichever replica is there."""

    async def submit() -> None:
        number = 0
        while True:
            number += 1
            body = {"definition": "log", "target": f"t{number % 5}", "payload": {"n": number}}
            with suppress(httpx.TransportError):  # the replica is being killed
                await processes.http.post(processes.any_url() + "/v1/jobs", json=body)
            await asyncio.sleep(0.05)

    submitting = asyncio.create_task(submit())
    try:
        yield
    finally:
        submitting.cancel()
        await asyncio.wait({submitting})


async def started(processes: Processes, *names: str, **environment: str) -> None:
    await processes.together(*names, **environment)
    await processes.processor("worker")
    for name, every in SCHEDULES.items():
        await processes.schedule(name, every)


async def fired_more(processes: Processes, count: int) -> None:
    fired = {"schedule": {"$in": list(SCHEDULES)}}
    enough = count + await processes.database.jobs.count_documents(fired)

    async def fired_enough() -> bool:
        return await processes.database.jobs.count_documents(fired) >= enough

    await eventually(fired_enough, f"{count} more fires")


async def checked(processes: Processes, *options: str) -> tuple[int, dict[str, Any]]:
    """`hascheduler check`: its status, and what it says."""
    status, out, _ = await processes.command("check", "--json", *options)
    return status, json.loads(out)


async def test_a_busy_system_whose_leaders_are_killed_has_nothing_broken(processes: Processes) -> None:
    await started(processes, "one", "two", "three", "four", "five")
    scan = MongoInvariantScan(open_database(processes.mongo, processes.database_name), Deployment(SHARP, "default"))
    bounds = replace(AT_ONCE, look_again_s=2.0)
    findings: list[Finding] = []
    term = 0
    async with load(processes):
        for _ in range(3):
            leader, term = await processes.leader(not_in_term=term)
            await leader.kill()
            del processes.replicas[leader.name]
            findings += (await scan.look(bounds)).findings
            await processes.leader(not_in_term=term)
            findings += (await scan.look(bounds)).findings
            await fired_more(processes, 10)
        report = await scan.look(bounds)
    findings += report.findings
    assert findings == []
    assert report.looked_at["fired jobs"] > 20
    assert report.looked_at["journal"] > 20
    status, said = await checked(processes)
    assert (status, said["findings"], said["complete"]) == (0, [], True)
    assert processes.logged("mirror_mismatch") == []
    assert (await processes.get("/v1/cluster"))["mirrors_differ"] == []

    async def compared() -> bool:
        # Those that were killed are there too, for a minute.
        living = [(await processes.http.get(one.url + "/v1/cluster")).json() for one in processes.replicas.values()]
        ids = [answer["replica_id"] for answer in living]
        replicas = await processes.database.replicas.find({"_id": {"$in": ids}}).to_list()
        marks = [dict(pair.split("=") for pair in replica["marks"].split()) for replica in replicas]
        common = set.intersection(*map(set, marks)) if marks else set()
        assert all(len({of_one[point] for of_one in marks}) == 1 for point in common)
        return len(marks) == 2 and len(common) > 1

    await eventually(compared, "marks that both have in common")


async def test_a_defect_planted_in_a_live_system_is_reported_everywhere(processes: Processes) -> None:
    await started(processes, "one", "two", "three", HASCHEDULER_AUDIT_INTERVAL="10s")
    jobs = processes.database.jobs

    async def some() -> list[dict[str, Any]]:
        found = await jobs.find({"schedule": "tick", "state": "succeeded"}).sort("_id", 1).to_list()
        return found if len(found) > 10 else []

    fired = await eventually(some, "some fires")
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
