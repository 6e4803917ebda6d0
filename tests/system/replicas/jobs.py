"""The jobs of a schedule, asked over HTTP: all of them, those in a state, and whether two of them ran at once."""

from itertools import pairwise
from typing import Any

from hascheduler.model.values.instants import parse_instant
from tests.system.processes import Processes


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
