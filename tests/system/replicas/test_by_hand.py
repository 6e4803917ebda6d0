"""What people ask for outside the nominal times: a job now, and jobs for times that were missed."""

import asyncio
from typing import Any

from hascheduler.model.job import backfill_job_id, fire_job_id
from hascheduler.model.values.instants import WallMs, format_instant
from tests.system.processes import Processes, eventually
from tests.system.replicas.accounts import comes_to, decided, times_of, verdicts
from tests.system.replicas.jobs import assert_never_two_at_once, jobs_of

EVERY_MS = 200
OUTAGE_S = 2


async def test_a_job_now_runs_beside_the_nominal_times_and_changes_none_of_them(processes: Processes) -> None:
    await processes.together("one", "two")
    await processes.processor("worker")
    yearly = {"type": "cron", "expression": "0 0 1 1 *"}
    job = {"definition": "log", "target": "t", "payload": {"from": "the schedule"}}
    await processes.post("/v1/schedules", {"name": "now", "trigger": yearly, "job": job})
    before = await processes.get("/v1/schedules/now")
    first = await processes.post("/v1/schedules/now/trigger", {})
    asked: dict[str, object] = {first["id"]: {"from": "the schedule"}}
    await processes.post("/v1/schedules/now/pause", {})
    # Paused or not; and each request makes a job of its own.
    for payload in ({"from": "me"}, {"from": "me"}, None):
        asked[(await processes.post("/v1/schedules/now/trigger", {"payload": payload}))["id"]] = payload
    assert len(asked) == 4

    async def all_ran() -> bool:
        return processes.effects().keys() >= asked.keys()

    await eventually(all_ran, "all of them run")
    await processes.post("/v1/schedules/now/resume", {})
    after = await processes.get("/v1/schedules/now")
    assert {effect["job"]: effect["payload"] for [effect] in processes.effects().values()} == asked
    for field in ("counts", "last_nominal_at", "next_at", "trigger"):
        assert after[field] == before[field], field
    assert await verdicts(processes, "now") == []


async def test_a_job_now_is_refused_naming_the_job_that_is_in_its_way(processes: Processes) -> None:
    await processes.together("one", "two")
    await processes.processor("worker")
    yearly = {"type": "cron", "expression": "0 0 1 1 *"}
    job = {"definition": "sleep", "payload": {"seconds": 600}}
    await processes.post("/v1/schedules", {"name": "busy", "trigger": yearly, "overlap": "skip", "job": job})
    first = (await processes.post("/v1/schedules/busy/trigger", {}))["id"]
    await _refused(processes, {}, first)
    second = (await processes.post("/v1/schedules/busy/trigger", {"overlap": "buffer_one"}))["id"]
    await _refused(processes, {"overlap": "buffer_one"}, second)

    async def states() -> dict[str, str]:
        return {job["id"]: job["state"] for job in await jobs_of(processes, "busy")}

    async def first_runs() -> bool:
        return (await states())[first] == "running"

    async def second_runs() -> bool:
        return await states() == {first: "cancelled", second: "running"}

    await eventually(first_runs, "the first runs")
    assert (await states())[second] == "pending"
    await processes.post(f"/v1/jobs/{first}/cancel", {})
    await eventually(second_runs, "the second runs when the first has ended")
    assert_never_two_at_once(await jobs_of(processes, "busy"))


async def _refused(processes: Processes, body: dict[str, Any], job_id: str) -> None:
    for replica in processes.replicas.values():
        answer = await processes.http.post(f"{replica.url}/v1/schedules/busy/trigger", json=body)
        assert answer.status_code == 409, answer.text
        assert job_id in answer.json()["detail"]


async def test_each_missed_time_is_backfilled_once_however_many_ask_however_often(processes: Processes) -> None:
    await processes.together("one", "two")
    await processes.processor("worker")
    schedule = {
        "name": "late",
        "trigger": {"type": "interval", "every": f"{EVERY_MS}ms"},
        "misfire": {"grace": "500ms", "catch_up": "none"},
        "job": {"definition": "log", "target": "t"},
    }
    await processes.post("/v1/schedules", schedule)
    await comes_to(processes, "late", "fired", 5)
    for replica in processes.replicas.values():
        await replica.kill()
    # Real time has to pass, or nothing is missed.
    await asyncio.sleep(OUTAGE_S)
    await processes.together("one", "two")
    await processes.leader(not_in_term=1)
    await comes_to(processes, "late", "fired", (await processes.get("/v1/schedules/late"))["counts"]["fired"] + 5)
    await decided(processes, "late")
    times = {at: record["verdict"] for record in await verdicts(processes, "late") for at in times_of(record, EVERY_MS)}
    missed = [at_ms for at_ms, verdict in times.items() if verdict == "missed"]
    assert missed
    assert set(times.values()) == {"fired", "missed"}

    body: dict[str, Any] = {"from": format_instant(WallMs(min(times))), "to": format_instant(WallMs(max(times)))}
    dry = await _backfill(processes, "one", {**body, "dry_run": True})
    assert (dry["count"], dry["created"], dry["existing"]) == (len(times), len(missed), len(times) - len(missed))
    answers = await asyncio.gather(*(_backfill(processes, name, body) for name in ("one", "two", "one", "two")))
    assert sum(answer["created"] for answer in answers) == len(missed)
    expected = [(fire_job_id if times[at] == "fired" else backfill_job_id)("late", WallMs(at)) for at in times]
    for answer in answers:
        assert (answer["count"], answer["undecided"], answer["jobs"]) == (len(times), 0, expected)
    leader = await processes.lose_leader()
    survivor = next(name for name, replica in processes.replicas.items() if replica is not leader)
    again = await _backfill(processes, survivor, body)
    assert (again["created"], again["existing"]) == (0, len(times))

    async def all_ran() -> bool:
        return all(job["state"] == "succeeded" for job in await jobs_of(processes, "late"))

    await eventually(all_ran, "all of them run")
    jobs = await jobs_of(processes, "late")
    assert sorted(job["id"] for job in jobs) == sorted(expected)
    assert_never_two_at_once([job for job in jobs if job["id"].startswith("backfill:")])
    assert processes.effects().keys() == set(expected)
    processes.assert_no_effect_twice()
    # No verdict changes: that a time was missed stays true.
    shown = (await processes.get("/v1/schedules/late"))["counts"]
    assert shown["missed"] == len(missed)


async def _backfill(processes: Processes, replica: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = await processes.http.post(f"{processes.replicas[replica].url}/v1/schedules/late/backfill", json=body)
    assert answer.status_code == 200, answer.text
    content: dict[str, Any] = answer.json()
    return content
