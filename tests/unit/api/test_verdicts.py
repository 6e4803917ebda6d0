"""What became of each nominal time; and jobs that are asked of a schedule by ``…/trigger`` and ``…/backfill``."""

import asyncio
from typing import Any

import pytest

from hascheduler.model.collection import Collection
from hascheduler.model.values.instants import WallMs, format_instant
from hascheduler.model.verdict import Verdict
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import NOW_TEXT, TICK, Client, check_problem, create, get, pages, post
from tests.unit.api.tokens import Guarded

PATH = "/v1/schedules/tick/verdicts"


def at(seconds: int) -> WallMs:
    return WallMs(NOW + seconds * 1_000)


def text(seconds: int) -> str:
    return format_instant(at(seconds))


async def listed(client: Client, query: str = "") -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = (await get(client, f"{PATH}?{query}"))["items"]
    return items


def item(verdict: str, first: int, last: int | None = None, count: int = 1, **fields: Any) -> dict[str, Any]:
    last = first if last is None else last
    nothing_more = {"job": None, "job_state": None, "because_of": None, "into": None}
    return {
        "verdict": verdict, "nominal_at": text(first), "through_at": text(last), "count": count, **nothing_more,
        **fields,
    }  # fmt: skip


async def history(client: Client, world: World) -> str:
    """One of each verdict, and the id of the first job."""
    await create(client)
    job = await world.fire(at(1))
    await world.pass_over(Verdict.SKIPPED, at(2), because_of=job)
    await world.pass_over(Verdict.COALESCED, at(3), at(8), count=6)
    await world.fire(at(9))
    await world.pass_over(Verdict.MISSED, at(10), at(19), count=10)
    await world.pass_over(Verdict.PAUSED, at(20), at(29), count=10)
    await world.pass_over(Verdict.EXCLUDED, at(30), at(39), count=10)
    world.rewrite(Collection.JOBS, job, state="running")
    world.clock.now = at(39)
    return job


async def test_each_nominal_time_has_its_verdict_the_newest_first(client: Client, world: World) -> None:
    job = await history(client, world)
    answer = await get(client, PATH)
    assert answer == {
        "items": [
            item("excluded", 30, 39, 10),
            item("paused", 20, 29, 10),
            item("missed", 10, 19, 10),
            item("fired", 9, job=f"fire:tick:{at(9)}", job_state="pending"),
            item("coalesced", 3, 8, 6, into=text(9)),
            item("skipped", 2, because_of=job),
            item("fired", 1, job=job, job_state="running"),
        ],
        "counts": {
            "fired": 2, "skipped": 1, "missed": 10, "coalesced": 6, "paused": 10, "excluded": 10, "throttled": 0,
            "unstorable": 0,
        },
        "undecided": {"count": 0, "since": None, "because": None},
        "next": None,
    }  # fmt: skip


@pytest.mark.parametrize("limit", [1, 3])
async def test_pages_follow_each_other_without_gap_or_overlap(client: Client, world: World, limit: int) -> None:
    await history(client, world)
    assert await pages(client, PATH, limit=limit) == await listed(client)


