"""``?wait=``: a submit that is answered with the result of its job."""

import asyncio
import json
from typing import Any

import httpx2
import pytest

from hascheduler.api.http.limits import Limit
from hascheduler.daemon.outbound import waiters
from tests.unit.api.doubles import World
from tests.unit.api.requests import Client
from tests.unit.api.test_server import plain_client, serving

JOB = {"definition": "log"}


async def until(condition: Any) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110  # what changes knows nothing of those who wait
            await asyncio.sleep(0.002)


def end(world: World, id: str, **fields: Any) -> None:
    world.rewrite_job(id, **{"state": "succeeded", "result": {"ok": 1}, **fields})
    world.view.waiters.notify(id)


def waits(world: World, id: str) -> bool:
    return id in world.view.waiters.by_name


@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_the_result_is_in_the_answer(client: Client, world: World, method: str) -> None:
    if method == "GET":
        await client.post("/v1/jobs", json=JOB)
        asking = asyncio.create_task(client.get("/v1/jobs/job:0001?wait=30s"))
    else:
        asking = asyncio.create_task(client.post("/v1/jobs?wait=30s", json=JOB))
    await until(lambda: waits(world, "job:0001"))
    end(world, "job:0001")
    answer = await asking
    assert (answer.status_code, answer.json()["state"], answer.json()["result"]) == (200, "succeeded", {"ok": 1})
    assert not waits(world, "job:0001")
    assert (await client.get("/v1/jobs/job:0001?wait=30s")).json() == answer.json()


async def test_when_the_time_is_over_the_answer_says_where_to_ask(client: Client) -> None:
    for wait in ("0s", "20ms", "0.02"):
        answer = await client.post(f"/v1/jobs?wait={wait}", json=JOB)
        assert (answer.status_code, answer.json()["state"]) == (202, "pending")
        assert answer.headers["location"] == f"/v1/jobs/{answer.json()['id']}"


class Clients:
    """Requests that wait for ``job:0001`` and may leave, one after another."""

    def __init__(self, world: World, port: int) -> None:
        self._world = world
        self._port = port

    async def waits(self, target: str) -> asyncio.StreamWriter:
        _, writer = await asyncio.open_connection("127.0.0.1", self._port)
        before = self._count()
        method, _, path = target.partition(" ")
        body = json.dumps(JOB).encode() if method == "POST" else b""
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nIdempotency-Key: k\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        await until(lambda: self._count() == before + 1)
        return writer

    async def leaves(self, writer: asyncio.StreamWriter) -> None:
        before = self._count()
        writer.close()
        await until(lambda: self._count() == before - 1)

    async def state(self) -> object:
        """By a request of its own: what a disconnect brings has happened by then."""
        await self.asks("GET", "/v1/jobs/job:0001")
        return (await self.asks("GET", "/v1/jobs/job:0001")).json()["state"]

    async def asks(self, method: str, path: str, body: object = None) -> httpx2.Response:
        async with plain_client(self._port) as client:
            return await client.request(method, path, json=body, headers={"Idempotency-Key": "k"} if body else {})

    def _count(self) -> int:
        return self._world.view.waiters._count  # of requests, where the names are those of jobs


ASKED = "POST /v1/jobs?wait=60s&cancel_on_disconnect=true"
NOT_ASKED = "POST /v1/jobs?wait=60s"
BY_ID = "GET /v1/jobs/job:0001?wait=60s"


@pytest.mark.parametrize("other", [ASKED, NOT_ASKED, BY_ID])
async def test_a_disconnect_does_not_cancel_the_job_under_another_that_waits(world: World, other: str) -> None:
    async with serving(world) as server:
        clients = Clients(world, server.port)
        maker, sharer = await clients.waits(ASKED), await clients.waits(other)
        await clients.leaves(maker)
        assert await clients.state() == "pending"
        await clients.leaves(sharer)
        if other == ASKED:  # nobody is left who wants it
            await until(lambda: world.job("job:0001")["state"] == "cancelled")
        else:
            assert await clients.state() == "pending"


@pytest.mark.parametrize("query", ["", "?wait=20ms&cancel_on_disconnect=true"])
async def test_who_was_answered_that_it_goes_on_may_ask_for_it_again(world: World, query: str) -> None:
    async with serving(world) as server:
        clients = Clients(world, server.port)
        maker = await clients.waits(ASKED)
        assert (await clients.asks("POST", f"/v1/jobs{query}", JOB)).json()["state"] == "pending"
        await clients.leaves(maker)
        assert await clients.state() == "pending"


async def test_who_did_not_make_the_job_never_cancels_it(client: Client, world: World) -> None:
    """It may have been made at another replica, where its maker waits."""
    await client.post("/v1/jobs", json=JOB, headers={"Idempotency-Key": "k"})
    async with serving(world) as server:
        clients = Clients(world, server.port)
        await clients.leaves(await clients.waits(ASKED))
        assert await clients.state() == "pending"


async def test_who_has_a_full_share_of_the_waits_is_answered_at_once(
    client: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await client.post("/v1/jobs", json=JOB)
    world.limits["waits"] = Limit("some", 0)
    assert (await client.get("/v1/jobs/job:0001?wait=30s")).json()["state"] == "pending"
    world.limits["waits"] = Limit("some", 1)
    monkeypatch.setattr(waiters, "WAITERS_MAX", 0)
    assert (await client.get("/v1/jobs/job:0001?wait=30s")).json()["state"] == "pending"
