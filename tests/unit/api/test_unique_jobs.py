"""Jobs of definitions that are `unique` or limited by keys: what a submit, a batch and a schedule get."""

from typing import Any

import httpx
import pytest

from hascheduler.model.values.instants import format_instant
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import check_problem, create, get, post

LOG = "/v1/definitions/log"
JOBS = "/v1/jobs"
BATCH = "/v1/jobs:batch"
BY_CUSTOMER: dict[str, Any] = {"by": ["payload.customer"]}
ACME: dict[str, Any] = {"definition": "log", "payload": {"customer": "acme"}}
OTHER: dict[str, Any] = {"definition": "log", "payload": {"customer": "other"}}


async def defined(client: httpx.AsyncClient, **unique: Any) -> None:
    assert (await client.put(LOG, json={"unique": {**BY_CUSTOMER, **unique}})).is_success


@pytest.mark.parametrize("ready", [True, False])
async def test_a_duplicate_is_answered_with_the_job_that_is_there(
    client: httpx.AsyncClient, world: World, ready: bool
) -> None:
    await defined(client)
    if not ready:
        await post(client, JOBS, {"definition": "else"}, 201)  # else it is not known how much waits
        world.view.ready, world.view.definitions = False, dict
    first = await post(client, JOBS, ACME, 201)
    answer = await client.post(JOBS, json={**ACME, "priority": 9})
    assert (answer.status_code, answer.json()) == (200, first)
    assert (answer.headers["duplicate-of"], answer.headers["location"]) == (first["id"], f"{JOBS}/{first['id']}")
    assert "idempotency-replayed" not in answer.headers
    assert (await client.post(JOBS, json=OTHER)).status_code == 201
    assert (await client.post(JOBS, json={**ACME, "tenant": "another"})).status_code == 201


async def test_within_a_batch_too(client: httpx.AsyncClient, world: World) -> None:
    await defined(client)
    jobs = [{**ACME, "ref": "a"}, ACME, OTHER, {"definition": "then", "depends_on": ["ref:a"]}]
    answer = await post(client, BATCH, {"jobs": jobs})
    first, again, other, then = answer["results"]
    assert [each["status"] for each in answer["results"]] == [201, 200, 201, 201]
    assert first["job"] == again["job"] != other["job"]
    repeated = await post(client, BATCH, {"jobs": jobs})
    assert [each["status"] for each in repeated["results"]] == [200, 200, 200, 201]
    assert world.job(repeated["results"][3]["job"])["waits_for"] == [first["job"]]
    assert world.job(then["job"])["waits_for"] == [first["job"]]


async def test_an_atomic_batch_has_no_unique_jobs(client: httpx.AsyncClient, world: World) -> None:
    await defined(client)
    before = world.everything()
    answer = await client.post(BATCH, json={"jobs": [{"definition": "else"}, ACME], "atomic": True})
    assert [one["path"] for one in check_problem(answer, 422)["errors"]] == ["jobs.1.definition"]
    assert world.everything() == before
    assert (await client.post(BATCH, json={"jobs": [{"definition": "else"}], "atomic": True})).is_success


async def test_a_replaced_job_says_by_which(client: httpx.AsyncClient) -> None:
    await defined(client, on_duplicate="replace")
    first, second = await post(client, JOBS, ACME, 201), await post(client, JOBS, ACME, 201)
    shown = await get(client, f"{JOBS}/{first['id']}")
    assert (shown["state"], shown["error"]) == ("cancelled", f"replaced by {second['id']}")
    why = await get(client, f"{JOBS}/{first['id']}/why")
    assert why["summary"].startswith("it was cancelled at ")
    assert why["summary"].endswith(f": replaced by {second['id']}")
    assert (await get(client, f"{JOBS}/{second['id']}"))["state"] == "pending"