async def test_the_fire_is_found_among_very_many(client: Client, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """More fires than one read covers, after a gap that is not the trigger's."""
    monkeypatch.setattr("hascheduler.api.schedules.verdicts._READ_AT_ONCE_MAX", 5)
    await create(client)
    await world.pass_over(Verdict.COALESCED, at(1), at(3), count=3)
    await world.pass_over(Verdict.SKIPPED, at(4), at(99), count=96)
    for second in range(100, 124):
        await world.fire(at(second))
    await world.pass_over(Verdict.COALESCED, at(1_300))
    await world.pass_over(Verdict.COALESCED, at(1_301))
    assert [one["into"] for one in await listed(client, "verdict=coalesced")] == [None, None, text(100)]
    await world.fire(at(1_400))
    into = [one["into"] for one in await listed(client, "verdict=coalesced")]
    assert into == [text(1_400), text(1_400), text(100)]


WINDOW = {**TICK["trigger"], "exclude": [{"from": text(10), "to": text(20)}]}
ONCE = {**TICK["trigger"], "max_fires": 1}
PAUSED = "at 5, pause, fire 1-5, at 20"
UNDECIDED: list[tuple[str, dict[str, Any], str, tuple[int, int | None, str | None]]] = [
    ("all that have passed", {}, "at 60", (60, 1, "due")),
    ("after a fire", {}, "at 60, fire 1", (59, 2, "due")),
    ("since a pause", {}, PAUSED, (15, 6, "paused")),
    ("since a pause that is over", {}, f"{PAUSED}, resume", (15, 6, "due")),
    ("since a pause, and later ones", {}, f"{PAUSED}, resume, at 21", (16, 6, "due")),
    ("before a pause", {}, "at 5, pause, at 20", (20, 1, "due")),
    ("of a pause that is over, during the next", {}, "pause, at 5, resume, pause, at 20", (20, 1, "due")),
    ("in a window", WINDOW, "fire 1-9, at 15", (6, 10, "excluded")),
    ("after a window", WINDOW, "fire 1-9, at 20", (11, 10, "due")),
    ("of the trigger before an edit", {}, "at 10, every 5, at 20", (12, 1, "due")),
    ("exhausted", ONCE, "fire 1, at 60", (0, None, None)),
    ("the leader's clock is ahead", {}, "miss 9, at 5", (0, None, None)),
]


async def lived(client: Client, world: World, life: str) -> None:
    for step in life.split(", "):
        word, _, numbers = step.partition(" ")
        first, _, last = numbers.partition("-")
        match word:
            case "at":
                world.clock.now = at(int(first))
            case "fire":
                for second in range(int(first), int(last or first) + 1):
                    await world.fire(at(second))
            case "miss":
                await world.pass_over(Verdict.MISSED, at(1), at(int(first)), count=int(first))
            case "every":
                await client.patch("/v1/schedules/tick", json={"trigger": {"every": f"{first}s"}})
            case _:
                await post(client, f"/v1/schedules/tick/{word}")


@pytest.mark.parametrize(("trigger", "life", "told"), [pytest.param(*row[1:], id=row[0]) for row in UNDECIDED])
async def test_undecided_times_are_told_with_the_first_of_them_and_what_they_wait_for(
    client: Client,
    world: World,
    trigger: dict[str, Any],
    life: str,
    told: tuple[int, int | None, str | None],
) -> None:
    await create(client, trigger=trigger or TICK["trigger"])
    await lived(client, world, life)
    count, since, because = told
    expected = {"count": count, "since": None if since is None else text(since), "because": because}
    assert (await get(client, f"{PATH}?limit=1"))["undecided"] == expected


OF_ALL = "/v1/verdicts"


async def history_of_two(client: Client, world: World) -> None:
    for name, tenant, team in (("a", "acme", "x"), ("b", "beta", "y")):
        await create(client, name=name, job={"definition": "log", "tenant": tenant}, labels={"team": team})
    for name, verdict, second in (("a", Verdict.MISSED, 1), ("b", Verdict.SKIPPED, 2), ("b", Verdict.MISSED, 3)):
        world.clock.now = WallMs(NOW + 10_000 * second)
        await world.pass_over(verdict, NOW + 1_000 * second, because_of=f"fire:{name}:1", name=name)


async def listed_of_all(client: Client, query: str = "") -> list[str]:
    return [f"{item['schedule']} {item['verdict']}" for item in await pages(client, OF_ALL, query)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["b missed", "b skipped", "a missed"]),
        ("verdict=missed&verdict=skipped&verdict=missed", ["b missed", "b skipped", "a missed"]),
        ("label=team=x", ["a missed"]),
        ("tenant=beta", ["b missed", "b skipped"]),
        ("text=B", ["b missed", "b skipped"]),
        ("since=2030-01-01T00:00:20Z", ["b missed", "b skipped"]),
        ("until=2030-01-01T00:00:20Z", ["a missed"]),
    ],
)
async def test_they_may_be_filtered(client: Client, world: World, query: str, expected: list[str]) -> None:
    await history_of_two(client, world)
    assert await listed_of_all(client, query) == expected


async def test_a_token_of_one_tenant_sees_its_own(guarded: Guarded, world: World) -> None:
    await history_of_two(await guarded.client(), world)
    acme = await guarded.client("viewer", "acme")
    assert await listed_of_all(acme) == ["a missed"]
    assert await listed_of_all(acme, "label=team=y") == []
    check_problem(await acme.get(f"{OF_ALL}?tenant=beta"), 403)
    assert (await guarded.showing(None).get(OF_ALL)).status_code == 401


TRIGGER = "/v1/schedules/tick/trigger"


async def test_a_job_is_made_as_a_fire_would_make_it(client: Client, world: World) -> None:
    job = {"definition": "log", "target": "demo", "payload": {"n": 1}, "priority": 9, "lane": "slow"}
    before = await create(client, job=job, labels={"team": "a"})
    answer = await client.post(TRIGGER)
    assert answer.status_code == 201
    shown = answer.json()
    assert shown["id"] == "trigger:tick:0001"
    assert answer.headers["location"] == "/v1/jobs/trigger:tick:0001"
    assert {name: shown[name] for name in job} == job
    assert (shown["schedule"], shown["labels"], shown["state"]) == ("tick", {"team": "a"}, "pending")
    assert (shown["submitted_at"], shown["nominal_at"]) == (NOW_TEXT, NOW_TEXT)
    assert await get(client, answer.headers["location"]) == shown
    assert await get(client, "/v1/schedules/tick") == before
    assert world.job(shown["id"])["serial"] is False


