"""What a schedule becomes on its way in, and how it is shown."""

from typing import Any

import httpx

from tests.api.doubles import NOW, World

TICK: dict[str, Any] = {
    "name": "tick",
    "trigger": {"type": "interval", "every": "1s"},
    "job": {"definition": "log"},
}


async def test_a_schedule_is_stored_with_its_defaults_and_shown(client: httpx.AsyncClient, world: World) -> None:
    answer = await client.post("/v1/schedules", json=TICK)
    assert answer.status_code == 201
    assert answer.headers["location"] == "/v1/schedules/tick"
    assert world.schedules.documents.by_id["tick"] == {
        "_id": "tick",
        "rev": 1,
        "cursor_ms": NOW,
        "created_at_ms": NOW,
        "trigger": {"type": "interval", "every_ms": 1000, "anchor_ms": NOW},
        "job": {
            "definition": "log",
            "target": "tick",
            "tenant": "default",
            "lane": "default",
            "fairness_key": "default",
            "priority": 5,
            "mode": "queued",
        },
        "payload": None,
        "labels": {},
    }
    shown = {
        "name": "tick",
        "rev": 1,
        "trigger": {"type": "interval", "every": "1s", "anchor": "2030-01-01T00:00:00.000Z"},
        "job": {
            "definition": "log",
            "target": "tick",
            "payload": None,
            "priority": 5,
            "fairness_key": "default",
            "lane": "default",
            "mode": "queued",
        },
        "labels": {},
        "created_at": "2030-01-01T00:00:00.000Z",
        "last_nominal_at": None,
        "next_at": "2030-01-01T00:00:01.000Z",
    }
    assert answer.json() == shown
    assert (await client.get("/v1/schedules/tick")).json() == shown
    assert (await client.get("/v1/schedules")).json() == {"items": [shown], "next": None, "unreadable": []}


async def test_everything_that_can_be_said_is_kept(client: httpx.AsyncClient) -> None:
    payload = {"a.b": [1, 2.5, None, True, "$x", {"": "zoë \U0001f600"}], "n": -(2**63)}
    body = {
        "name": "one.day",
        "trigger": {"type": "once", "at": "2030-06-01T12:00:00+02:00"},
        "job": {
            "definition": "log",
            "target": "ünïcode: target",
            "payload": payload,
            "priority": 10,
            "fairness_key": "",
            "lane": "slow",
            "mode": "on_demand",
        },
        "labels": {"team": "a b"},
    }
    shown = (await client.post("/v1/schedules", json=body)).json()
    assert shown["trigger"] == {"type": "once", "at": "2030-06-01T10:00:00.000Z"}
    assert shown["job"] == body["job"]
    assert shown["labels"] == body["labels"]
    assert shown["next_at"] == "2030-06-01T10:00:00.000Z"


async def test_a_taken_name_is_a_conflict(client: httpx.AsyncClient, world: World) -> None:
    await client.post("/v1/schedules", json=TICK)
    answer = await client.post("/v1/schedules", json={**TICK, "trigger": {"type": "interval", "every": 5}})
    assert answer.status_code == 409
    assert world.writes == 1


async def test_a_replacement_keeps_the_anchor_unless_it_brings_one(client: httpx.AsyncClient, world: World) -> None:
    anchored = {"type": "interval", "every": "1m", "anchor": "2020-01-01T00:00:17Z"}
    await client.post("/v1/schedules", json={**TICK, "trigger": anchored})
    answer = await client.put("/v1/schedules/tick", json={"trigger": {"type": "interval", "every": "1h"}, **_job()})
    assert answer.status_code == 200
    assert answer.json()["trigger"] == {"type": "interval", "every": "1h", "anchor": "2020-01-01T00:00:17.000Z"}
    assert answer.json()["rev"] == 2
    moved = {**anchored, "anchor": "2021-01-01T00:00:00Z"}
    answer = await client.put("/v1/schedules/tick", json={"trigger": moved, **_job()})
    assert answer.json()["trigger"]["anchor"] == "2021-01-01T00:00:00.000Z"


