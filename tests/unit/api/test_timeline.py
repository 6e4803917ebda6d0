"""``/v1/timeline``: rows of schedules, what became of their times and which are to come."""

from typing import Any

import httpx
import pytest

from hascheduler.api.edge import Edge
from hascheduler.api.schedules import timeline as room
from hascheduler.model.collection import Collection
from hascheduler.model.job import JobState
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import Verdict
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import check_problem, create, get
from tests.unit.api.tokens import Guarded

PATH = "/v1/timeline"
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS


async def hourly(client: httpx.AsyncClient, *names: str, tenant: str = "default", **changes: Any) -> None:
    for name in names:
        trigger = {"type": "interval", "every": "1h", "anchor": "2030-01-01T00:00:00Z"}
        job = {"definition": "log", "tenant": tenant}
        await create(client, **{"name": name, "trigger": trigger, "job": job, **changes})


async def names(client: httpx.AsyncClient, query: str = "", limit: int = 1) -> list[str]:
    found: list[str] = []
    after = ""
    while True:
        answer = await get(client, f"{PATH}?limit={limit}&{query}{after}")
        found += [row["name"] for row in answer["items"]]
        if answer["next"] is None:
            return found
        after = f"&after={answer['next']}"


async def test_the_load_ahead_says_when_a_definition_needs_more_than_its_slots(
    client: httpx.AsyncClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await client.put("/v1/definitions/log", json={"max_concurrency": 2})).status_code == 201
    await hourly(client, "a", "b", "c")
    world.view.learned |= {("log", name): 15 * MINUTE_MS for name in "abc"}
    load = (await get(client, f"{PATH}?limit=1"))["load"]
    assert [(each["definition"], each["slots"]) for each in load["items"]] == [(None, 8), ("log", 2)]
    assert load["items"][1]["needed"][:8] == [0, 0, 0, 0, 0, 0, 3, 2]
    first = NOW + HOUR_MS
    assert load["too_much"][0] == {
        "from_ms": first,
        "to_ms": first + 10 * MINUTE_MS,
        "summary": "definition `log` needs 3 of its 2 slots",
    }
    await hourly(client, "d")
    assert (await get(client, PATH))["load"] == load, "all who ask within a minute share it"
    monkeypatch.setattr(world.clock, "mono_ms", lambda: MINUTE_MS)
    assert (await get(client, PATH))["load"] != load


async def test_a_row_has_what_was_and_what_is_to_come(client: httpx.AsyncClient, world: World) -> None:
    await hourly(client, "tick")
    world.view.learned["log", "tick"] = 90_000
    for hour, began_ms in ((1, 5_000), (2, 10 * MINUTE_MS), (5, None), (6, None)):
        world.clock.now = WallMs(NOW + hour * HOUR_MS)
        id = await world.fire(world.clock.now)
        if began_ms is not None:
            began_at_ms = world.clock.now + began_ms
            world.rewrite_job(id, state=JobState.SUCCEEDED.value, first_started_at_ms=began_at_ms)
        if hour == 2:
            await world.pass_over(Verdict.MISSED, NOW + 3 * HOUR_MS, NOW + 4 * HOUR_MS, count=2)
    world.rewrite_job(f"fire:tick:{NOW + 5 * HOUR_MS}", state=JobState.CANCELLED.value)
    world.clock.now = WallMs(NOW + 6 * HOUR_MS + 30 * MINUTE_MS)
    found = await get(client, f"{PATH}?behind=12h&ahead=3h")
    del found["load"]
    bucket_ms = 12 * HOUR_MS // room.BUCKETS
    from_ms = world.clock.now - 12 * HOUR_MS

    def bucket(hour: int) -> int:
        return (NOW + hour * HOUR_MS - from_ms) // bucket_ms

    assert found == {
        "items": [
            {
                "name": "tick",
                "paused": False,
                "expected_ms": 90_000,
                # That of 5:00 never began, and that of 6:00 waits for longer than the grace.
                "fired": [[bucket(1), 1, 0], [bucket(2), 1, 1], [bucket(5), 1, 0], [bucket(6), 1, 1]],
                "passed_over": [
                    {"verdict": "missed", "from_ms": NOW + 3 * HOUR_MS, "to_ms": NOW + 4 * HOUR_MS, "count": 2}
                ],
                "known_since_ms": from_ms,
                "ahead_ms": [NOW + hour * HOUR_MS for hour in (7, 8, 9)],
                "ahead_count": 3,
                "note": None,
            }
        ],
        "now": "2030-01-01T06:30:00.000Z",
        "from_ms": from_ms,
        "to_ms": world.clock.now + 3 * HOUR_MS,
        "bucket_ms": bucket_ms,
        "next": None,
    }


async def test_many_times_ahead_are_counted(client: httpx.AsyncClient) -> None:
    await hourly(client, "often", trigger={"type": "interval", "every": "1s"})
    await hourly(client, "seldom", trigger={"type": "interval", "every": "1s", "max_fires": 3})
    often, seldom = (await get(client, PATH))["items"]
    assert (often["ahead_ms"], often["ahead_count"]) == ([], 86_400)
    assert (len(seldom["ahead_ms"]), seldom["ahead_count"]) == (3, 3)


