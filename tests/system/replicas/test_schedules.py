"""Backfills and overlaps across a change of leader: each nominal time has one verdict."""

import asyncio
from typing import Any

import pytest

from hascheduler.model.job import backfill_job_id, fire_job_id
from hascheduler.model.values.instants import WallMs, format_instant, parse_instant
from tests.system.processes import Processes, eventually
from tests.system.replicas.schedules import (
    assert_never_two_at_once,
    comes_to,
    counted,
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


async def _start(processes: Processes, overlap: str) -> None:
    """A schedule named as its policy, on two replicas, whose first job would run for ten minutes."""
    await processes.together("one", "two")
    await processes.processor("worker", slots=16)
    schedule = {
        "name": overlap,
        "trigger": {"type": "interval", "every": f"{EVERY_MS}ms"},
        "misfire": {"grace": "1h"},
        "overlap": overlap,
        "job": {"definition": "sleep", "payload": {"seconds": 600}},
    }
    await processes.post("/v1/schedules", schedule)


async def _skips_go_on(processes: Processes, name: str) -> None:
    skipped = (await processes.get(f"/v1/schedules/{name}"))["counts"]["skipped"]
    await comes_to(processes, name, "skipped", skipped + 4)


async def _states(processes: Processes, name: str, *states: str) -> list[str]:
    """The ids of its fired jobs, once these are their states in the order of their times."""

    async def are_so() -> list[str] | None:
        jobs = await jobs_of(processes, name)
        return [job["id"] for job in jobs] if [job["state"] for job in jobs] == list(states) else None

    return await eventually(are_so, f"the jobs of {name} are {states}")


async def _each_time_has_one(processes: Processes, name: str) -> list[dict[str, Any]]:
    """Pauses it, and gives its records."""
    schedule = await decided(processes, name)
    records = await verdicts(processes, name)
    times = [at_ms for record in records for at_ms in times_of(record, EVERY_MS)]
    assert times == list(range(times[0], times[-1] + 1, EVERY_MS))
    assert parse_instant(schedule["created_at"]) < times[0] <= parse_instant(schedule["created_at"]) + EVERY_MS
    assert {verdict: count for verdict, count in schedule["counts"].items() if count} == counted(records)
    return records


@pytest.mark.parametrize("waiting", [[], ["pending"]], ids=["skip", "buffer_one"])
async def test_one_job_at_a_time_and_times_without_room_are_passed_over(
    processes: Processes, waiting: list[str]
) -> None:
    name = "buffer_one" if waiting else "skip"
    await _start(processes, name)
    await comes_to(processes, name, "skipped", 4)
    await processes.lose_leader()
    await _skips_go_on(processes, name)
    first, *_ = await _states(processes, name, "running", *waiting)
    await processes.post(f"/v1/jobs/{first}/cancel", {})
    await processes.in_state(first, "cancelled")
    jobs = await _states(processes, name, "cancelled", "running", *waiting)
    await _skips_go_on(processes, name)
    records = await _each_time_has_one(processes, name)
    # A job that waits is where the next times find no room.
    story = [[("fired", job), ("skipped", job)] for job in jobs]
    if waiting:
        story[0].pop()
    told = [(record["verdict"], record["job"] or record["because_of"]) for record in _merged(records)]
    assert told == [each for part in story for each in part]
    assert_never_two_at_once(await jobs_of(processes, name))


def _merged(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Records that say the same of times that follow each other as one."""
    merged: list[dict[str, Any]] = []
    for record in records:
        said = (record["verdict"], record["job"], record["because_of"])
        if not merged or said != (merged[-1]["verdict"], merged[-1]["job"], merged[-1]["because_of"]):
            merged.append(record)
    return merged