async def test_under_one_key_a_job_is_made_once(client: Client, world: World) -> None:
    await create(client, overlap="skip")
    once = {"Idempotency-Key": "k"}
    first = await client.post(TRIGGER, json={"payload": None}, headers=once)
    assert (first.status_code, "idempotency-replayed" in first.headers) == (201, False)
    before = world.everything()
    # The live job would forbid another one.
    again = await client.post(TRIGGER, json={"payload": None}, headers=once)
    assert (again.status_code, again.headers["idempotency-replayed"], again.json()) == (200, "true", first.json())
    assert again.headers["location"] == first.headers["location"]
    for other in ({}, {"payload": 1}, {"payload": None, "overlap": "allow"}):
        assert (
            "idempotency key 'k'" in check_problem(await client.post(TRIGGER, json=other, headers=once), 409)["detail"]
        )
    check_problem(await client.post("/v1/jobs", json={"definition": "log"}, headers=once), 409)
    assert world.everything() == before
    check_problem(await client.post(TRIGGER, headers={"Idempotency-Key": "other"}), 409)
    check_problem(await client.post(TRIGGER, headers={"Idempotency-Key": "a b"}), 422, "Idempotency-Key")


async def test_of_many_requests_at_once_under_one_key_one_makes_the_job(client: Client) -> None:
    await create(client, overlap="skip")
    answers = await asyncio.gather(*(client.post(TRIGGER, headers={"Idempotency-Key": "k"}) for _ in range(9)))
    assert sorted(answer.status_code for answer in answers) == [200] * 8 + [201]
    assert len({answer.json()["id"] for answer in answers}) == 1


async def test_a_repeated_request_replaces_what_the_first_left_and_nothing_later(client: Client, world: World) -> None:
    await create(client, overlap="cancel_running")
    once = {"Idempotency-Key": "k"}
    before = await world.fire(NOW + 1_000)
    assert (await client.post(TRIGGER, headers=once)).status_code == 201
    world.rewrite_job(before, state="pending", submitted_at_ms=NOW - 1_000)  # as if the first request had broken off
    later = await world.fire(NOW + 2_000)
    world.rewrite_job(later, submitted_at_ms=NOW + 1_000)
    assert (await client.post(TRIGGER, headers=once)).status_code == 200
    assert (world.job(before)["state"], world.job(later)["state"]) == ("cancelled", "pending")


async def test_the_payload_is_rendered(client: Client) -> None:
    template = {"to": "${schedule} ${target} ${job_id}", "on": ["${nominal_date}", "${label.team} $$5 $HOME"]}
    job = {"definition": "log", "payload": template, "render": True, "target": "demo"}
    await create(client, job=job, labels={"team": "a"})
    filled = (await post(client, TRIGGER, status=201))["payload"]
    assert filled == {"to": "tick demo trigger:tick:0001", "on": ["2030-01-01", "a $5 $HOME"]}
    other = await post(client, TRIGGER, {"payload": "${nominal_ms} ${nominal_at}"}, 201)
    assert other["payload"] == f"{NOW} {NOW_TEXT}"
    problem = check_problem(await client.post(TRIGGER, json={"payload": {"a": ["${day}"]}}), 422, "payload.a.0")
    assert "label.team" in problem["detail"]


async def live(world: World, states: list[str]) -> list[str]:
    """A fired job in each of ``states``, oldest first."""
    ids = []
    for n, state in enumerate(states):
        id = await world.fire(NOW + 1_000 * (n + 1))
        world.rewrite(Collection.JOBS, id, state=state)
        ids.append(id)
    return ids


OVERLAPS: list[tuple[str, list[str], int | None]] = [
    ("allow", ["running", "pending", "dispatched"], None),
    ("skip", ["succeeded", "failed", "cancelled"], None),
    ("skip", ["succeeded", "running"], 1),
    ("skip", ["dispatched", "pending"], 0),
    ("buffer_one", ["running"], None),
    ("buffer_one", ["running", "succeeded", "pending"], 2),
    ("cancel_running", ["running", "pending", "succeeded"], None),
]


