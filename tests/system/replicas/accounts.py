"""What became of a schedule's nominal times, asked over HTTP, and that each of them has exactly one verdict."""

from collections import Counter
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