async def test_one_that_would_expire_while_it_is_debounced_is_refused(client: httpx.AsyncClient) -> None:
    await defined(client, on_duplicate="debounce", period="30s")
    early = {**ACME, "expires_at": format_instant(NOW + 30_000)}
    check_problem(await client.post(JOBS, json=early), 422, "expires_at")
    [result] = (await post(client, BATCH, {"jobs": [early]}))["results"]
    assert (result["status"], result["problem"]["errors"][0]["path"]) == (422, "expires_at")
    assert (await client.post(JOBS, json={**ACME, "expires_at": format_instant(NOW + 30_001)})).status_code == 201


@pytest.mark.parametrize(
    ("one", "other", "are_duplicates"),
    [
        ({"payload": {"customer": 5}}, {"payload": {"customer": "5"}}, True),
        ({"payload": {"customer": "a" * 300}}, {"payload": {"customer": "a" * 301}}, False),
        ({"payload": {"customer": "a" * 300}}, {"payload": {"customer": "a" * 300}}, True),
        ({"payload": None}, {"payload": {"customer": [1]}}, True),
        ({"payload": {"customer": "a"}}, {"payload": {"customer": "a"}, "labels": {"region": "eu"}}, False),
        ({"payload": {"customer": "\u2028"}}, {"payload": {"customer": "\u2029"}}, False),
        ({"payload": {"customer": "a"}, "target": "x"}, {"payload": {"customer": "a"}, "target": "y"}, True),
    ],
)
async def test_the_values_decide(
    client: httpx.AsyncClient, world: World, one: Any, other: Any, are_duplicates: bool
) -> None:
    await defined(client, by=["payload.customer", "label.region"])
    first = await post(client, JOBS, {"definition": "log", **one}, 201)
    answer = await client.post(JOBS, json={"definition": "log", **other})
    assert (answer.headers.get("duplicate-of") == first["id"]) is are_duplicates
    assert len(world.job(first["id"])["unique_key"]) == 64


# The values at limited keys are stored with every new job, however it is made


LIMITS = {"key_limits": [{"key": "payload.customer", "max_concurrency": 2}, {"key": "target", "max_concurrency": 1}]}


def acme(**more: Any) -> dict[str, Any]:
    return {"definition": "log", "target": "t", "payload": {"customer": "acme"}, **more}


async def out_of_touch(client: httpx.AsyncClient, world: World) -> None:
    """The mirror begins again, and has nothing yet."""
    await post(client, "/v1/jobs", {"definition": "other"}, 201)  # else it is not known how much waits
    world.view.ready, world.view.definitions = False, dict


@pytest.mark.parametrize("ready", [True, False])
async def test_a_submitted_job_has_its_values(client: httpx.AsyncClient, world: World, ready: bool) -> None:
    await client.put(LOG, json=LIMITS)
    if not ready:
        await out_of_touch(client, world)
    job = await post(client, "/v1/jobs", acme(), 201)
    assert world.job(job["id"])["limit_keys"] == [["payload.customer", "acme"], ["target", "t"]]
    batch = await post(client, "/v1/jobs:batch", {"jobs": [acme(), acme(payload={"customer": 7}), acme(payload=None)]})
    stored = [world.job(result["job"])["limit_keys"][0] for result in batch["results"]]
    assert stored == [["payload.customer", "acme"], ["payload.customer", "7"], ["payload.customer", ""]]


async def test_what_a_schedule_makes_has_the_values_of_its_rendered_payload(
    client: httpx.AsyncClient, world: World
) -> None:
    await client.put(LOG, json=LIMITS)
    await create(
        client,
        trigger={"type": "interval", "every": "1h"},
        job={"definition": "log", "payload": {"customer": "${label.customer}"}, "render": True},
        labels={"customer": "acme"},
    )
    made = [await post(client, "/v1/schedules/tick/trigger", None, 201)]
    made.append(await post(client, "/v1/schedules/tick/trigger", {"payload": {"customer": "other"}}, 201))
    past = format_instant(NOW - 3_600_000)
    backfilled = await post(client, "/v1/schedules/tick/backfill", {"from": past, "to": past})
    ids = [*(job["id"] for job in made), *backfilled["jobs"]]
    assert [world.job(id)["limit_keys"][0][1] for id in ids] == ["acme", "other", "acme"]
