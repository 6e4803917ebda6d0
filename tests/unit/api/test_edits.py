"""PUT and PATCH of schedules: which fields are kept and which are replaced."""

from typing import Any

import httpx
import pytest

from hascheduler.model.values.instants import WallMs
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import DEFAULT_NARROWING, TICK, check_problem, create, get, patch

LOG = {"definition": "log"}


async def test_a_replacement_keeps_the_anchor_unless_it_brings_one(client: httpx.AsyncClient) -> None:
    anchored = {"type": "interval", "every": "1m", "anchor": "2020-01-01T00:00:17Z"}
    await create(client, trigger=anchored)
    answer = await client.put("/v1/schedules/tick", json={"trigger": {"type": "interval", "every": "1h"}, "job": LOG})
    assert answer.status_code == 200
    assert answer.json()["trigger"]["anchor"] == "2020-01-01T00:00:17.000Z"
    assert answer.json()["rev"] == 2
    moved = {**anchored, "anchor": "2021-01-01T00:00:00Z"}
    answer = await client.put("/v1/schedules/tick", json={"trigger": moved, "job": LOG})
    assert answer.json()["trigger"]["anchor"] == "2021-01-01T00:00:00.000Z"


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
    client: httpx.AsyncClient, world: World, trigger: dict[str, Any], earlier: dict[str, Any]
) -> None:
    await create(client, trigger=trigger)
    world.clock.now = WallMs(NOW + 2 * 3_600_000)
    again = await client.put("/v1/schedules/tick", json={**TICK, "trigger": trigger, "overlap": "skip"})
    assert again.status_code == 200, again.text
    refused = await client.put("/v1/schedules/tick", json={**TICK, "trigger": earlier})
    check_problem(refused, 422, "trigger.end_at" if "end_at" in trigger else "trigger.at")


async def test_an_edit_is_not_retroactive_and_loses_nothing(client: httpx.AsyncClient, world: World) -> None:
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


async def test_too_many_edits_without_a_leader_are_a_conflict(client: httpx.AsyncClient, world: World) -> None:
    await create(client)
    for n in range(32):
        world.clock.now = WallMs(world.clock.now + 60_000)
        await patch(client, {"trigger": {"every": f"{n + 2}s"}})
    world.clock.now = WallMs(world.clock.now + 60_000)
    problem = check_problem(await client.patch("/v1/schedules/tick", json={"trigger": {"every": "1m"}}), 409)
    assert "leader" in problem["detail"]


async def test_a_replacement_leaves_a_pause_alone(client: httpx.AsyncClient) -> None:
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
    client: httpx.AsyncClient, patch_body: dict[str, Any], changed: dict[str, Any]
) -> None:
    before = await create(
        client,
        misfire={"grace": "5m", "catch_up": "all", "limit": 9},
        pause_after_failures=2,
        labels={"team": "a"},
    )
    shown = await patch(client, patch_body)
    assert shown == {**before, **changed, "rev": 2 if changed else 1}


async def test_a_trigger_of_another_type_replaces_the_stored_one(client: httpx.AsyncClient) -> None:
    await create(client, trigger={**TICK["trigger"], "jitter": "200ms", "max_fires": 9})
    shown = await patch(client, {"trigger": {"type": "cron", "expression": "0 3 * * *", "jitter": None}})
    assert shown["trigger"] == {"type": "cron", "expression": "0 3 * * *", "timezone": "UTC", **DEFAULT_NARROWING}
    check_problem(
        await client.patch("/v1/schedules/tick", json={"trigger": {"type": "interval"}}), 422, "trigger.every"
    )


async def test_a_patch_merges_into_the_payload_too(client: httpx.AsyncClient) -> None:
    await create(client, job={**LOG, "payload": {"a": {"b": 1, "c": 2}, "d": [1, 2]}, "target": "x"})
    shown = await patch(client, {"job": {"payload": {"a": {"b": None, "e": True}, "d": [3]}, "target": None}})
    assert shown["job"]["payload"] == {"a": {"c": 2, "e": True}, "d": [3]}
    assert shown["job"]["target"] == "tick"
    assert (await patch(client, {"job": {"payload": None}}))["job"]["payload"] is None


@pytest.mark.parametrize(("old", "new"), [(1, True), (1, 1.0), (0, False), ({"a": [1]}, {"a": [True]})])
async def test_values_that_only_python_calls_equal_are_a_change(
    client: httpx.AsyncClient, old: object, new: object
) -> None:
    await create(client, job={**LOG, "payload": old})
    assert (await patch(client, {"job": {"payload": new}}))["rev"] == 2


BAD_PATCHES: list[tuple[dict[str, Any], str]] = [
    ({"trigger": None}, "trigger"),
    ({"trigger": {"every": "50ms"}}, "trigger.every"),
    ({"trigger": {"expression": "* * * * *"}}, "trigger.expression"),
    ({"job": {"priority": 11}}, "job.priority"),
    ({"job": {"render": True, "payload": {"x": ["${nothing}"]}}}, "job.payload.x.0"),
    ({"labels": {"a b": "c"}}, "labels.a b"),
    ({"rev": 7}, "rev"),
]


@pytest.mark.parametrize(("body", "path"), BAD_PATCHES, ids=[str(row[0]) for row in BAD_PATCHES])
async def test_a_patch_is_checked_like_a_replacement(
    client: httpx.AsyncClient, world: World, body: dict[str, Any], path: str
) -> None:
    await create(client)
    before = world.everything()
    check_problem(await client.patch("/v1/schedules/tick", json=body), 422, path)
    assert world.everything() == before
