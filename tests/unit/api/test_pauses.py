"""Pause, resume and reset: what becomes of the nominal times in between, and of a cursor that is ahead of now."""

from typing import Any

import httpx

from hascheduler.dispatch.decisions import ResetCursor
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import Verdict
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


AHEAD_MS = 10_800_000
AHEAD_TEXT = "2030-01-01T03:00:00.000Z"
RESET = "/v1/schedules/tick/reset"


async def ahead(client: httpx.AsyncClient, world: World, name: str = "tick", **fields: Any) -> None:
    """Its times of the next three hours were passed over, and the last of them fired."""
    await create(client, name=name, **fields)
    await world.pass_over(Verdict.COALESCED, NOW + 1_000, NOW + AHEAD_MS - 1_000, count=10_799, name=name)
    await world.fire(NOW + AHEAD_MS, name)


async def test_a_schedule_that_is_ahead_is_shown_with_the_command_that_mends_it(
    client: httpx.AsyncClient, world: World
) -> None:
    await create(client, name="right")
    await ahead(client, world)
    shown = await get(client, "/v1/schedules/tick")
    assert shown["ahead_until"] == AHEAD_TEXT
    assert "hascheduler schedule reset tick --from now" in shown["warnings"][0]
    right = await get(client, "/v1/schedules/right")
    assert (right["ahead_until"], right["warnings"]) == (None, [])
    for query in ("ahead=true", "ahead=true&text=ti", "ahead=true&state=active"):
        listed = await get(client, f"/v1/schedules?{query}")
        assert [(one["name"], one["ahead_until"]) for one in listed["items"]] == [("tick", AHEAD_TEXT)], query
    assert (await get(client, "/v1/schedules:counts?ahead=true"))["active"] == 1


async def test_a_reset_is_asked_for_once_and_the_leader_carries_it_out(client: httpx.AsyncClient, world: World) -> None:
    await ahead(client, world)
    world.clock.now = WallMs(NOW + 5_500)
    asked = await post(client, RESET, {"from": "now"})
    assert (asked["rev"], world.schedule()["reset_at_ms"]) == (2, NOW + 5_500)
    assert asked["warnings"] == ["it is about to be reset, by the leader"]
    world.clock.now = WallMs(NOW + 6_500)
    assert (await post(client, RESET))["rev"] == 2
    await world.decide(ResetCursor("tick", WallMs(NOW + 5_500), NOW))
    shown = await get(client, "/v1/schedules/tick")
    assert (shown["ahead_until"], shown["warnings"]) == (None, [])
    assert shown["next_at"] == "2030-01-01T00:00:06.000Z"
    assert (shown["counts"]["fired"], shown["counts"]["coalesced"]) == (1, 5)
    assert await post(client, RESET) == shown
    # Its times up to the one that fired too early, and after that one, but not that one.
    preview = await get(client, "/v1/schedules/tick/verdicts")
    assert [one["verdict"] for one in preview["items"]] == ["fired", "coalesced"]


async def test_what_a_reset_can_not_do_is_refused(client: httpx.AsyncClient, world: World) -> None:
    await ahead(client, world)
    check_problem(await client.post(RESET, json={"from": NOW_TEXT}), 422)
    check_problem(await client.post(RESET, headers={"if-match": '"7"'}), 412)
    check_problem(await client.post("/v1/schedules/nothing/reset"), 404)
    await post(client, "/v1/schedules/tick/pause")
    refused = check_problem(await client.post(RESET), 409)
    assert "resume it first" in refused["detail"]
    # And the remedy that is named does both.
    [warning] = (await get(client, "/v1/schedules/tick"))["warnings"]
    assert "hascheduler schedule resume tick && hascheduler schedule reset tick --from now" in warning
    await post(client, "/v1/schedules/tick/resume")
    await post(client, RESET)
    assert world.schedule()["reset_at_ms"] == NOW


async def test_all_that_are_ahead_and_match_are_reset(client: httpx.AsyncClient, world: World) -> None:
    await ahead(client, world, "tick", labels={"team": "a"})
    await ahead(client, world, "tide", labels={"team": "a"})
    await ahead(client, world, "other")
    await create(client, name="tired", labels={"team": "a"})
    for changed in (2, 0):
        answer = await post(client, "/v1/schedules:reset", {"filter": {"text": "ti"}})
        assert (answer["matched"], answer["changed"], answer["refused"]) == (2, changed, 0)
    asked = {one["_id"] for one in world.everything()["schedules"] if one.get("reset_at_ms") is not None}
    assert asked == {"tick", "tide"}