@pytest.mark.parametrize("source", ["the request", "the schedule"])
@pytest.mark.parametrize("row", OVERLAPS, ids=[f"{row[0]} {row[1]}" for row in OVERLAPS])
async def test_the_overlap_policy_decides(
    client: Client, world: World, source: str, row: tuple[str, list[str], int | None]
) -> None:
    overlap, states, in_the_way = row
    await create(client, overlap=overlap if source == "the schedule" else "allow")
    ids = await live(world, states)
    before = world.everything()
    body = {"overlap": overlap} if source == "the request" else {}
    answer = await client.post(TRIGGER, json=body)
    if in_the_way is not None:
        assert ids[in_the_way] in check_problem(answer, 409)["detail"]
        assert world.everything() == before
        return
    assert answer.status_code == 201
    assert world.job(answer.json()["id"])["serial"] is (overlap != "allow")
    found = [(job["state"], job["cancel_requested_at_ms"] is not None) for job in map(world.job, ids)]
    replaced = dict.fromkeys(("pending", "dispatched"), ("cancelled", False)) | {"running": ("running", True)}
    changed = replaced if overlap == "cancel_running" else {}
    assert found == [changed.get(state, (state, False)) for state in states]


async def test_more_than_a_thousand_live_jobs_are_a_conflict(client: Client, world: World) -> None:
    await create(client)
    job: dict[str, Any] = world.job((await post(client, TRIGGER, status=201))["id"])
    for n in range(1_000):
        world.database.insert(Collection.JOBS, {**job, "_id": f"trigger:tick:x{n}"})
    problem = check_problem(await client.post(TRIGGER, json={"overlap": "cancel_running"}), 409)
    assert "1000" in problem["detail"]
    await post(client, TRIGGER, {"overlap": "allow"}, 201)


BACKFILL = "/v1/schedules/tick/backfill"
HOUR_MS = 3_600_000


def span(from_hours: float, to_hours: float, **fields: Any) -> dict[str, Any]:
    """Hours from now, mostly negative."""
    from_ms, to_ms = (round(NOW + hours * HOUR_MS) for hours in (from_hours, to_hours))
    return {"from": format_instant(from_ms), "to": format_instant(to_ms), **fields}


async def hourly(client: Client, **fields: Any) -> None:
    await create(client, trigger={"type": "interval", "every": "1h", **fields})


def id_of(hours: int, kind: str = "backfill") -> str:
    return f"{kind}:tick:{NOW + hours * HOUR_MS}"


async def test_a_time_that_may_still_fire_is_left_alone(client: Client, world: World) -> None:
    await hourly(client)
    await world.fire(NOW + HOUR_MS)
    world.clock.now = WallMs(NOW + 3 * HOUR_MS)
    answer = await post(client, BACKFILL, span(0, 3))
    assert answer == {
        "count": 4, "created": 1, "existing": 1, "undecided": 2, "jobs": [id_of(0), id_of(1, "fire")],
    }  # fmt: skip
    await world.fire(NOW + 2 * HOUR_MS)
    await world.pass_over(Verdict.MISSED, NOW + 3 * HOUR_MS)
    assert (await post(client, BACKFILL, span(0, 3)))["jobs"] == [
        id_of(0), id_of(1, "fire"), id_of(2, "fire"), id_of(3),
    ]  # fmt: skip


async def test_of_backfills_at_once_each_job_is_created_by_one(client: Client) -> None:
    await hourly(client)
    answers = await asyncio.gather(*(post(client, BACKFILL, span(-5, -1)) for _ in range(4)))
    assert sum(answer["created"] for answer in answers) == 5
    assert [(answer["count"], answer["created"] + answer["existing"]) for answer in answers] == [(5, 5)] * 4


async def test_as_many_as_fit_are_made_and_not_one_more(
    client: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hascheduler.api.schedules.backfill.BACKFILL_TIMES_MAX", 10)
    await create(client)
    before = world.everything()
    body = {"from": format_instant(NOW - 3_600_000), "to": format_instant(NOW)}
    problem = check_problem(await client.post(BACKFILL, json=body), 422, "to")
    assert "3601 nominal times" in problem["detail"]
    assert world.everything() == before
    body["to"] = problem["errors"][0]["expected"].split()[2].rstrip(",")
    answer = await post(client, BACKFILL, body)
    assert (answer["count"], answer["created"], len(answer["jobs"])) == (10, 10, 10)


BAD: list[tuple[dict[str, Any], str]] = [
    (span(-1, 0.1), "to"),
    (span(-1, -2), "to"),
    ({"from": "2001-09-09T01:46:39Z", "to": "2029-12-31T00:00:00Z"}, "from"),
    (span(-2, -1, overlap="skip"), "overlap"),
]


@pytest.mark.parametrize(("body", "path"), BAD, ids=[str(row[0]) for row in BAD])
async def test_bad_input_is_refused(client: Client, world: World, body: dict[str, Any], path: str) -> None:
    await hourly(client)
    before = world.everything()
    check_problem(await client.post(BACKFILL, json=body), 422, path)
    assert world.everything() == before
