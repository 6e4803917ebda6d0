"""``?wait=``: a submit that is answered with the result of its job."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from hascheduler.daemon.outbound import waiters
from tests.unit.api.doubles import World
from tests.unit.api.requests import check_problem
from tests.unit.api.test_server import serving

JOB = {"definition": "log"}


async def until(condition: Any) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110  # what changes knows nothing of those who wait
            await asyncio.sleep(0.002)


def end(world: World, id: str, **fields: Any) -> None:
    world.rewrite_job(id, **{"state": "succeeded", "result": {"ok": 1}, **fields})
    world.view.waiters.notify(id)


def waits(world: World, id: str) -> bool:
    return id in world.view.waiters.names


async def test_the_result_is_in_the_answer(client: httpx.AsyncClient, world: World) -> None:
    asking = asyncio.create_task(client.post("/v1/jobs?wait=30s", json=JOB))
    await until(lambda: waits(world, "job:0001"))
    end(world, "job:0001")
    answer = await asking
    assert (answer.status_code, answer.json()["state"], answer.json()["result"]) == (200, "succeeded", {"ok": 1})
    assert not waits(world, "job:0001")


async def test_when_the_time_is_over_the_answer_says_where_to_ask(client: httpx.AsyncClient) -> None:
    for wait in ("0s", "20ms", "0.02"):
        answer = await client.post(f"/v1/jobs?wait={wait}", json=JOB)
        assert (answer.status_code, answer.json()["state"]) == (202, "pending")
        assert answer.headers["location"] == f"/v1/jobs/{answer.json()['id']}"


async def test_a_repeat_under_the_key_waits_for_the_same_job(client: httpx.AsyncClient, world: World) -> None:
    key = {"Idempotency-Key": "k"}
    await client.post("/v1/jobs", json=JOB, headers=key)
    asking = asyncio.create_task(client.post("/v1/jobs?wait=30s", json=JOB, headers=key))
    await until(lambda: waits(world, "job:0001"))
    end(world, "job:0001", state="failed", error="no luck")
    answer = await asking
    assert (answer.status_code, answer.json()["error"]) == (200, "no luck")
    assert (await client.post("/v1/jobs?wait=30s", json=JOB, headers=key)).json() == answer.json()


@pytest.mark.parametrize("wait", ["-1s", "301s", "1e99", "NaN", "soon", ""])
async def test_an_invalid_wait_is_refused(client: httpx.AsyncClient, world: World, wait: str) -> None:
    check_problem(await client.post(f"/v1/jobs?wait={wait}", json=JOB), 422, "wait")
    check_problem(await client.post("/v1/jobs?wiat=3s", json=JOB), 422, "wiat")
    assert not world.everything()["jobs"]


async def test_with_too_many_waits_the_job_is_submitted_and_answered_at_once(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiters, "WAITERS_MAX", 0)
    answer = await client.post("/v1/jobs?wait=30s", json=JOB)
    assert (answer.status_code, answer.headers["location"]) == (202, "/v1/jobs/job:0001")


@pytest.mark.parametrize(("asked", "state"), [("", "pending"), ("&cancel_on_disconnect=true", "cancelled")])
async def test_a_disconnect_cancels_the_job_only_if_the_client_asked_for_that(
    world: World, asked: str, state: str
) -> None:
    async with serving(world) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        body = json.dumps(JOB).encode()
        head = f"POST /v1/jobs?wait=60s{asked} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        await until(lambda: waits(world, "job:0001"))
        writer.close()
        await until(lambda: not waits(world, "job:0001"))
        await until(lambda: world.job("job:0001")["state"] == state)
        assert not await reader.read()
