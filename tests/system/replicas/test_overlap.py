"""Fires that meet a job which has not ended, before and after a change of leader.

The first job of each schedule would run for ten minutes: whatever comes after it comes of the policy, not of luck.
"""

from typing import Any

import pytest

from hascheduler.model.values.instants import parse_instant
from tests.system.processes import Processes, eventually
from tests.system.replicas.accounts import comes_to, counted, decided, times_of, verdicts
from tests.system.replicas.jobs import assert_never_two_at_once, jobs_of

EVERY_MS = 250


async def _start(processes: Processes, overlap: str, **jobs: Any) -> None:
    """A schedule named as its policy, on two replicas."""
    await processes.together("one", "two")
    await processes.processor("worker", slots=16)
    schedule = {
        "name": overlap,
        "trigger": {"type": "interval", "every": f"{EVERY_MS}ms"},
        "misfire": {"grace": "1h"},
        "overlap": overlap,
        **(jobs or {"job": {"definition": "sleep", "payload": {"seconds": 600}}}),
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


async def test_cancel_running_replaces_each_job_by_the_next(processes: Processes) -> None:
    await _start(processes, "cancel_running")
    await comes_to(processes, "cancel_running", "fired", 4)
    await processes.lose_leader()
    await comes_to(processes, "cancel_running", "fired", 8)
    records = await _each_time_has_one(processes, "cancel_running")
    assert counted(records).keys() == {"fired"}

    async def only_the_newest_runs() -> bool:
        live = [job for job in await jobs_of(processes, "cancel_running") if job["state"] != "cancelled"]
        return [(job["id"], job["state"]) for job in live] == [(records[-1]["job"], "running")]

    await eventually(only_the_newest_runs, "all but the newest are cancelled")
    jobs = await jobs_of(processes, "cancel_running")
    assert [job["id"] for job in jobs] == [record["job"] for record in records]
    assert_never_two_at_once(jobs)


@pytest.mark.parametrize("overlap", ["buffer_one", "cancel_running"])
async def test_all_jobs_of_a_fire_are_one_to_the_overlap(processes: Processes, overlap: str) -> None:
    first = {"ref": "a", "definition": "log"}
    second = {"ref": "b", "definition": "sleep", "payload": {"seconds": 600}}
    last = {"ref": "c", "definition": "log", "depends_on": ["a", "b"]}
    await _start(processes, overlap, jobs=[first, second, last])
    await comes_to(processes, overlap, "fired", 2)
    await processes.lose_leader()
    if overlap == "buffer_one":
        await _skips_go_on(processes, overlap)
        await _each_time_has_one(processes, overlap)

        async def one_waits() -> bool:
            states = [job["state"] for job in await jobs_of(processes, overlap)]
            return states == ["pending", "succeeded", "running", "pending", "pending", "pending"]

        await eventually(one_waits, "one graph is on its way, and one waits")
        return
    await comes_to(processes, overlap, "fired", 8)
    records = await _each_time_has_one(processes, overlap)
    newest = records[-1]["job"]

    async def only_the_newest_is_left() -> bool:
        jobs = {job["id"]: job["state"] for job in await jobs_of(processes, overlap)}
        left = {id: state for id, state in jobs.items() if state not in ("succeeded", "cancelled")}
        return left == {newest: "pending", f"{newest}.b": "running"}

    await eventually(only_the_newest_is_left, "all but the newest are cancelled")
    assert counted(records).keys() == {"fired"}
    jobs = [job for job in await jobs_of(processes, overlap) if job["id"].endswith(".b")]
    assert [job["id"] for job in jobs] == [f"{record['job']}.b" for record in records]
    assert_never_two_at_once(jobs)


def _merged(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Records that say the same of times that follow each other as one."""
    merged: list[dict[str, Any]] = []
    for record in records:
        said = (record["verdict"], record["job"], record["because_of"])
        if not merged or said != (merged[-1]["verdict"], merged[-1]["job"], merged[-1]["because_of"]):
            merged.append(record)
    return merged
