"""Backfills across a change of leader: each nominal time has one verdict."""

import asyncio
from typing import Any

from hascheduler.model.job import backfill_job_id, fire_job_id
from hascheduler.model.values.instants import WallMs, format_instant
from tests.system.processes import Processes, eventually
from tests.system.replicas.schedules import (
    assert_never_two_at_once,
    comes_to,
    decided,
    jobs_of,
    times_of,
    verdicts,
)

EVERY_MS = 250
OUTAGE_S = 2


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