async def test_jitter_is_in_the_times_ahead_and_pauses_have_none(client: httpx.AsyncClient) -> None:
    trigger = {"type": "interval", "every": "12h", "anchor": "2030-01-01T00:00:00Z", "jitter": "1h"}
    await hourly(client, "jittered", trigger=trigger)
    await hourly(client, "stopped")
    assert (await client.post("/v1/schedules/stopped/pause")).status_code == 200
    jittered, stopped = (await get(client, PATH))["items"]
    assert [at_ms // (12 * HOUR_MS) for at_ms in jittered["ahead_ms"]] == [
        (NOW + hours * HOUR_MS) // (12 * HOUR_MS) for hours in (12, 24)
    ]
    assert any(at_ms % (12 * HOUR_MS) for at_ms in jittered["ahead_ms"])
    assert (stopped["paused"], stopped["ahead_ms"], stopped["ahead_count"]) == (True, [], 0)


async def test_a_day_of_a_clock_change(client: httpx.AsyncClient, world: World) -> None:
    world.clock.now = WallMs(NOW + 89 * DAY_MS - HOUR_MS)  # 2030-03-31, midnight in Paris
    trigger = {"type": "cron", "expression": "30 2 * * *", "timezone": "Europe/Paris"}
    await hourly(client, "gap", trigger=trigger)
    (row,) = (await get(client, PATH))["items"]
    assert row["ahead_ms"] == [NOW + 89 * DAY_MS + HOUR_MS]


async def test_more_than_is_read_is_not_shown_and_said(
    client: httpx.AsyncClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await hourly(client, "tick")
    for hour in range(1, 6):
        world.clock.now = WallMs(NOW + hour * HOUR_MS)
        await world.fire(world.clock.now)
    monkeypatch.setattr(room, "_RECORDS_OF_ONE_MAX", 2)
    (row,) = (await get(client, PATH))["items"]
    assert sum(fired for _, fired, _ in row["fired"]) == 2
    assert row["known_since_ms"] == NOW + 4 * HOUR_MS


async def test_pages_are_by_name_and_may_be_filtered(client: httpx.AsyncClient) -> None:
    await hourly(client, "Beta", "alpha", "gamma", labels={"team": "x"})
    await hourly(client, "delta", labels={"team": "y"})
    assert await names(client) == ["Beta", "alpha", "delta", "gamma"]
    assert await names(client, limit=200) == ["Beta", "alpha", "delta", "gamma"]
    assert await names(client, "text=ta") == ["Beta", "delta"]
    assert await names(client, "text=BETA") == ["Beta"]
    assert await names(client, "text=.*") == []
    assert await names(client, "label=team=x") == ["Beta", "alpha", "gamma"]
    assert await names(client, "label=team=x&text=a") == ["Beta", "alpha", "gamma"]
    assert await names(client, "label=team=y&text=beta") == []


async def test_what_can_not_be_read_is_left_out_and_a_missing_calendar_is_said(
    client: httpx.AsyncClient, world: World
) -> None:
    await hourly(client, "a", "b", labels={"team": "x"})
    world.rewrite(Collection.SCHEDULES, "a", trigger={"type": "never"})
    trigger = world.schedule("b")["trigger"]
    use = {"type": "calendars", "trigger": trigger, "only": ["gone"], "except": [], "timezone": None}
    world.rewrite(Collection.SCHEDULES, "b", trigger=use)
    for query in ("", "?label=team=x"):
        (row,) = (await get(client, f"{PATH}{query}"))["items"]
        assert row["name"] == "b"
        assert row["note"] == "it does not fire: there is no calendar 'gone'"


async def test_a_token_of_one_tenant_sees_its_own(app: Edge, world: World) -> None:
    guarded = Guarded(app, world)
    admin = await guarded.client()
    await hourly(admin, "a", tenant="acme", labels={"team": "x"})
    await hourly(admin, "b", tenant="beta", labels={"team": "x"})
    acme = await guarded.client("viewer", "acme")
    assert await names(acme) == await names(acme, "label=team=x") == ["a"]
    assert await names(acme, "text=b") == []
    assert (await guarded.showing(None).get(PATH)).status_code == 401
    check_problem(await (await guarded.client("worker")).get(PATH), 403)


@pytest.mark.parametrize(
    ("query", "where"),
    [
        ("behind=8d", "behind"),
        ("ahead=8d", "ahead"),
        ("ahead=-1h", "ahead"),
        ("limit=201", "limit"),
        ("limit=0", "limit"),
        ("text=", "text"),
        ("text=" + "x" * 129, "text"),
        ("label=team", "label.0"),
        ("after=" + "x" * 513, "after"),
        ("before=now", "before"),
    ],
)
async def test_what_makes_no_sense_is_refused(client: httpx.AsyncClient, query: str, where: str) -> None:
    check_problem(await client.get(f"{PATH}?{query}"), 422, where)


async def test_nothing_behind_and_nothing_ahead_is_an_answer(client: httpx.AsyncClient) -> None:
    await hourly(client, "tick")
    (row,) = (await get(client, f"{PATH}?behind=0&ahead=0"))["items"]
    assert (row["fired"], row["ahead_count"]) == ([], 0)
