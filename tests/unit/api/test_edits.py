"""PUT, PATCH, pause, resume and reset of schedules: what is kept, and what becomes of the times in between."""

from typing import Any

import pytest

from hascheduler.dispatch.decisions import ResetCursor
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import Verdict
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import NOW_TEXT, TICK, Client, check_problem, create, get, patch, post

LOG = {"definition": "log"}


@pytest.mark.parametrize(
    ("trigger", "earlier"),
    [
        (
            {"type": "times", "at": ["2030-01-01T00:30:00Z", "2030-01-01T01:00:00Z"]},
            {"type": "times", "at": ["2030-01-01T00:30:00Z"]},
        ),
        (
            {"type": "interval", "every": "1m", "end_at": "2030-01-01T01:00:00Z"},
            {"type": "interval", "every": "1m", "end_at": "2030-01-01T00:59:00Z"},
        ),
    ],
)
async def test_a_trigger_that_has_passed_may_be_sent_again_but_not_changed(
    client: Client, world: World, trigger: dict[str, Any], earlier: dict[str, Any]
) -> None:
    await create(client, trigger=trigger)
    world.clock.now = WallMs(NOW + 2 * 3_600_000)
    again = await client.put("/v1/schedules/tick", json={**TICK, "trigger": trigger, "overlap": "skip"})
    assert again.status_code == 200, again.text
    refused = await client.put("/v1/schedules/tick", json={**TICK, "trigger": earlier})
    check_problem(refused, 422, "trigger.end_at" if "end_at" in trigger else "trigger.at")


async def test_an_edit_is_not_retroactive_and_loses_nothing(client: Client, world: World) -> None:
    await create(client)
    await world.fire(NOW + 1_000)
    world.clock.now = WallMs(NOW + 3_500)
    shown = await patch(client, {"trigger": {"every": "10s"}})
    assert shown["next_at"] == "2030-01-01T00:00:02.000Z"  # still of the trigger before
    stored = world.schedule()
    assert (stored["since_ms"], stored["cursor_ms"]) == (NOW + 3_500, NOW + 1_000)
    assert [(stretch["since_ms"], stretch["through_ms"]) for stretch in stored["past"]] == [(NOW, NOW + 3_500)]
    await world.fire(NOW + 3_000)
    assert (await get(client, "/v1/schedules/tick"))["next_at"] == "2030-01-01T00:00:10.000Z"


async def test_too_many_edits_without_a_leader_are_a_conflict(client: Client, world: World) -> None:
    await create(client)
    for n in range(32):
        world.clock.now = WallMs(world.clock.now + 60_000)
        await patch(client, {"trigger": {"every": f"{n + 2}s"}})
    world.clock.now = WallMs(world.clock.now + 60_000)
    problem = check_problem(await client.patch("/v1/schedules/tick", json={"trigger": {"every": "1m"}}), 409)
    assert "leader" in problem["detail"]


async def test_a_replacement_leaves_a_pause_alone(client: Client) -> None:
    await create(client, paused=True)
    shown = (await client.put("/v1/schedules/tick", json={**TICK, "trigger": {"type": "interval", "every": 5}})).json()
    assert shown["paused"] is True
    for method in ("PUT", "PATCH"):
        answer = await client.request(method, "/v1/schedules/tick", json={**TICK, "paused": False})
        problem = check_problem(answer, 422, "paused")
        assert "resume" in problem["detail"]


PATCHES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("nothing", {}, {}),
    ("a policy", {"overlap": "skip"}, {"overlap": "skip"}),
    (
        "a part of the misfire policy",
        {"misfire": {"limit": 3}},
        {"misfire": {"grace": "5m", "catch_up": "all", "limit": 3}},
    ),
    (
        "null of a part is its default",
        {"misfire": {"grace": None}},
        {"misfire": {"grace": "1m", "catch_up": "all", "limit": 9}},
    ),
    ("a label more", {"labels": {"tier": "1"}}, {"labels": {"team": "a", "tier": "1"}}),
    ("a label less", {"labels": {"team": None}}, {"labels": {}}),
    ("a field that is not set can be removed", {"labels": {"x": None}, "nothing": None}, {}),
    ("the name, as it is", {"name": "tick"}, {}),
]


@pytest.mark.parametrize(("patch_body", "changed"), [row[1:] for row in PATCHES], ids=[row[0] for row in PATCHES])
async def test_a_patch_changes_only_the_fields_that_it_names(
    client: Client, patch_body: dict[str, Any], changed: dict[str, Any]
) -> None:
    before = await create(
        client,
        misfire={"grace": "5m", "catch_up": "all", "limit": 9},
        pause_after_failures=2,
        labels={"team": "a"},
    )
    shown = await patch(client, patch_body)
    assert shown == {**before, **changed, "rev": 2 if changed else 1}


@pytest.mark.parametrize(("old", "new"), [(1, True), (1, 1.0), (0, False), ({"a": [1]}, {"a": [True]})])
async def test_values_that_only_python_calls_equal_are_a_change(client: Client, old: object, new: object) -> None:
    await create(client, job={**LOG, "payload": old})
    assert (await patch(client, {"job": {"payload": new}}))["rev"] == 2


AHEAD_MS = 10_800_000
RESET = "/v1/schedules/tick/reset"


async def ahead(client: Client, world: World, name: str = "tick", **fields: Any) -> None:
    """Its times of the next three hours were passed over, and the last of them fired."""
    await create(client, name=name, **fields)
    await world.pass_over(Verdict.COALESCED, NOW + 1_000, NOW + AHEAD_MS - 1_000, count=10_799, name=name)
    await world.fire(NOW + AHEAD_MS, name)


async def test_a_reset_is_asked_for_once_and_the_leader_carries_it_out(client: Client, world: World) -> None:
    await ahead(client, world)
    world.clock.now = WallMs(NOW + 5_500)
    asked = await post(client, RESET, {"from": "now"})
    assert (asked["rev"], world.schedule()["reset_at_ms"]) == (2, NOW + 5_500)
    assert asked["warnings"] == ["the leader is about to reset it"]
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


async def test_what_a_reset_can_not_do_is_refused(client: Client, world: World) -> None:
    await ahead(client, world)
    check_problem(await client.post(RESET, json={"from": NOW_TEXT}), 422)
    check_problem(await client.post(RESET, headers={"if-match": '"7"'}), 412)
    check_problem(await client.post("/v1/schedules/nothing/reset"), 404)
    await post(client, "/v1/schedules/tick/pause")
    refused = check_problem(await client.post(RESET), 409)
    assert "resume it before the reset" in refused["detail"]
    # And the remedy that is named does both.
    [warning] = (await get(client, "/v1/schedules/tick"))["warnings"]
    assert "hascheduler schedule resume tick && hascheduler schedule reset tick --from now" in warning
    await post(client, "/v1/schedules/tick/resume")
    await post(client, RESET)
    assert world.schedule()["reset_at_ms"] == NOW
