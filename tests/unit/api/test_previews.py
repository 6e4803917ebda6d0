"""``…/preview``: the fires to come of a schedule, of a trigger that is not stored, and of an edit."""

from datetime import datetime
from typing import Any

import httpx

from hascheduler.model.values.instants import format_instant
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import TICK, create, get, post

PARIS = {"type": "cron", "expression": "30 2 * * *", "timezone": "Europe/Paris"}


def nominal(fires: list[dict[str, Any]]) -> list[str]:
    return [fire["nominal_at"] for fire in fires]


def seconds(*after_now: int) -> list[str]:
    return [format_instant(NOW + second * 1_000) for second in after_now]


async def test_a_preview_shows_the_next_fires(client: httpx.AsyncClient, world: World) -> None:
    await create(client)
    before = world.everything()
    answer = await get(client, "/v1/schedules/tick/preview?count=3")
    assert nominal(answer["fires"]) == seconds(1, 2, 3)
    assert answer["fires"][0] == {
        "nominal_at": "2030-01-01T00:00:01.000Z", "due_at": "2030-01-01T00:00:01.000Z",
        "local": "2030-01-01T00:00:01+00:00", "weekday": "Tue", "excluded": False, "note": None, "payload": None,
    }  # fmt: skip
    assert (answer["timezone"], answer["clock_changes"]) == ("UTC", [])
    assert len((await get(client, "/v1/schedules/tick/preview"))["fires"]) == 10
    assert world.everything() == before


async def test_an_expression_that_may_not_be_meant_is_warned_of_before_and_after_it_is_stored(
    client: httpx.AsyncClient,
) -> None:
    trigger = {"type": "cron", "expression": "*/15 * * * * *"}
    [warning] = (await post(client, "/v1/schedules/preview", {"trigger": trigger}))["warnings"]
    assert "fires each second of every 15th minute" in warning
    assert (await create(client, trigger=trigger))["warnings"] == [warning]
    assert (await get(client, "/v1/schedules/tick"))["warnings"] == [warning]
    edit = {"trigger": {"expression": "* * * * * */15"}}
    assert (await post(client, "/v1/schedules/tick/preview", edit))["warnings"] == []
    answer = await client.patch("/v1/schedules/tick", json=edit)
    assert (answer.status_code, answer.json()["warnings"]) == (200, [])


async def test_excluded_times_are_shown_as_such_and_do_not_use_up_the_fires(
    client: httpx.AsyncClient, world: World
) -> None:
    window = {"from": seconds(3)[0], "to": seconds(5)[0]}
    await create(client, trigger={**TICK["trigger"], "exclude": [window], "max_fires": 4})
    await world.fire(NOW + 1_000)
    answer = await get(client, "/v1/schedules/tick/preview")
    assert nominal(answer["fires"]) == seconds(2, 3, 4, 5, 6)
    assert [fire["excluded"] for fire in answer["fires"]] == [False, True, True, False, False]


async def test_jitter_follows_from_the_name(client: httpx.AsyncClient) -> None:
    trigger = {"type": "interval", "every": "1h", "anchor": seconds(0)[0], "jitter": "30m"}
    await create(client, trigger=trigger)
    stored = await get(client, "/v1/schedules/tick/preview")
    assert (await post(client, "/v1/schedules/preview", {"name": "tick", "trigger": trigger})) == stored
    other = await post(client, "/v1/schedules/preview", {"name": "tock", "trigger": trigger})
    assert nominal(other["fires"]) == nominal(stored["fires"])
    assert [fire["due_at"] for fire in other["fires"]] != [fire["due_at"] for fire in stored["fires"]]
    for fire in stored["fires"]:
        late = datetime.fromisoformat(fire["due_at"]) - datetime.fromisoformat(fire["nominal_at"])
        assert 0 <= late.total_seconds() <= 1_800
    shown = await get(client, "/v1/schedules/tick")
    assert shown["next_due_at"] == stored["fires"][0]["due_at"]


