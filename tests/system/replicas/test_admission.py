"""Who is let in, by real replicas on a real database: exactly as many as may be, however many ask at once and where."""

import asyncio
from collections import Counter
from typing import Any

import httpx

from hascheduler.embedded.children import Daemon
from tests.system.processes import Processes, eventually

HOUR_MS = 3_600_000
JOB = {"definition": "log", "tenant": "acme"}


async def tenant(processes: Processes, **limits: Any) -> None:
    """Before any replica starts, so that each knows it when it is ready."""
    await processes.database["tenants"].insert_one({"_id": "acme", "rev": 1, **limits})


async def submits(processes: Processes, count: int, *at: Daemon) -> list[httpx.Response]:
    """At once, at those replicas in turn."""
    urls = [replica.url for replica in at]
    asked = [processes.http.post(f"{urls[number % len(urls)]}/v1/jobs", json=JOB) for number in range(count)]
    return await asyncio.gather(*asked)


def statuses(answers: list[httpx.Response]) -> dict[int, int]:
    return dict(Counter(answer.status_code for answer in answers))


async def pending(processes: Processes) -> int:
    return await processes.database["jobs"].count_documents({"state": "pending"})


async def test_two_replicas_let_in_exactly_what_the_rate_allows(processes: Processes) -> None:
    await tenant(processes, submit_rate={"count": 20, "per_ms": HOUR_MS})
    one, other = await processes.together("one", "other")
    answers = await submits(processes, 60, one, other)
    assert statuses(answers) == {201: 20, 429: 40}
    assert await pending(processes) == 20
    retry_after_s = {int(answer.headers["retry-after"]) for answer in answers if answer.status_code == 429}
    # A token comes every three minutes.
    assert all(60 < each <= 180 for each in retry_after_s)


async def test_a_flood_at_one_replica_does_not_run_past_the_cap(processes: Processes) -> None:
    await tenant(processes, max_pending=50)
    replica = await processes.replica("one")
    answers = await submits(processes, 200, replica)
    assert statuses(answers) == {201: 50, 429: 150}
    assert await pending(processes) == 50
    assert all(1 <= int(answer.headers["retry-after"]) <= 60 for answer in answers if answer.status_code == 429)
    # When there is room again, it is let in again; the rest of the shard never had to wait.
    other = await processes.http.post(f"{replica.url}/v1/jobs", json={"definition": "log", "tenant": "other"})
    assert other.status_code == 201
    await processes.post("/v1/jobs:cancel", {"filter": {"tenant": "acme"}})

    async def let_in() -> bool:
        return (await processes.http.post(f"{replica.url}/v1/jobs", json=JOB)).status_code == 201

    await eventually(let_in, "there is room again")
