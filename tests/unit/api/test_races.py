"""Edits that race: none is lost, and each is computed from the revision that it replaces."""

import httpx

from hascheduler.model.collection import Collection
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import check_problem, create, patch


async def test_an_edit_that_loses_every_race_is_a_conflict(client: httpx.AsyncClient, world: World) -> None:
    await create(client)

    async def overtake() -> None:
        world.rewrite(Collection.SCHEDULES, "tick", rev=world.schedule()["rev"] + 1)

    world.schedules.overtakers = [overtake] * 5
    check_problem(await client.patch("/v1/schedules/tick", json={"overlap": "skip"}), 409)
    assert world.schedule()["policy"]["overlap"] == "allow"


async def test_an_edit_of_a_schedule_that_is_deleted_meanwhile_finds_nothing(
    client: httpx.AsyncClient, world: World
) -> None:
    await create(client)
    world.schedules.overtakers = [lambda: client.delete("/v1/schedules/tick"), _nothing]
    check_problem(await client.patch("/v1/schedules/tick", json={"overlap": "skip"}), 404)


async def test_a_fire_during_an_edit_is_no_conflict_and_stays(client: httpx.AsyncClient, world: World) -> None:
    await create(client)
    world.schedules.overtakers = [lambda: world.fire(NOW + 1_000)]
    shown = await patch(client, {"overlap": "skip"})
    assert (shown["rev"], shown["counts"]["fired"], shown["last_nominal_at"]) == (2, 1, "2030-01-01T00:00:01.000Z")


async def _nothing() -> None:
    pass
