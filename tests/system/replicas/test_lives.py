"""Jobs that are waited for, and submitted again and again, while leaders die."""

import asyncio

import httpx

from tests.system.processes import Processes, eventually


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
