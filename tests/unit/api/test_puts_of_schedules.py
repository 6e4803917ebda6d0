"""PUT makes or replaces a schedule, and a create is repeated under its key; whoever races, one schedule is made."""

import asyncio
from typing import Any

import httpx

from tests.unit.api.doubles import World
from tests.unit.api.requests import TICK, check_problem

PATH = "/v1/schedules/tick"
KEY = {"Idempotency-Key": "deploy-7"}


async def test_put_makes_what_is_not_there(client: httpx.AsyncClient) -> None:
    made = await client.put(PATH, json=TICK)
    assert (made.status_code, made.headers["location"], made.headers["etag"]) == (201, PATH, '"1"')
    again = await client.put(PATH, json=TICK)
    assert (again.status_code, again.headers["etag"]) == (200, '"1"')
    assert made.json() == again.json() == (await client.get(PATH)).json()


async def test_put_heeds_both_preconditions(client: httpx.AsyncClient) -> None:
    check_problem(await client.put(PATH, json=TICK, headers={"If-Match": "*"}), 412)
    assert (await client.put(PATH, json=TICK, headers={"If-None-Match": "*"})).status_code == 201
    check_problem(await client.put(PATH, json=TICK, headers={"If-None-Match": "*"}), 412)
    check_problem(await client.put(PATH, json=TICK, headers={"If-None-Match": '"1"'}), 412)
    replaced = await client.put(PATH, json={**TICK, "overlap": "skip"}, headers={"If-None-Match": '"7"'})
    assert (replaced.status_code, replaced.headers["etag"]) == (200, '"2"')


async def test_of_puts_that_race_one_makes_it_and_the_others_replace_it(client: httpx.AsyncClient) -> None:
    bodies: list[dict[str, Any]] = [{**TICK, "labels": {"of": str(number)}} for number in range(3)]
    answers = await asyncio.gather(*(client.put(PATH, json=body) for body in bodies))
    assert sorted(answer.status_code for answer in answers) == [200, 200, 201]
    assert (await client.get(PATH)).json()["rev"] == 3


async def test_a_put_that_loses_to_a_create_replaces_it(client: httpx.AsyncClient, world: World) -> None:
    create = world.schedules.create

    async def after_another(document: dict[str, Any]) -> Any:
        world.schedules.create = create  # type: ignore[method-assign]
        assert (await client.post("/v1/schedules", json=TICK)).status_code == 201
        return await create(document)

    world.schedules.create = after_another  # type: ignore[method-assign,assignment]
    answer = await client.put(PATH, json={**TICK, "overlap": "skip"})
    assert (answer.status_code, answer.json()["overlap"], answer.json()["rev"]) == (200, "skip", 2)


async def test_a_create_is_repeated_under_its_key(client: httpx.AsyncClient) -> None:
    made = await client.post("/v1/schedules", json=TICK, headers=KEY)
    again = await client.post("/v1/schedules", json=TICK, headers=KEY)
    assert (made.status_code, again.status_code, again.headers["idempotency-replayed"]) == (201, 200, "true")
    assert made.json() == again.json()
    check_problem(await client.post("/v1/schedules", json={**TICK, "overlap": "skip"}, headers=KEY), 409)
    check_problem(await client.post("/v1/schedules", json=TICK, headers={"Idempotency-Key": "other"}), 409)
    check_problem(await client.post("/v1/schedules", json=TICK), 409)


async def test_of_creates_that_race_under_one_key_one_makes_it(client: httpx.AsyncClient) -> None:
    answers = await asyncio.gather(*(client.post("/v1/schedules", json=TICK, headers=KEY) for _ in range(3)))
    assert sorted(answer.status_code for answer in answers) == [200, 200, 201]
