"""``/v1/schedules``, ``:counts`` and ``/v1/timeline``: by name, state, last verdict, tenant and label, in pages."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from hascheduler.api.schedules import timeline as room
from hascheduler.model.collection import Collection
from hascheduler.model.job import JobState
from hascheduler.model.values.instants import MonoMs, WallMs
from hascheduler.model.verdict import Verdict
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import Client, check_problem, create, get, pages
from tests.unit.api.tokens import Guarded

SECOND: dict[str, Any] = {"type": "interval", "every": "1s"}
PAST_END = {**SECOND, "end_at": "2030-01-01T00:00:05Z"}


async def some(client: Client, world: World) -> None:
    """a is late; b was paused; c and d have no more times; e missed its last one; f skipped one, fired, and fails."""
    job, of_beta = {"definition": "log", "tenant": "acme"}, {"definition": "log", "tenant": "beta"}
    await create(client, name="a.nightly", job=job, labels={"team": "x"})
    await create(client, name="B-Nightly", job=job, labels={"team": "y=z"}, paused=True)
    await create(client, name="c-once", job=job, trigger={"type": "once", "at": "2030-01-01T00:00:05Z"})
    await create(client, name="d-ended", job=of_beta, trigger=PAST_END, labels={"team": "x"})
    await create(client, name="e", job=of_beta)
    await create(client, name="f", job=job, labels={"team": "x", "tier": ""})
    world.clock.now = WallMs(NOW + 61_500)
    for name in ("c-once", "d-ended"):
        await world.fire(NOW + 5_000, name)
    await world.pass_over(Verdict.MISSED, NOW + 1_000, NOW + 4_000, count=4, name="e")
    await world.pass_over(Verdict.SKIPPED, NOW + 1_000, because_of="fire:f:1", name="f")
    await world.fire(NOW + 2_000, "f")
    world.rewrite(Collection.SCHEDULES, "f", failures=2)


ALL = ["B-Nightly", "a.nightly", "c-once", "d-ended", "e", "f"]
ROWS: list[tuple[str, list[str]]] = [
    ("", ALL),
    ("text=night", ["B-Nightly", "a.nightly"]),
    ("text=(", []),
    ("state=paused", ["B-Nightly"]),
    ("state=ended", ["c-once", "d-ended"]),
    ("state=active&state=paused&state=ended", ALL),
    ("verdict=missed&verdict=skipped", ["e"]),
    ("tenant=beta&state=active", ["e"]),
    ("label=team=x", ["a.nightly", "d-ended", "f"]),
    ("label=team=x&state=active&text=nightly", ["a.nightly"]),
    ("label=team=x&label=tier=", ["f"]),
    ("failing=true", ["f"]),
    ("late=true", ["a.nightly"]),
    ("late=true&failing=true", []),
    ("late=true&label=team=x", ["a.nightly"]),
]


@pytest.mark.parametrize(("query", "expected"), ROWS)
async def test_schedules_are_listed_and_counted_by_what_is_asked_for(
    client: Client, world: World, query: str, expected: list[str]
) -> None:
    await some(client, world)
    for limit in (1, 2, 100):
        assert [item["name"] for item in await pages(client, "/v1/schedules", query, limit)] == expected
    states = {"B-Nightly": "paused", "c-once": "ended", "d-ended": "ended"}
    found = [states.get(name, "active") for name in expected]
    assert await get(client, f"/v1/schedules:counts?{query}") == {
        "matched": len(expected),
        "exact": True,
        **{state: found.count(state) for state in ("active", "paused", "ended")},
        "failing": "f" in expected,
        "late": "a.nightly" in expected,
    }


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("sort=name", ALL),
        ("sort=trouble", ["f", "a.nightly", "B-Nightly", "c-once", "d-ended", "e"]),
        ("sort=trouble&label=team=x", ["f", "a.nightly", "d-ended"]),
        ("sort=trouble&state=paused&state=active", ["f", "a.nightly", "B-Nightly", "e"]),
        ("sort=next", ["a.nightly", "f", "e", "B-Nightly", "c-once", "d-ended"]),
        ("sort=next&tenant=acme", ["a.nightly", "f", "B-Nightly", "c-once"]),
    ],
)
async def test_schedules_are_sorted_by_name_by_trouble_or_by_what_comes_next(
    client: Client, world: World, query: str, expected: list[str]
) -> None:
    await some(client, world)
    for limit in (1, 2, 100):
        assert [item["name"] for item in await pages(client, "/v1/schedules", query, limit)] == expected


async def test_pages_go_on_behind_a_schedule_that_is_gone(client: Client, world: World) -> None:
    await some(client, world)
    first = await get(client, "/v1/schedules?sort=trouble&limit=2")
    await client.delete("/v1/schedules/a.nightly")
    assert [item["late"] for item in first["items"]] == [False, True]
    rest = await get(client, f"/v1/schedules?sort=trouble&after={first['next']}")
    assert [item["name"] for item in rest["items"]] == ["B-Nightly", "c-once", "d-ended", "e"]


async def test_a_schedule_that_has_fired_is_late_no_more(client: Client, world: World) -> None:
    await some(client, world)

    async def late() -> list[str]:
        counted = (await get(client, "/v1/schedules:counts"))["late"]
        listed = (await get(client, "/v1/schedules"))["items"]
        found = [item["name"] for item in (await get(client, "/v1/schedules?late=true"))["items"]]
        assert found == [item["name"] for item in listed if item["late"]]
        assert counted == len(found)
        return found

    assert await late() == ["a.nightly"]
    await world.fire(NOW + 61_000, "a.nightly")
    assert await late() == []
    world.clock.now = WallMs(NOW + 200_000)
    assert await late() == ["a.nightly", "e", "f"]


async def test_more_than_can_be_sorted_by_their_next_times_are_refused(
    client: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await some(client, world)
    monkeypatch.setattr("hascheduler.api.schedules.selection.SORTED_MAX", 5)
    check_problem(await client.get("/v1/schedules?sort=next"), 422, "sort")
    assert len((await get(client, "/v1/schedules?sort=next&text=n"))["items"]) == 4
    check_problem(await client.get("/v1/schedules?sort=trouble&after=e"), 422, "after")


async def test_labels_of_so_many_are_looked_at_and_no_more(
    client: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await some(client, world)
    monkeypatch.setattr("hascheduler.api.schedules.selection.LABELS_READ_MAX", 2)
    monkeypatch.setattr("hascheduler.api.schedules.selection.LABELLED_MAX", 1)
    page = await get(client, "/v1/schedules?state=active&label=team=x")
    assert ([item["name"] for item in page["items"]], page["next"]) == (["a.nightly"], "e")
    page = await get(client, "/v1/schedules?state=active&label=team=x&after=e")
    assert ([item["name"] for item in page["items"]], page["next"]) == (["f"], None)
    assert not (await get(client, "/v1/schedules:counts?label=team=x"))["exact"]


async def test_the_last_verdict_is_looked_for_among_the_newest_decisions(
    client: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create(client, name="a")
    await create(client, name="b")
    for name, second in (("b", 0), ("a", 1)):
        world.clock.now = WallMs(NOW + 60_000 + second)
        await world.pass_over(Verdict.MISSED, NOW + 1_000, name=name)
    monkeypatch.setattr("hascheduler.api.schedules.selection.DECISIONS_MAX", 1)
    monkeypatch.setattr("hascheduler.api.schedules.selection._DECISIONS_AT_ONCE", 1)
    answer = await get(client, "/v1/schedules:counts?verdict=missed")
    assert (answer["matched"], answer["exact"]) == (1, False)
    assert [item["name"] for item in (await get(client, "/v1/schedules?verdict=missed"))["items"]] == ["a"]


async def test_a_replica_whose_mirror_is_not_complete_says_so(client: Client, world: World) -> None:
    await create(client)
    world.view.ready = False
    for path in ("/v1/schedules?text=t", "/v1/schedules:counts"):
        check_problem(await client.get(path), 503)
    assert len((await get(client, "/v1/schedules"))["items"]) == 1


@pytest.fixture
async def beta(guarded: Guarded, client: Client, world: World) -> AsyncIterator[Client]:
    async with await guarded.client("admin") as boss:
        await some(boss, world)
    async with await guarded.client("viewer", "beta") as viewer:
        yield viewer


async def test_a_token_of_one_tenant_finds_and_counts_its_own(beta: Client, world: World) -> None:
    for query in ("", "text=e", "tenant=beta", "state=active&state=ended"):
        assert [item["name"] for item in (await get(beta, f"/v1/schedules?{query}"))["items"]] == ["d-ended", "e"]
        assert (await get(beta, f"/v1/schedules:counts?{query}"))["matched"] == 2
    page = await get(beta, "/v1/schedules?text=e&limit=1")
    assert (page["items"][0]["name"], page["next"]) == ("d-ended", "d-ended")
    for path in ("/v1/schedules", "/v1/schedules:counts"):
        check_problem(await beta.get(f"{path}?tenant=acme"), 403, "tenant")
    world.rewrite(Collection.SCHEDULES, "e", job={**world.schedule("e")["job"], "tenant": "acme"})
    assert [item["name"] for item in (await get(beta, "/v1/schedules?text=e"))["items"]] == ["d-ended"]


RECENT = "/v1/schedules:recent"


async def test_the_last_times_of_several_schedules_come_with_their_jobs(beta: Client, client: Client) -> None:
    """The scene is that of `some`."""
    found = await get(client, f"{RECENT}?name=f&name=gone&name=e&name=f")
    fired = {"nominal_at": "2030-01-01T00:00:02.000Z", "outcome": "waiting", "count": 1, "late_ms": None}
    assert found["items"] == [
        {
            "name": "f",
            "times": [
                {**fired, "nominal_at": "2030-01-01T00:00:01.000Z", "outcome": "skipped", "job": None},
                {**fired, "job": f"fire:f:{NOW + 2_000}"},
            ],
            "error": None,
        },
        {
            "name": "e",
            "times": [
                {**fired, "nominal_at": "2030-01-01T00:00:01.000Z", "outcome": "missed", "count": 4, "job": None}
            ],
            "error": None,
        },
    ]
    assert [item["name"] for item in (await get(beta, f"{RECENT}?name=f&name=e"))["items"]] == ["e"]
    check_problem(await client.get(f"{RECENT}?{'&'.join(f'name=s{n}' for n in range(51))}"), 422, "name")


async def test_of_the_last_twenty_times_each_says_how_its_job_ended_and_the_newest_error(
    client: Client, world: World
) -> None:
    await create(client)
    states = [JobState.FAILED, JobState.FAILED, JobState.SUCCEEDED, JobState.RUNNING, JobState.DISPATCHED]
    for number in range(1, 26):
        id = await world.fire(NOW + number * 1_000)
        state = states[number - 21] if number > 20 else JobState.CANCELLED
        began = {} if state is JobState.DISPATCHED else {"first_started_at_ms": NOW + number * 1_000 + 250}
        world.rewrite_job(id, state=state.value, error=f"  \nValueError: no {number}\nat line 2", **began)
    world.clock.now = WallMs(NOW + 60_000)
    (item,) = (await get(client, f"{RECENT}?name=tick"))["items"]
    assert [time["outcome"] for time in item["times"]] == [
        *["cancelled"] * 15, "failed", "failed", "succeeded", "running", "waiting",
    ]  # fmt: skip
    assert [time["late_ms"] for time in item["times"]] == [*[250] * 19, None]
    assert item["error"] == "ValueError: no 22"


TIMELINE = "/v1/timeline"
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS


async def hourly(client: Client, *names: str, tenant: str = "default", **changes: Any) -> None:
    for name in names:
        trigger = {"type": "interval", "every": "1h", "anchor": "2030-01-01T00:00:00Z"}
        job = {"definition": "log", "tenant": tenant}
        await create(client, **{"name": name, "trigger": trigger, "job": job, **changes})


async def names(client: Client, query: str = "", limit: int = 1) -> list[str]:
    return [row["name"] for row in await pages(client, TIMELINE, query, limit)]


async def test_the_load_ahead_says_when_a_definition_needs_more_than_its_slots(client: Client, world: World) -> None:
    assert (await client.put("/v1/definitions/log", json={"max_concurrency": 2})).status_code == 201
    await hourly(client, "a", "b", "c")
    world.view.learned |= {("log", name): 15 * MINUTE_MS for name in "abc"}
    levels = {"pending": 0, "running": 5, "slots": 8, "replicas": 1}
    world.view.past.sample(MonoMs(world.view.past.until_ms + 20 * MINUTE_MS), {}, levels)
    load = (await get(client, f"{TIMELINE}?limit=1"))["load"]
    assert load["used"] == [5, 5]
    assert [(each["definition"], each["slots"]) for each in load["items"]] == [(None, 8), ("log", 2)]
    assert load["items"][1]["needed"][:8] == [0, 0, 0, 0, 0, 0, 3, 2]
    first = NOW + HOUR_MS
    assert load["too_much"][0] == {
        "from_ms": first,
        "to_ms": first + 10 * MINUTE_MS,
        "summary": "definition `log` needs 3 of its 2 slots",
    }
    await hourly(client, "d")
    assert (await get(client, TIMELINE))["load"] == load, "all who ask within a minute share it"
    world.clock.mono = MINUTE_MS
    assert (await get(client, TIMELINE))["load"] != load


async def test_a_row_has_what_was_and_what_is_to_come(client: Client, world: World) -> None:
    await hourly(client, "tick")
    world.view.learned["log", "tick"] = 90_000
    for hour, began_ms in ((1, 5_000), (2, 10 * MINUTE_MS), (5, None), (6, None)):
        world.clock.now = WallMs(NOW + hour * HOUR_MS)
        id = await world.fire(world.clock.now)
        if began_ms is not None:
            began_at_ms = world.clock.now + began_ms
            state = JobState.FAILED if hour == 2 else JobState.SUCCEEDED
            world.rewrite_job(id, state=state.value, first_started_at_ms=began_at_ms)
        if hour == 2:
            await world.pass_over(Verdict.MISSED, NOW + 3 * HOUR_MS, NOW + 4 * HOUR_MS, count=2)
    world.rewrite_job(f"fire:tick:{NOW + 5 * HOUR_MS}", state=JobState.CANCELLED.value)
    world.clock.now = WallMs(NOW + 6 * HOUR_MS + 30 * MINUTE_MS)
    found = await get(client, f"{TIMELINE}?behind=12h&ahead=3h")
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
                "fired": [[bucket(1), 1, 0, 0], [bucket(2), 1, 1, 1], [bucket(5), 1, 0, 0], [bucket(6), 1, 1, 0]],
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


async def test_many_times_ahead_are_counted(client: Client) -> None:
    await hourly(client, "often", trigger={"type": "interval", "every": "1s"})
    await hourly(client, "seldom", trigger={"type": "interval", "every": "1s", "max_fires": 3})
    often, seldom = (await get(client, TIMELINE))["items"]
    assert (often["ahead_ms"], often["ahead_count"]) == ([], 86_400)
    assert (len(seldom["ahead_ms"]), seldom["ahead_count"]) == (3, 3)


async def test_what_can_not_be_read_is_left_out_and_a_missing_calendar_is_said(client: Client, world: World) -> None:
    await hourly(client, "a", "b", labels={"team": "x"})
    world.rewrite(Collection.SCHEDULES, "a", trigger={"type": "never"})
    trigger = world.schedule("b")["trigger"]
    use = {"type": "calendars", "trigger": trigger, "only": ["gone"], "except": [], "timezone": None}
    world.rewrite(Collection.SCHEDULES, "b", trigger=use)
    for query in ("", "?label=team=x"):
        (row,) = (await get(client, f"{TIMELINE}{query}"))["items"]
        assert row["name"] == "b"
        assert row["note"] == "it does not fire: there is no calendar 'gone'"


async def test_a_token_of_one_tenant_sees_its_own(guarded: Guarded, world: World) -> None:
    admin = await guarded.client()
    await hourly(admin, "a", tenant="acme", labels={"team": "x"})
    await hourly(admin, "b", tenant="beta", labels={"team": "x"})
    acme = await guarded.client("viewer", "acme")
    assert await names(acme) == await names(acme, "label=team=x") == ["a"]
    assert await names(acme, "text=b") == []
    assert (await guarded.showing(None).get(TIMELINE)).status_code == 401
    check_problem(await (await guarded.client("worker")).get(TIMELINE), 403)
