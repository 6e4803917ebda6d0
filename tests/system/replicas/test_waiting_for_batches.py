"""Jobs that wait for batches, on real servers: they run after all jobs of the batch, although the leader dies."""

from typing import Any

import httpx

from tests.system.processes import Processes, eventually

SLEEP = {"definition": "sleep", "payload": {"seconds": 0.2}}
DEPENDENTS = 30


async def test_jobs_that_wait_for_a_batch_run_after_all_of_it_though_the_leader_dies(processes: Processes) -> None:
    await processes.together("one", "other")
    well = await submitted(processes, *[SLEEP] * 40)
    badly = await submitted(processes, SLEEP, {"definition": "nobody-runs-it"})
    then = await submitted(processes, *[{**SLEEP, "depends_on": [well]}] * DEPENDENTS)
    never = await submitted(processes, {**SLEEP, "depends_on": [well, badly]})
    at_last = await submitted(processes, {**SLEEP, "depends_on": [badly], "on_dependency_failure": "ignore"})
    await processes.processor("worker", slots=4)

    async def half_done() -> bool:
        return await processes.database["jobs"].count_documents({"batch": well, "state": "succeeded"}) >= 20

    await eventually(half_done, "half of the batch is done")
    leader, term = await processes.leader()
    await processes.post("/v1/jobs:cancel", {"filter": {"batch": badly, "state": "pending"}})
    await leader.kill()
    successor, _ = await processes.leader(not_in_term=term)
    assert (await processes.http.get(f"{successor.url}/readyz")).status_code == httpx.codes.OK
    again = await processes.replica(leader.name)
    assert (await processes.http.get(f"{again.url}/readyz")).status_code == httpx.codes.OK
    jobs = {batch: await ended(processes, batch) for batch in (well, badly, then, never, at_last)}
    assert {job["state"] for job in (*jobs[well], *jobs[then], *jobs[at_last])} == {"succeeded"}
    [failed] = jobs[never]
    assert (failed["state"], failed["attempt"]) == ("failed", 0)
    assert failed["error"].endswith("was cancelled")
    assert all(len(job["depends_on"]) == 1 for job in jobs[then])
    for before, after in ((well, then), (badly, at_last)):
        assert last(jobs[before]) <= min(job["started_at_ms"] for job in jobs[after])
    processes.assert_no_effect_twice()


async def submitted(processes: Processes, *jobs: dict[str, Any]) -> str:
    batch: str = (await processes.post("/v1/jobs:batch", {"jobs": list(jobs)}))["batch"]
    return batch


def last(jobs: list[dict[str, Any]]) -> int:
    return max(int(job["finished_at_ms"]) for job in jobs)


async def ended(processes: Processes, batch: str) -> list[dict[str, Any]]:
    found = processes.database["jobs"]

    async def all_ended() -> list[dict[str, Any]] | None:
        live = {"batch": batch, "state": {"$in": ["pending", "dispatched", "running"]}}
        if await found.count_documents(live, limit=1):
            return None
        jobs: list[dict[str, Any]] = await found.find({"batch": batch}).to_list(None)
        return jobs

    return await eventually(all_ended, f"all jobs of {batch} have ended")
