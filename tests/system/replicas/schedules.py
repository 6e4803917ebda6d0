"""What became of a schedule, asked over HTTP: its jobs and its verdicts."""

from collections import Counter
from itertools import pairwise
from typing import Any

from hascheduler.model.values.instants import parse_instant
from tests.system.processes import Processes, eventually


async def verdicts(processes: Processes, name: str) -> list[dict[str, Any]]:
    """All records of the schedule, oldest first."""
    records: list[dict[str, Any]] = []
    after = ""
    while True:
        page = await processes.get(f"/v1/schedules/{name}/verdicts?limit=200{after}")
        records += page["items"]
        if page["next"] is None:
            return records[::-1]
        after = f"&after={page['next']}"


async def decided(processes: Processes, name: str) -> dict[str, Any]:
    """The schedule, paused so that it stands still, once all of its times up to then have a verdict."""
    await processes.post(f"/v1/schedules/{name}/pause", {})

    async def nothing_is_due() -> bool:
        page = await processes.get(f"/v1/schedules/{name}/verdicts?limit=1")
        return bool(page["undecided"]["because"] != "due")

    await eventually(nothing_is_due, f"each time of {name} has its verdict")
    return await processes.get(f"/v1/schedules/{name}")


async def comes_to(processes: Processes, name: str, verdict: str, at_least: int) -> None:
    """Until so many times of the schedule have that verdict."""

    async def are_reached() -> bool:
        return bool((await processes.get(f"/v1/schedules/{name}"))["counts"][verdict] >= at_least)

    await eventually(are_reached, f"{at_least} times of {name} are {verdict}")


def times_of(record: dict[str, Any], every_ms: int) -> list[int]:
    """The nominal times that a record of an interval stands for."""
    first_ms, last_ms = parse_instant(record["nominal_at"]), parse_instant(record["through_at"])
    times = list(range(first_ms, last_ms + 1, every_ms))
    assert len(times) == record["count"], record
    return times


def counted(records: list[dict[str, Any]]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for record in records:
        counts[record["verdict"]] += record["count"]
    return counts


async def jobs_of(processes: Processes, schedule: str) -> list[dict[str, Any]]:
    """In the order of their nominal times; those that were asked for by hand have none, and come first."""
    jobs: list[dict[str, Any]] = []
    after = ""
    while True:
        page = await processes.get(f"/v1/jobs?schedule={schedule}&limit=200{after}")
        assert not page["unreadable"]
        jobs += page["items"]
        if page["next"] is None:
            return sorted(jobs, key=lambda job: (job["nominal_at"] or "", job["id"]))
        after = f"&after={page['next']}"


def assert_never_two_at_once(jobs: list[dict[str, Any]]) -> None:
    """Each that started did so after the one before it had ended; one that has not ended is the last."""
    started = sorted((job for job in jobs if job["started_at"] is not None), key=lambda job: str(job["started_at"]))
    for before, after in pairwise(started):
        assert before["finished_at"] is not None, f"{after['id']} started while {before['id']} runs"
        ended_ms, started_ms = parse_instant(before["finished_at"]), parse_instant(after["started_at"])
        assert ended_ms <= started_ms, f"{after['id']} started before {before['id']} had ended"
