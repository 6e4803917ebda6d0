"""Jobs that wait for each other, fail, are submitted again and again, and policies that go on, while leaders die."""

import asyncio
from typing import Any

import httpx

from hascheduler.dispatch.recording import read_recording
from hascheduler.model.values.instants import parse_instant
from hascheduler.simulate.recorded import replay
from tests.system.processes import Processes, eventually


async def test_jobs_run_after_those_they_wait_for_though_the_leader_dies(processes: Processes) -> None:
    await processes.together("one", "two")
    await processes.processor("worker", slots=4)
    nap = {"definition": "sleep", "payload": {"seconds": 0.5}}
    batch = await processes.post(
        "/v1/jobs:batch",
        {
            "jobs": [
                {**nap, "ref": "first"},
                {**nap, "ref": "left", "depends_on": ["ref:first"]},
                {**nap, "ref": "right", "depends_on": ["ref:first"]},
                {**nap, "ref": "last", "depends_on": ["ref:left", "ref:right"]},
            ]
        },
    )
    first, left, right, last = (result["job"] for result in batch["results"])
    after = await processes.post("/v1/jobs", {**nap, "depends_on": [batch["batch"]]})
    await processes.lose_leader()
    jobs = {id: await processes.ended(id) for id in (first, left, right, last, after["id"])}
    assert {job["state"] for job in jobs.values()} == {"succeeded"}
    for before, later in ((first, left), (first, right), (left, last), (right, last), (last, after["id"])):
        finished, started = jobs[before]["finished_at"], jobs[later]["started_at"]
        assert parse_instant(finished) <= parse_instant(started), f"{later} began before {before} had ended"


async def test_a_failing_job_is_tried_again_with_growing_pauses_through_a_change_of_leader(
    processes: Processes,
) -> None:
    await processes.together("one", "two")
    await processes.processor("worker", "tests.system.replicas.handlers")
    retry = {"attempts": 4, "backoff": "400ms", "factor": 2}
    await processes.put("/v1/definitions/flaky", {"retry": retry})
    job = await processes.post("/v1/jobs", {"definition": "flaky", "payload": {"succeeds_in": 4}})

    async def waits() -> bool:
        shown = await processes.get(f"/v1/jobs/{job['id']}")
        return shown["failures"] >= 1 and shown["retry_at"] is not None

    await eventually(waits, "it waits for its next try")
    await processes.lose_leader()
    done = await processes.ended(job["id"])
    assert (done["state"], done["failures"], done["result"]) == ("succeeded", 3, {"attempt": 4})
    starts = [parse_instant(attempt["started_at"]) for attempt in done["attempts"]]
    ends = [parse_instant(attempt["finished_at"]) for attempt in done["attempts"]]
    pauses = [start - end for end, start in zip(ends, starts[1:], strict=False)]
    for pause_ms, most_ms in zip(pauses, (400, 800, 1_600), strict=True):
        assert pause_ms >= most_ms * 0.8


async def test_who_waits_at_a_standby_is_answered_though_the_leader_dies(processes: Processes) -> None:
    await processes.together("one", "two")
    await processes.processor("worker")
    leader, term = await processes.leader()
    [standby] = [replica for replica in processes.replicas.values() if replica is not leader]
    body = {"definition": "sleep", "payload": {"seconds": 1.5}, "mode": "on_demand"}
    async with httpx.AsyncClient(timeout=40) as client:
        asking = asyncio.create_task(client.post(f"{standby.url}/v1/jobs?wait=30", json=body))

        async def runs() -> bool:
            return bool((await processes.get("/v1/jobs?state=running"))["items"])

        await eventually(runs, "the job runs")
        await leader.kill()
        answer = await asking
    assert (answer.status_code, answer.json()["result"]) == (200, {"slept": 1.5})
    await processes.leader(not_in_term=term)


async def test_a_batch_that_everybody_submits_again_and_again_runs_each_job_once(processes: Processes) -> None:
    await processes.together("one", "two")
    await processes.processor("worker")
    leader, term = await processes.leader()
    jobs = [{"definition": "log", "payload": {"message": f"{n}"}} for n in range(200)]

    async def kill_in_a_moment() -> None:
        await asyncio.sleep(0.05)
        await leader.kill()

    async def submit(url: str) -> set[str] | None:
        try:
            answer = await processes.http.post(
                f"{url}/v1/jobs:batch", json={"jobs": jobs}, headers={"Idempotency-Key": "again"}
            )
        except httpx.TransportError:
            return None
        if answer.status_code != 200:
            return None
        return {result["job"] for result in answer.json()["results"]}

    urls = [replica.url for replica in processes.replicas.values()]
    killing = asyncio.create_task(kill_in_a_moment())
    answers = await asyncio.gather(*(submit(urls[n % 2]) for n in range(20)))
    await killing
    answers.append(await submit(processes.any_url()))
    [ids] = {frozenset(answer) for answer in answers if answer is not None}
    await processes.leader(not_in_term=term)
    for id in ids:
        assert (await processes.ended(id))["state"] == "succeeded"
    assert len(ids) == 200 == await processes.database.jobs.count_documents({})
    effects = processes.effects()
    assert set(effects) == ids
    processes.assert_no_effect_twice()


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
