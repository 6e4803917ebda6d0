"""The long poll for work."""

import asyncio
from typing import Any

import httpx

from hascheduler.model.collection import Collection
from tests.unit.api.doubles import World
from tests.unit.api.requests import check_problem, post
from tests.unit.api.work import attempt, promised, registered, started, waits


async def test_a_promised_attempt_is_returned_at_once_and_again_until_it_is_started(
    client: httpx.AsyncClient, world: World
) -> None:
    processor = await registered(client)
    named = await promised(client, world, processor)
    await promised(client, world, await registered(client))
    asked = {"processor": processor, "wait": "60s"}
    for _ in range(2):
        answer = await post(client, "/v1/work/fetch", asked)
        assert answer == {"attempts": [attempt(named)], "cancelled": [], "revoked": []}
    await post(client, "/v1/work/start", named)
    assert (await post(client, "/v1/work/fetch", {**asked, "wait": 0}))["attempts"] == []


async def test_a_waiting_fetch_is_answered_when_the_stream_shows_the_promise(
    client: httpx.AsyncClient, world: World
) -> None:
    processor = await registered(client)
    async with asyncio.TaskGroup() as tasks:
        fetch = tasks.create_task(post(client, "/v1/work/fetch", {"processor": processor, "wait": "60s"}))
        await waits(world, processor)
        named = await promised(client, world, processor)
    assert fetch.result()["attempts"] == [attempt(named)]


async def test_a_fetch_that_is_woken_before_the_core_knows_looks_again_soon(
    client: httpx.AsyncClient, world: World
) -> None:
    processor = await registered(client)
    look, looks = world.view.dispatched_attempts, 0

    def slow(id: str) -> Any:
        nonlocal looks
        looks += 1
        return look(id) if looks > 2 else ()

    world.view.dispatched_attempts = slow
    async with asyncio.TaskGroup() as tasks:
        fetch = tasks.create_task(post(client, "/v1/work/fetch", {"processor": processor, "wait": "60s"}))
        await waits(world, processor)
        named = await promised(client, world, processor)
    assert (fetch.result()["attempts"], looks) == ([attempt(named)], 3)


async def test_a_fetch_returns_at_most_its_limit_and_no_attempt_that_the_processor_holds(
    client: httpx.AsyncClient, world: World
) -> None:
    processor = await registered(client)
    first, second, third = [
        attempt(await promised(client, world, processor, target=target)) for target in ("a", "b", "c")
    ]
    asked = {"processor": processor, "wait": 0, "limit": 1, "running": [first]}
    assert (await post(client, "/v1/work/fetch", asked))["attempts"] == [second]
    assert (await post(client, "/v1/work/fetch", {**asked, "running": [first, second, third]}))["attempts"] == []


async def test_a_fetch_is_a_heartbeat_and_returns_the_attempts_to_stop(client: httpx.AsyncClient, world: World) -> None:
    processor = await registered(client)
    asked = await started(client, world, processor)
    await post(client, f"/v1/jobs/{asked['job']}/cancel")
    await post(client, "/v1/work/heartbeat", {"processor": processor, "draining": True})
    before = world.stored(Collection.PROCESSORS, processor)
    strange = {"job": "job:none", "attempt": 1}
    body = {"processor": processor, "wait": 0, "running": [attempt(asked), strange]}
    answer = await post(client, "/v1/work/fetch", body)
    assert answer == {"attempts": [], "cancelled": [attempt(asked)], "revoked": [strange]}
    after = world.stored(Collection.PROCESSORS, processor)
    assert (after["beat"], after["draining"]) == (before["beat"] + 1, True)


async def test_a_stopping_replica_answers_its_waiting_fetches(client: httpx.AsyncClient, world: World) -> None:
    processor = await registered(client)
    asked = {"processor": processor, "wait": "60s"}
    async with asyncio.TaskGroup() as tasks:
        fetch = tasks.create_task(post(client, "/v1/work/fetch", asked))
        await waits(world, processor)
        world.view.waiters.close()
    assert fetch.result()["attempts"] == []
    answer = await client.post("/v1/work/fetch", json=asked)
    check_problem(answer, 503)
    assert answer.headers["retry-after"] == "1"


async def test_a_disconnected_fetch_gives_its_place_up(client: httpx.AsyncClient, world: World, app: Any) -> None:
    processor = await registered(client)
    left = asyncio.Event()
    body = [
        {"type": "http.request", "body": b'{"processor": "%s", "wait": 60}' % processor.encode(), "more_body": False}
    ]

    async def receive() -> Any:
        if body:
            return body.pop()
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        pass

    scope = {
        "type": "http", "method": "POST", "path": "/v1/work/fetch", "raw_path": b"/v1/work/fetch", "query_string": b"",
        "headers": [(b"content-type", b"application/json")], "http_version": "1.1", "scheme": "http",
        "server": ("api", 80), "client": ("a", 1), "root_path": "", "app": app,
    }  # fmt: skip
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(app(scope, receive, send))
        await waits(world, processor)
        left.set()
    assert not world.view.waiters.names
