"""What a schedule becomes on its way in, and how it is shown."""

from typing import Any

import httpx

from hascheduler.model.collection import Collection
from hascheduler.model.verdict import Verdict
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import DEFAULT_NARROWING, NOW_TEXT, TICK, check_problem, create, get

NOTHING_COUNTED = {
    "fired": 0, "skipped": 0, "missed": 0, "coalesced": 0, "paused": 0, "excluded": 0, "throttled": 0, "unstorable": 0,
}  # fmt: skip


async def test_a_schedule_is_stored_with_its_defaults_and_shown(client: httpx.AsyncClient, world: World) -> None:
    answer = await client.post("/v1/schedules", json=TICK)
    assert answer.status_code == 201
    assert answer.headers["location"] == "/v1/schedules/tick"
    assert world.schedule() == {
        "_id": "tick",
        "v": 1,
        "rev": 1,
        "trigger": {"type": "interval", "every_ms": 1000, "anchor_ms": NOW},
        "since_ms": NOW,
        "past": [],
        "policy": {
            "grace_ms": 60_000,
            "catch_up": "latest",
            "catch_up_max": 1_000,
            "overlap": "allow",
            "pause_after_failures": None,
        },
        "paused_at_ms": None,
        "paused_because": None,
        "job": {
            "definition": "log",
            "target": "tick",
            "tenant": "default",
            "lane": "default",
            "fairness_key": "default",
            "priority": 5,
            "mode": "queued",
            "resources": None,
        },
        "payload": None,
        "render": False,
        "labels": {},
        "created_at_ms": NOW,
        "cursor_ms": NOW,
        "tally": [0, 0, 0, 0, 0, 0],
        "failures": 0,
        "throttled": 0,
    }
    shown = {
        "name": "tick",
        "rev": 1,
        "trigger": {"type": "interval", "every": "1s", "anchor": NOW_TEXT, **DEFAULT_NARROWING},
        "misfire": {"grace": "1m", "catch_up": "latest", "limit": 1000},
        "overlap": "allow",
        "pause_after_failures": None,
        "job": {
            "definition": "log",
            "target": "tick",
            "payload": None,
            "render": False,
            "priority": 5,
            "tenant": "default",
            "fairness_key": "default",
            "lane": "default",
            "mode": "queued",
            "expires_in": None,
            "resources": None,
        },
        "jobs": None,
        "labels": {},
        "created_at": NOW_TEXT,
        "paused": False,
        "paused_at": None,
        "paused_because": None,
        "last_nominal_at": None,
        "next_at": "2030-01-01T00:00:01.000Z",
        "next_due_at": "2030-01-01T00:00:01.000Z",
        "ahead_until": None,
        "counts": NOTHING_COUNTED,
        "failures_in_a_row": 0,
        "warnings": [],
    }
    assert answer.json() == shown
    assert await get(client, "/v1/schedules/tick") == shown
    assert await get(client, "/v1/schedules") == {"items": [shown], "next": None, "unreadable": []}


async def test_every_field_of_a_schedule_is_stored(client: httpx.AsyncClient) -> None:
    payload = {"a.b": [1, 2.5, None, True, "$x", {"": "zoë \U0001f600"}], "n": -(2**63)}
    body: dict[str, Any] = {
        "name": "one.day",
        "trigger": {"type": "once", "at": "2030-06-01T12:00:00+02:00", "jitter": "1h"},
        "misfire": {"grace": "0s", "catch_up": "all", "limit": 7},
        "overlap": "cancel_running",
        "pause_after_failures": 3,
        "job": {
            "definition": "log",
            "target": "ünïcode: target",
            "payload": payload,
            "render": False,
            "priority": 10,
            "tenant": "acme",
            "fairness_key": "",
            "lane": "slow",
            "mode": "on_demand",
            "expires_in": None,
            "resources": {"gpu": 1, "cpu": 2},
        },
        "labels": {"team": "a b"},
    }
    shown = (await client.post("/v1/schedules", json=body)).json()
    once = {"type": "once", "at": "2030-06-01T10:00:00.000Z", **DEFAULT_NARROWING, "jitter": "1h"}
    assert {name: shown[name] for name in body} == {**body, "trigger": once}
    assert shown["next_at"] == "2030-06-01T10:00:00.000Z"
    assert "2030-06-01T10:00:00.000Z" <= shown["next_due_at"] <= "2030-06-01T11:00:00.000Z"


async def test_a_schedule_may_be_created_paused(client: httpx.AsyncClient) -> None:
    shown = await create(client, paused=True)
    assert (shown["paused"], shown["paused_at"], shown["paused_because"]) == (True, NOW_TEXT, None)
    assert (shown["next_at"], shown["next_due_at"]) == (None, None)


async def test_a_taken_name_is_a_conflict(client: httpx.AsyncClient, world: World) -> None:
    await create(client)
    before = world.everything()
    answer = await client.post("/v1/schedules", json={**TICK, "trigger": {"type": "interval", "every": 5}})
    check_problem(answer, 409)
    assert world.everything() == before


