"""The policy at work: nobody crowds anybody out, who waits can ask why, a new leader goes on with the accounts."""

import asyncio
from typing import Any

import httpx

from hascheduler.dispatch.recording import read_recording
from hascheduler.simulate.recorded import replay
from tests.system.processes import Processes, eventually

SLOTS = 8


async def _submit(processes: Processes, count: int, key: str, seconds: float) -> list[str]:
    body = {"definition": "sleep", "payload": {"seconds": seconds}, "fairness_key": key}

    async def one() -> str | None:
        answer = await processes.http.post(f"{processes.any_url()}/v1/jobs", json=body)
        if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE:
            # Where the machine has much else to do, a replica that falls behind lets nobody in for a moment.
            await asyncio.sleep(0.1)
            return None
        assert answer.status_code == httpx.codes.CREATED, answer.text
        return str(answer.json()["id"])

    ids: list[str] = []
    while len(ids) < count:
        ids += filter(None, await asyncio.gather(*(one() for _ in range(min(50, count - len(ids))))))
    return ids


async def _are(processes: Processes, state: str, ids: list[str]) -> None:
    async def look() -> bool:
        return await processes.database.jobs.count_documents({"_id": {"$in": ids}, "state": state}) == len(ids)

    await eventually(look, f"{len(ids)} jobs are {state}")


async def _why(processes: Processes, name: str, job_id: str) -> dict[str, Any]:
    return await processes.get(f"/v1/jobs/{job_id}/why", processes.replicas[name].url)


async def _waits_for_a_slot(processes: Processes, name: str, job_id: str) -> dict[str, Any]:
    async def look() -> dict[str, Any] | None:
        why = await _why(processes, name, job_id)
        return why if [block["rule"] for block in why["blocks"]] == ["no_slot"] else None

    return await eventually(look, f"{job_id} waits for a slot, as {name} sees it")


async def test_a_client_with_a_thousand_jobs_does_not_hold_up_one_with_two(processes: Processes) -> None:
    await processes.together("one", "two")
    await processes.processor("worker", slots=SLOTS)
    crowd = await _submit(processes, 1_000, "crowd", seconds=0.3)
    for name in ("one", "two"):
        why = await _waits_for_a_slot(processes, name, crowd[-1])
        assert f"{SLOTS} of {SLOTS} slots taken" in why["blocks"][0]["because"]
        assert why["standing"]["ahead"] > 100
        assert {worth["criterion"] for worth in why["standing"]["criteria"]} >= {"lane", "fairness", "score"}
    few = await _submit(processes, 2, "few", seconds=0.3)
    await _are(processes, "succeeded", few)
    jobs = {job["_id"]: job async for job in processes.database.jobs.find()}
    since_ms = max(jobs[id]["submitted_at_ms"] for id in few)
    until_ms = max(attempt["dispatched_at_ms"] for id in few for attempt in jobs[id]["attempts"])
    overtakers = [
        id for id in crowd for attempt in jobs[id]["attempts"] if since_ms < attempt["dispatched_at_ms"] < until_ms
    ]
    # What the leader had decided before it saw them, and no more than the slots can hold.
    assert len(overtakers) <= SLOTS


async def test_what_a_leader_decides_is_recorded_and_decided_again_alike(processes: Processes) -> None:
    await processes.replica("one")
    await processes.processor("worker", slots=2)
    await processes.schedule("tick", every="100ms")
    before = await _submit(processes, 20, "before", seconds=0.1)
    lines: list[str] = []
    url = f"{processes.any_url()}/v1/cluster/recording?for=3s"
    async with processes.http.stream("GET", url, timeout=15) as answer:
        assert answer.status_code == 200
        during: list[str] = []
        async for line in answer.aiter_lines():
            lines.append(line)
            if not during:
                during = await _submit(processes, 20, "during", seconds=0.05)
    # Where the machine has much else to do, two slots may not be enough for its fires and for those that wait.
    await processes.post("/v1/schedules/tick/pause", {})
    await _are(processes, "succeeded", [*before, *during])
    replayed = replay(*read_recording(lines))
    assert replayed.difference is None
    assert replayed.decisions > 50
    assert replayed.end == "its time was over"


async def test_accumulated_costs_outlive_the_leader_and_all_replicas(processes: Processes) -> None:
    await processes.together("one", "two")
    await processes.processor("worker", slots=1)
    await _are(processes, "succeeded", await _submit(processes, 5, "busy", seconds=0.01))

    async def cost() -> str:
        """Of ``busy``, as the standing of a job of it that waits says."""
        [blocking] = await _submit(processes, 1, "busy", seconds=60)
        await _are(processes, "running", [blocking])
        [waiting] = await _submit(processes, 1, "busy", seconds=60)
        first = next(name for name, replica in processes.replicas.items() if replica.running)
        why = await _waits_for_a_slot(processes, first, waiting)
        for job_id in (waiting, blocking):
            await processes.post(f"/v1/jobs/{job_id}/cancel", {})
        await _are(processes, "cancelled", [waiting, blocking])
        [fairness] = [each for each in why["standing"]["criteria"] if each["criterion"] == "fairness"]
        return str(fairness["value"])

    # Each dispatch is charged the default of one second; the targets are the jobs themselves, so nothing is learned.
    assert await cost() == "tenant 'default': 6 s, key 'busy': 6 s"
    await processes.lose_leader()
    assert await cost() == "tenant 'default': 7 s, key 'busy': 7 s"
    for name, replica in processes.replicas.items():
        if replica.running:
            assert await replica.terminate() == 0, name
    await processes.replica("three")
    await processes.leader()
    assert await cost() == "tenant 'default': 8 s, key 'busy': 8 s"
