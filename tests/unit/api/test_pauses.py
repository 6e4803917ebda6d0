"""Pause and resume: what becomes of the nominal times in between."""

import httpx

from hascheduler.model.values.instants import WallMs
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import NOW_TEXT, check_problem, create, get, post


async def test_a_paused_schedule_shows_since_when_and_why(client: httpx.AsyncClient) -> None:
    before = await create(client)
    shown = await post(client, "/v1/schedules/tick/pause", {"because": "the printer is on fire"})
    paused = {
        "paused": True,
        "paused_at": NOW_TEXT,
        "paused_because": "the printer is on fire",
        "next_at": None,
        "next_due_at": None,
        "rev": 2,
    }
    assert shown == {**before, **paused}
    assert await get(client, "/v1/schedules/tick") == shown


async def test_pausing_again_changes_nothing_but_a_reason_that_is_given(
    client: httpx.AsyncClient, world: World
) -> None:
    await create(client)
    first = await post(client, "/v1/schedules/tick/pause", {"because": "lunch"})
    world.clock.now = WallMs(NOW + 5_000)
    assert await post(client, "/v1/schedules/tick/pause") == first
    assert await post(client, "/v1/schedules/tick/pause", {"because": "lunch"}) == first
    second = await post(client, "/v1/schedules/tick/pause", {"because": "a long lunch"})
    assert second == {**first, "paused_because": "a long lunch", "rev": 3}


async def test_resuming_leaves_out_the_times_in_between(client: httpx.AsyncClient, world: World) -> None:
    await create(client)
    await post(client, "/v1/schedules/tick/pause", {"because": "lunch"})
    world.clock.now = WallMs(NOW + 3_500)
    shown = await post(client, "/v1/schedules/tick/resume")
    assert (shown["paused"], shown["paused_at"], shown["paused_because"]) == (False, None, None)
    assert (shown["next_at"], shown["rev"]) == ("2030-01-01T00:00:04.000Z", 3)
    [stretch] = world.schedule()["past"]
    assert (stretch["since_ms"], stretch["through_ms"], stretch["paused"]) == (NOW, NOW + 3_500, True)


async def test_resuming_with_catch_up_applies_the_misfire_policy_to_them(
    client: httpx.AsyncClient, world: World
) -> None:
    await create(client, paused=True)
    world.clock.now = WallMs(NOW + 3_500)
    shown = await post(client, "/v1/schedules/tick/resume", {"catch_up": True})
    assert shown["next_at"] == "2030-01-01T00:00:01.000Z"
    assert world.schedule()["past"] == []


async def test_resuming_a_schedule_that_is_not_paused_changes_nothing(client: httpx.AsyncClient, world: World) -> None:
    before = await create(client)
    world.clock.now = WallMs(NOW + 3_500)
    assert await post(client, "/v1/schedules/tick/resume", {"catch_up": False}) == before


async def test_a_pause_for_too_many_failures_is_shown_and_ends_with_a_resume(
    client: httpx.AsyncClient, world: World
) -> None:
    await create(client, pause_after_failures=3)
    await world.count_failures(3, pause_at_ms=NOW + 10)
    shown = await get(client, "/v1/schedules/tick")
    assert (shown["paused"], shown["failures_in_a_row"]) == (True, 3)
    assert shown["paused_because"] == "3 of its jobs failed in a row"
    resumed = await post(client, "/v1/schedules/tick/resume")
    assert (resumed["paused_because"], resumed["failures_in_a_row"]) == (None, 0)


async def test_a_body_may_be_left_out_but_not_be_something_else(client: httpx.AsyncClient) -> None:
    await create(client)
    path = "/v1/schedules/tick/pause"
    form = {"content-type": "application/x-www-form-urlencoded"}
    assert (await client.post(path, headers=form)).status_code == 200
    assert (await client.post(path, content="{}", headers={"content-type": "application/json"})).status_code == 200
    check_problem(await client.post(path, content="because=x", headers=form), 415)
    check_problem(await client.post(path, content="{", headers={"content-type": "application/json"}), 400)
