"""All that match, on real replicas: one request, a progress, a stop, and a replica that dies in the middle."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from statistics import quantiles
from typing import Any

import httpx
import pytest

from hascheduler.embedded.daemons import Daemon
from hascheduler.model.documents.job import new_job_document
from hascheduler.model.values.instants import WallMs
from tests.factories import make_job
from tests.system.processes import Processes, eventually
from tests.system.replicas.test_access import ADMIN, GUARDED, showing
from tests.tiers import in_tier

pytestmark = [pytest.mark.timeout(600)]

CROWD = in_tier(check=10_000, test=20_000, long=40_000)
CANCEL = {"action": "cancel_jobs", "filter": {"definition": "crowd"}}


async def crowd(processes: Processes, count: int) -> None:
    """So many jobs that wait, and that the replicas have seen."""
    now = int(time.time() * 1_000) - 200_000
    for first in range(0, count, 5_000):
        jobs = [
            new_job_document(make_job(f"job:{number:06}", definition="crowd", submitted_at_ms=WallMs(now + number)))
            for number in range(first, min(first + 5_000, count))
        ]
        await processes.database.jobs.insert_many(jobs, ordered=False)

    async def seen() -> bool:
        return bool((await processes.get("/v1/cluster"))["counts"]["pending"] >= count)

    await eventually(seen, "the replicas have seen them all")


async def in_state(processes: Processes, state: str) -> int:
    return int(await processes.database.jobs.count_documents({"definition": "crowd", "state": state}))


async def followed(client: httpx.AsyncClient, id: str) -> AsyncIterator[dict[str, Any]]:
    """The operation, again and again, to its end."""
    while True:
        answer = await client.get(f"/v1/operations/{id}")
        assert answer.status_code == 200, answer.text
        shown: dict[str, Any] = answer.json()
        yield shown
        if shown["state"] != "running":
            return
        await asyncio.sleep(0.1)


async def ended(processes: Processes, replica: Daemon, id: str) -> dict[str, Any]:
    async with httpx.AsyncClient(base_url=replica.url, timeout=30) as client:

        async def look() -> dict[str, Any] | None:
            try:
                shown: dict[str, Any] = (await client.get(f"/v1/operations/{id}")).json()
            except httpx.TransportError:
                return None
            return shown if shown["state"] != "running" else None

        return await eventually(look, "the operation ends", 240)


async def test_a_crowd_is_cancelled_while_others_are_answered(
    processes: Processes, record_property: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    one = await processes.replica("one", **GUARDED, HASCHEDULER_TRANSPORT="mongo")
    processes.http.headers["Authorization"] = f"Bearer {ADMIN}"
    await crowd(processes, CROWD)
    async with showing(one.url, ADMIN) as boss:
        made = (await boss.post("/v1/tokens", json={"name": "other", "role": "submitter", "tenant": "other"})).json()
    async with showing(one.url, made["token"]) as other, showing(one.url, ADMIN) as boss:

        async def known() -> bool:
            return (await other.get("/v1/whoami")).status_code == 200

        await eventually(known, "the replica knows the token")
        quiet, busy = Submits(other), Submits(other)
        for _ in range(100):
            await quiet.one()
        began = time.monotonic()
        answer = await boss.post("/v1/operations", json={**CANCEL, "expected": CROWD})
        answered_ms = (time.monotonic() - began) * 1_000
        assert answer.status_code == 202, answer.text
        assert (answer.json()["matched"], answer.json()["exact"]) == (CROWD, True)
        lag_ms: list[int] = []
        seen: list[int] = []

        submitting = asyncio.create_task(busy.on_and_on())
        async for operation in followed(boss, answer.json()["id"]):
            seen.append(operation["changed"])
            lag_ms.append((await boss.get("/v1/cluster")).json()["stream_lag_ms"] or 0)
        took_s = time.monotonic() - began
        submitting.cancel()
        await asyncio.wait([submitting])
        assert submitting.cancelled()
    figures = {
        "answered_ms": round(answered_ms),
        "took_s": round(took_s, 1),
        "submits_quiet": quiet.told(),
        "submits_busy": busy.told(),
        "stream_lag_max_ms": max(lag_ms),
    }
    record_property("figures", figures)
    with capsys.disabled():
        print(figures)  # a measurement, for people
    assert (operation["state"], operation["changed"], operation["refused"]) == ("done", CROWD, 0)
    assert seen == sorted(seen)
    assert len(set(seen)) > 5
    assert await in_state(processes, "cancelled") == CROWD


class Submits:
    """Of a token of another tenant: how long each takes, and how often there is no room for it."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self._took_ms: list[float] = []
        self._refused: Counter[str] = Counter()

    async def one(self) -> None:
        began = time.monotonic()
        answer = await self._client.post("/v1/jobs", json={"definition": "log"})
        self._took_ms.append((time.monotonic() - began) * 1_000)
        if answer.status_code != 201:
            # Where the machine has much else to do, some are refused: that is an answer too.
            assert (answer.status_code, "retry-after" in answer.headers) == (503, True), answer.text
            self._refused[answer.json()["type"].rpartition(":")[2]] += 1
        await asyncio.sleep(0.02)

    async def on_and_on(self) -> None:
        while True:
            await self.one()

    def told(self) -> str:
        cuts = quantiles(self._took_ms, n=100)
        times = f"p50 {cuts[49]:.0f} ms, p99 {cuts[98]:.0f} ms, max {max(self._took_ms):.0f} ms"
        return f"{len(self._took_ms)} submits: {times}; refused: {dict(self._refused)}"


async def test_one_is_stopped_in_the_middle(processes: Processes) -> None:
    one = await processes.replica("one", HASCHEDULER_TRANSPORT="mongo")
    await crowd(processes, 20_000)
    started = await processes.post("/v1/operations", CANCEL)
    async with httpx.AsyncClient(base_url=one.url, timeout=30) as client:
        async for operation in followed(client, started["id"]):
            if operation["changed"] > 0:
                await client.post(f"/v1/operations/{started['id']}/stop")
    assert operation["state"] == "stopped"
    assert 0 < operation["changed"] < 20_000
    assert await in_state(processes, "cancelled") == operation["changed"]
    assert await in_state(processes, "pending") == 20_000 - operation["changed"]


@pytest.mark.parametrize("killed", [True, False])
async def test_what_a_replica_leaves_another_finishes(processes: Processes, *, killed: bool) -> None:
    replicas = await processes.together("one", "two", HASCHEDULER_TRANSPORT="mongo")
    leader, _ = await processes.leader()
    [follower] = [replica for replica in replicas if replica is not leader]
    await crowd(processes, 20_000)
    runner, other = (leader, follower) if killed else (follower, leader)
    started = (await processes.http.post(f"{runner.url}/v1/operations", json=CANCEL)).json()
    async with httpx.AsyncClient(base_url=runner.url, timeout=30) as client:
        async for operation in followed(client, started["id"]):
            if operation["changed"] > 0:
                break
    if killed:
        await runner.kill()
    else:
        assert await runner.terminate() == 0
    operation = await ended(processes, other, started["id"])
    assert operation["state"] == "done"
    assert await in_state(processes, "cancelled") == 20_000
    # A replica that is killed may have done a slice that it did not note.
    assert 20_000 - 500 * killed <= operation["changed"] <= 20_000
