"""Jobs that wait for each other, fail, and are submitted again and again, while leaders die."""

import asyncio

import httpx

from hascheduler.model.values.instants import parse_instant
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