async def test_the_leaders_decisions_are_shown(client: httpx.AsyncClient, world: World) -> None:
    await create(client)
    await world.pass_over(Verdict.MISSED, NOW + 1_000, NOW + 2_000, count=2)
    await world.fire(NOW + 3_000)
    await world.count_failures(4)
    shown = await get(client, "/v1/schedules/tick")
    assert shown["last_nominal_at"] == "2030-01-01T00:00:03.000Z"
    assert shown["next_at"] == "2030-01-01T00:00:04.000Z"
    assert shown["counts"] == {**NOTHING_COUNTED, "fired": 1, "missed": 2}
    assert (shown["failures_in_a_row"], shown["rev"]) == (4, 1)


async def test_next_at_is_a_time_that_fires(client: httpx.AsyncClient, world: World) -> None:
    window = {"from": "2030-01-01T00:00:01Z", "to": "2030-01-01T00:00:05Z"}
    shown = await create(client, trigger={**TICK["trigger"], "exclude": [window], "max_fires": 1})
    assert shown["next_at"] == "2030-01-01T00:00:05.000Z"
    await world.fire(NOW + 5_000)
    assert (await get(client, "/v1/schedules/tick"))["next_at"] is None


async def test_a_deleted_schedule_is_gone(client: httpx.AsyncClient) -> None:
    await create(client)
    assert (await client.delete("/v1/schedules/tick")).status_code == 204
    check_problem(await client.delete("/v1/schedules/tick"), 404)
    check_problem(await client.get("/v1/schedules/tick"), 404)


async def test_pages_follow_each_other_without_gap_or_overlap(client: httpx.AsyncClient) -> None:
    names = [f"s{n}" for n in range(7)]
    for name in names:
        await create(client, name=name)
    seen, after = [], None
    while True:
        query = {"limit": "3"} | ({"after": after} if after else {})
        page = (await client.get("/v1/schedules", params=query)).json()
        seen += [item["name"] for item in page["items"]]
        after = page["next"]
        if after is None:
            break
    assert seen == names


async def test_a_label_filter_picks_the_schedules_with_all_labels(client: httpx.AsyncClient) -> None:
    labelled = {"a": {"team": "x", "tier": ""}, "b": {"team": "x"}, "c": {"team": "y=z"}, "d": {}}
    for name, labels in labelled.items():
        await create(client, name=name, labels=labels)

    async def found(query: str) -> list[str]:
        return [item["name"] for item in (await get(client, f"/v1/schedules?{query}"))["items"]]

    assert await found("label=team=x") == ["a", "b"]
    assert await found("label=team=x&label=tier=") == ["a"]
    assert await found("label=team=y=z") == ["c"]
    assert await found("label=team=y") == []
    assert await found("label=team=x&after=a") == ["b"]
    assert await found("") == ["a", "b", "c", "d"]


async def test_a_document_that_cannot_be_read_does_not_hide_the_others_and_a_replacement_repairs_it(
    client: httpx.AsyncClient, world: World
) -> None:
    await create(client)
    breaks: dict[str, dict[str, Any]] = {
        "no-such-trigger": {"trigger": {"type": "sunrise"}},
        "no-such-hour": {"trigger": {"type": "cron", "expression": "0 99 * * *", "timezone": "UTC"}},
        "no-job": {"job": None},
        "no-past": {"past": "long ago"},
        "no-cursor": {"cursor_ms": "x"},
        "no-counts": {"tally": [1]},
        "no-policy": {"policy": {"overlap": "sometimes"}},
    }
    for name, fields in breaks.items():
        await create(client, name=name)
        world.rewrite(Collection.SCHEDULES, name, **fields)
    page = await get(client, "/v1/schedules")
    assert [item["name"] for item in page["items"]] == ["tick"]
    assert {one["id"] for one in page["unreadable"]} == set(breaks)
    for name in breaks:
        check_problem(await client.get(f"/v1/schedules/{name}"), 409)
        check_problem(await client.patch(f"/v1/schedules/{name}", json={"overlap": "skip"}), 409)
        check_problem(await client.post(f"/v1/schedules/{name}/pause"), 409)
        repaired = await client.put(f"/v1/schedules/{name}", json={**TICK, "name": name})
        assert repaired.status_code == 200, repaired.text
        assert repaired.json() == {**await get(client, f"/v1/schedules/{name}"), "rev": 2}
        # No nominal time before the repair comes into force by it.
        assert repaired.json()["next_at"] == "2030-01-01T00:00:01.000Z"


async def test_a_repaired_schedule_stays_paused(client: httpx.AsyncClient, world: World) -> None:
    await create(client)
    world.rewrite(Collection.SCHEDULES, "tick", job="gone", paused_at_ms=NOW + 1)
    assert (await client.put("/v1/schedules/tick", json=TICK)).json()["paused"]


async def test_a_schedule_without_a_revision_can_only_be_deleted(client: httpx.AsyncClient, world: World) -> None:
    await create(client)
    world.rewrite(Collection.SCHEDULES, "tick", rev="seven")
    problem = check_problem(await client.put("/v1/schedules/tick", json={**TICK, "overlap": "skip"}), 409)
    assert "delete it and create it again" in problem["detail"]
    assert (await client.delete("/v1/schedules/tick")).status_code == 204