async def test_an_interval_after_a_one_off_is_anchored_now(client: httpx.AsyncClient) -> None:
    once = {"type": "once", "at": "2031-01-01T00:00:00Z"}
    await client.post("/v1/schedules", json={**TICK, "trigger": once})
    answer = await client.put("/v1/schedules/tick", json=TICK)
    assert answer.json()["trigger"]["anchor"] == "2030-01-01T00:00:00.000Z"


async def test_a_one_off_that_has_passed_may_be_sent_again_but_not_changed(
    client: httpx.AsyncClient, world: World
) -> None:
    once = {"type": "once", "at": "2031-01-01T00:00:00Z"}
    await client.post("/v1/schedules", json={**TICK, "trigger": once})
    world.schedules.documents.by_id["tick"]["trigger"]["at_ms"] = NOW - 1000
    past = {"type": "once", "at": "2029-12-31T23:59:59Z"}
    assert (await client.put("/v1/schedules/tick", json={**TICK, "trigger": past})).status_code == 200
    earlier = {"type": "once", "at": "2029-12-31T23:59:58Z"}
    assert (await client.put("/v1/schedules/tick", json={**TICK, "trigger": earlier})).status_code == 422


async def test_a_replacement_that_loses_a_race_reads_again(client: httpx.AsyncClient, world: World) -> None:
    await client.post("/v1/schedules", json=TICK)
    world.schedules.lost_races = 2
    assert (await client.put("/v1/schedules/tick", json=TICK)).status_code == 200
    world.schedules.lost_races = 100
    assert (await client.put("/v1/schedules/tick", json=TICK)).status_code == 409


async def test_the_last_nominal_time_is_shown_once_there_is_one(client: httpx.AsyncClient, world: World) -> None:
    await client.post("/v1/schedules", json=TICK)
    stored = world.schedules.documents.by_id["tick"]
    stored["cursor_ms"] = NOW + 3000
    shown = (await client.get("/v1/schedules/tick")).json()
    assert shown["last_nominal_at"] == "2030-01-01T00:00:03.000Z"
    assert shown["next_at"] == "2030-01-01T00:00:04.000Z"
    stored["cursor_ms"] = NOW + 3001  # moved there by an edit, not by a fire
    assert (await client.get("/v1/schedules/tick")).json()["last_nominal_at"] is None


async def test_a_deleted_schedule_is_gone(client: httpx.AsyncClient) -> None:
    await client.post("/v1/schedules", json=TICK)
    assert (await client.delete("/v1/schedules/tick")).status_code == 204
    assert (await client.delete("/v1/schedules/tick")).status_code == 404
    assert (await client.get("/v1/schedules/tick")).status_code == 404


async def test_pages_follow_each_other_without_gap_or_overlap(client: httpx.AsyncClient) -> None:
    names = [f"s{n}" for n in range(7)]
    for name in names:
        await client.post("/v1/schedules", json={**TICK, "name": name})
    seen, after = [], None
    while True:
        query = {"limit": "3"} | ({"after": after} if after else {})
        page = (await client.get("/v1/schedules", params=query)).json()
        seen += [item["name"] for item in page["items"]]
        after = page["next"]
        if after is None:
            break
    assert seen == names


async def test_a_document_that_cannot_be_read_does_not_hide_the_others(client: httpx.AsyncClient, world: World) -> None:
    await client.post("/v1/schedules", json=TICK)
    await client.post("/v1/schedules", json={**TICK, "name": "broken"})
    world.schedules.documents.by_id["broken"]["trigger"] = {"type": "cron"}
    page = (await client.get("/v1/schedules")).json()
    assert [item["name"] for item in page["items"]] == ["tick"]
    assert page["unreadable"] == [
        {"id": "broken", "reason": "trigger.type: 'cron' is unknown; expected interval or once"}
    ]
    assert (await client.get("/v1/schedules/broken")).status_code == 500
    assert (await client.put("/v1/schedules/broken", json={**TICK, "name": "broken"})).status_code == 200
    assert (await client.get("/v1/schedules/broken")).status_code == 200


def _job() -> dict[str, Any]:
    return {"job": {"definition": "log"}}
