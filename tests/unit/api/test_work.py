"""Work over HTTP: registrations, the long poll, starts and heartbeats."""

import asyncio
from typing import Any

import httpx
import pytest

from hascheduler.model.collection import Collection
from hascheduler.model.processor import is_polling
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import check_problem, post, scope_of
from tests.unit.api.work import NOBODY, attempt, promised, registered, started, waits


async def test_a_registration_is_stored_and_answered_with_the_terms(client: httpx.AsyncClient, world: World) -> None:
    body = {"name": "far", "definitions": ["log", "*"], "slots": 3, "resources": {"gpu": 1}}
    answer = await post(client, "/v1/work/processors", body, 201)
    id = answer.pop("processor")
    assert answer == {"heartbeat_interval": 1.0, "heartbeat_deadline": 4.0}
    assert id.startswith("http:far.")
    assert is_polling(id)
    stored = world.stored(Collection.PROCESSORS, id)
    assert {name: stored[name] for name in ("name", "shard", "slots", "draining", "resources")} == {
        "name": "far", "shard": "default", "slots": 3, "draining": False, "resources": {"gpu": 1},
    }  # fmt: skip
    assert sorted(stored["definitions"]) == ["*", "log"]
    assert await registered(client) != await registered(client)


async def test_a_start_gives_the_job_and_a_repeat_gives_it_again(client: httpx.AsyncClient, world: World) -> None:
    named = await promised(
        client, world, await registered(client), target="t", payload={"n": 1}, labels={"a": "b"}, tenant="acme"
    )
    answer = await post(client, "/v1/work/start", named)
    assert answer == {
        **attempt(named), "definition": "log", "target": "t", "payload": {"n": 1}, "tenant": "acme",
        "labels": {"a": "b"}, "schedule": None, "nominal_at": None, "submitted_at": "2030-01-01T00:00:00.000Z",
        "started_at": "2030-01-01T00:00:00.000Z", "failures": 0, "losses": 0, "timeout": None, "traceparent": None,
    }  # fmt: skip
    assert world.job(named["job"])["state"] == "running"
    assert await post(client, "/v1/work/start", named) == answer


@pytest.mark.parametrize(
    ("definition", "passed_ms", "timeout"),
    [
        ({"timeout": "5m"}, 0, 300.0),
        ({"timeout": "5m"}, 1_500, 298.5),
        ({"timeout": "5m", "total_timeout": "5m"}, 0, 300.0),
        ({"timeout": "1m", "total_timeout": "90s"}, 61_000, 0.0),
        ({"total_timeout": "1m"}, 61_000, 0.0),
        ({}, 0, None),
    ],
)
async def test_a_start_returns_the_timeout_and_a_repeat_the_rest_of_it(
    client: httpx.AsyncClient, world: World, definition: dict[str, Any], passed_ms: int, timeout: float | None
) -> None:
    assert (await client.put("/v1/definitions/log", json=definition)).status_code == 201
    named = await started(client, world, await registered(client))
    world.clock.now = NOW + passed_ms  # type: ignore[assignment]  # an instant
    assert (await post(client, "/v1/work/start", named))["timeout"] == timeout


async def test_only_its_own_attempt_is_started(client: httpx.AsyncClient, world: World) -> None:
    named = await promised(client, world, await registered(client))
    before = world.everything()
    for other in ({"processor": await registered(client)}, {"attempt": 2}, {"job": "job:none"}):
        check_problem(await client.post("/v1/work/start", json={**named, **other}), 409)
    assert world.everything()["jobs"] == before["jobs"]


async def test_progress_is_shown_and_an_empty_report_changes_nothing(client: httpx.AsyncClient, world: World) -> None:
    processor = await registered(client)
    named = await started(client, world, processor)
    shown = {"percent": 40.0, "text": "2 of 5", "at": "2030-01-01T00:00:00.000Z"}
    for report in ({"percent": 40, "text": " 2 of\n5 "}, {}):
        await post(client, "/v1/work/heartbeat", {"processor": processor, "running": [{**attempt(named), **report}]})
        assert (await client.get(f"/v1/jobs/{named['job']}")).json()["progress"] == shown


@pytest.mark.parametrize("processor", [NOBODY, "p-1.bb"])
async def test_an_unknown_processor_is_answered_that_it_must_register_again(
    client: httpx.AsyncClient, processor: str
) -> None:
    for path in ("fetch", "heartbeat"):
        answer = await client.post(f"/v1/work/{path}", json={"processor": processor})
        check_problem(answer, 404)
        assert answer.json()["type"] == "urn:hascheduler:problem:not-registered"
        assert "register again" in answer.json()["detail"]


async def test_processors_that_do_not_speak_http_are_out_of_reach(client: httpx.AsyncClient, world: World) -> None:
    job_id = (await post(client, "/v1/jobs", {"definition": "log"}, 201))["id"]
    await world.dispatch(job_id, "p-1.bb")
    named = {"processor": "p-1.bb", "job": job_id, "attempt": 1}
    before = world.everything()
    check_problem(await client.post("/v1/work/start", json=named), 404)
    check_problem(await client.post("/v1/work/finish", json={**named, "outcome": "succeeded"}), 404)
    check_problem(await client.delete("/v1/work/processors/p-1.bb"), 404)
    assert world.everything() == before


# The long poll


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

    scope = scope_of("POST", "/v1/work/fetch", [(b"content-type", b"application/json")], app=app)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(app(scope, receive, send))
        await waits(world, processor)
        left.set()
    assert not world.view.waiters.names
