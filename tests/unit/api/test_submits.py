"""Submits: idempotency keys, expiry and dependencies."""

import asyncio
from typing import Any

import httpx
import pytest

from hascheduler.model.job import JobState
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import check_problem, get

JOB = {"definition": "log", "payload": {"n": 1}}


async def submit(client: httpx.AsyncClient, key: str | None = None, **body: Any) -> httpx.Response:
    headers = {} if key is None else {"Idempotency-Key": key}
    return await client.post("/v1/jobs", json={**JOB, **body}, headers=headers)


async def submitted(client: httpx.AsyncClient, **body: Any) -> str:
    answer = await submit(client, **body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


# Idempotency keys


async def test_a_repeat_under_a_key_is_answered_with_the_same_job(client: httpx.AsyncClient, world: World) -> None:
    first = await submit(client, "k1")
    assert first.status_code == 201
    assert "idempotency-replayed" not in first.headers
    before = world.everything()
    again = await submit(client, "k1")
    assert (again.status_code, again.headers["idempotency-replayed"]) == (200, "true")
    assert again.json() == first.json()
    assert again.headers["location"] == first.headers["location"]
    assert world.everything() == before


async def test_a_hundred_equal_submits_at_once_give_one_job(client: httpx.AsyncClient) -> None:
    answers = await asyncio.gather(*(submit(client, "k1") for _ in range(100)))
    assert sorted({answer.status_code for answer in answers}) == [200, 201]
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert len((await get(client, "/v1/jobs"))["items"]) == 1


async def test_an_omitted_field_equals_its_default_and_the_order_of_keys_does_not_matter(
    client: httpx.AsyncClient,
) -> None:
    first = await submit(client, "k1", payload={"a": 1, "b": [2]})
    again = await submit(client, "k1", payload={"b": [2], "a": 1}, priority=5, depends_on=[])
    assert again.json()["id"] == first.json()["id"]


@pytest.mark.parametrize("other", [{"payload": {"n": 2}}, {"priority": 6}, {"target": "x"}, {"labels": {"a": "b"}}])
async def test_another_body_under_a_key_is_refused(
    client: httpx.AsyncClient, world: World, other: dict[str, Any]
) -> None:
    await submit(client, "k1")
    before = world.everything()
    problem = check_problem(await submit(client, "k1", **other), 409)
    assert "'k1'" in problem["detail"]
    assert world.everything() == before


async def test_tenants_do_not_share_keys(client: httpx.AsyncClient) -> None:
    answers = [await submit(client, "k1", tenant=tenant) for tenant in ("a", "b")]
    assert [answer.status_code for answer in answers] == [201, 201]


async def test_a_key_holds_for_a_day(client: httpx.AsyncClient, world: World) -> None:
    await submit(client, "k1")
    world.clock.now = type(NOW)(NOW + 24 * 3_600_000)
    assert (await submit(client, "k1")).status_code == 201


async def test_a_repeat_takes_no_room(client: httpx.AsyncClient) -> None:
    await client.put("/v1/tenants/acme", json={"max_pending": 2})
    answers = [await submit(client, "k1", tenant="acme") for _ in range(5)]
    assert [answer.status_code for answer in answers] == [201, 200, 200, 200, 200]
    assert (await submit(client, tenant="acme")).status_code == 201
    assert (await submit(client, tenant="acme")).status_code == 429


async def test_a_batch_that_is_not_admitted_takes_no_room(client: httpx.AsyncClient, world: World) -> None:
    for tenant in ("a", "b"):
        await client.put(f"/v1/tenants/{tenant}", json={"max_pending": 2})
    jobs = [{**JOB, "tenant": "a"}] * 2 + [{**JOB, "tenant": "b"}] * 3
    assert (await client.post("/v1/jobs:batch", json={"jobs": jobs})).status_code == 422
    assert not world.everything()["jobs"]
    assert (await client.post("/v1/jobs:batch", json={"jobs": jobs[:4]})).status_code == 200


# Deadlines and payloads


async def test_the_expiry_is_stored_and_shown(client: httpx.AsyncClient, world: World) -> None:
    id = await submitted(client, expires_at="2030-01-01T00:00:01Z")
    assert world.job(id)["expires_at_ms"] == NOW + 1_000
    assert (await get(client, f"/v1/jobs/{id}"))["expires_at"] == "2030-01-01T00:00:01.000Z"


async def test_a_payload_may_be_256_kibibytes_of_json(client: httpx.AsyncClient) -> None:
    await submitted(client, payload="x" * (256 * 1024 - 2))
    check_problem(await submit(client, payload="x" * (256 * 1024 - 1)), 422, "payload")


# Dependencies


async def test_a_job_waits_for_the_dependencies_that_have_yet_to_succeed(
    client: httpx.AsyncClient, world: World
) -> None:
    a, b = await submitted(client), await submitted(client)
    world.rewrite_job(b, state=JobState.SUCCEEDED.value)
    id = await submitted(client, depends_on=[a, b, a])
    assert (world.job(id)["depends_on"], world.job(id)["waits_for"]) == ([a, b], [a])
    shown = await get(client, f"/v1/jobs/{id}")
    assert (shown["depends_on"], shown["on_dependency_failure"]) == ([a, b], "fail")


async def test_a_job_waits_for_a_failed_dependency_unless_failures_are_ignored(
    client: httpx.AsyncClient, world: World
) -> None:
    a = await submitted(client)
    world.rewrite_job(a, state=JobState.FAILED.value)
    assert world.job(await submitted(client, depends_on=[a]))["waits_for"] == [a]
    ignoring = world.job(await submitted(client, depends_on=[a], on_dependency_failure="ignore"))
    assert (ignoring["waits_for"], ignoring["ignores_failures"]) == ([], True)