async def test_local_time_and_clock_changes_are_those_of_the_zone(client: httpx.AsyncClient, world: World) -> None:
    answer = await post(client, "/v1/schedules/preview?count=2", {"trigger": PARIS})
    assert answer["timezone"] == "Europe/Paris"
    assert [fire["local"] for fire in answer["fires"]] == ["2030-01-01T02:30:00+01:00", "2030-01-02T02:30:00+01:00"]
    assert [fire["weekday"] for fire in answer["fires"]] == ["Tue", "Wed"]
    gap, fold = answer["clock_changes"][:2]
    assert (gap["at"], gap["kind"]) == ("2030-03-31T01:00:00.000Z", "gap")
    assert (gap["offset_before"], gap["offset_after"]) == ("+01:00", "+02:00")
    assert gap["explanation"]
    assert "2030-03-31T03:00:00+02:00" in [fire["local"] for fire in gap["fires"]]
    assert (fold["at"], fold["kind"]) == ("2030-10-27T01:00:00.000Z", "fold")
    assert (fold["offset_before"], fold["offset_after"]) == ("+02:00", "+01:00")
    assert "2030-10-27T02:30:00+02:00" in [fire["local"] for fire in fold["fires"]]
    assert world.everything() == World().everything()


# Edits


async def preview_of(client: httpx.AsyncClient, patch: object, count: int = 3) -> dict[str, Any]:
    answer: dict[str, Any] = await post(client, f"/v1/schedules/tick/preview?count={count}", patch)
    return answer


async def test_a_preview_of_an_edit_shows_the_fires_that_it_adds_and_removes(
    client: httpx.AsyncClient, world: World
) -> None:
    await create(client, trigger={"type": "interval", "every": "2s"})
    before = world.everything()
    answer = await preview_of(client, {"trigger": {"every": "3s"}})
    assert nominal(answer["fires"]) == seconds(3, 6, 9)
    assert nominal(answer["removed"]) == seconds(2, 4, 8)
    assert nominal(answer["added"]) == seconds(3, 9)
    assert answer["until"] == seconds(9)[0]
    assert world.everything() == before


LOCAL = "${local_date} ${local_time} ${local_offset} ${nominal_date}"
MIDNIGHT = {"type": "cron", "expression": "0 0 * * *", "timezone": "Asia/Tokyo"}


async def test_a_preview_shows_the_payload_of_each_time(client: httpx.AsyncClient) -> None:
    job = {"definition": "log", "payload": {"day": LOCAL, "id": "${job_id}"}, "render": True}
    await create(client, trigger=MIDNIGHT, job=job)
    fires = (await get(client, "/v1/schedules/tick/preview?count=2"))["fires"]
    assert [fire["payload"]["day"] for fire in fires] == [
        "2030-01-02 00:00:00 +09:00 2030-01-01",
        "2030-01-03 00:00:00 +09:00 2030-01-02",
    ]
    assert fires[0]["payload"]["id"] == f"fire:tick:{NOW + 15 * 3_600_000}"
    edited = await post(client, "/v1/schedules/tick/preview?count=1", {"job": {"payload": "at ${local_time}"}})
    assert edited["fires"][0]["payload"] == "at 00:00:00"
    unfilled = await post(client, "/v1/schedules/tick/preview?count=1", {"job": {"render": False}})
    assert unfilled["fires"][0]["payload"] is None


async def test_a_preview_shows_the_payloads_of_several_jobs_by_ref(client: httpx.AsyncClient) -> None:
    jobs = [
        {"ref": "a", "definition": "log", "payload": "${local_date}", "render": True},
        {"ref": "b", "definition": "log", "payload": {"n": 1}, "depends_on": ["a"]},
    ]
    answer = await client.post("/v1/schedules", json={"name": "tick", "trigger": MIDNIGHT, "jobs": jobs})
    assert answer.status_code == 201
    [fire] = (await get(client, "/v1/schedules/tick/preview?count=1"))["fires"]
    assert fire["payload"] == {"a": "2030-01-02", "b": {"n": 1}}


async def test_large_payloads_are_shown_for_the_first_times_alone(client: httpx.AsyncClient) -> None:
    job = {"definition": "log", "payload": "x" * 200_000 + "${local_date}", "render": True}
    await create(client, job=job)
    fires = (await get(client, "/v1/schedules/tick/preview?count=1000"))["fires"]
    shown = [fire["payload"] is not None for fire in fires]
    assert 0 < sum(shown) < 50
    assert shown == sorted(shown, reverse=True)
