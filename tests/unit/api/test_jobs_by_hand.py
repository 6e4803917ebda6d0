"""Jobs that are asked of a schedule: ``…/trigger``, a job now, and ``…/backfill``, one for each nominal time, once."""

import asyncio
from typing import Any

import pytest

from hascheduler.model.collection import Collection
from hascheduler.model.values.instants import WallMs, format_instant
from hascheduler.model.verdict import Verdict
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import NOW_TEXT, Client, check_problem, create, get, post

PATH = "/v1/schedules/tick/trigger"


async def test_a_job_is_made_as_a_fire_would_make_it(client: Client, world: World) -> None:
    job = {"definition": "log", "target": "demo", "payload": {"n": 1}, "priority": 9, "lane": "slow"}
    before = await create(client, job=job, labels={"team": "a"})
    answer = await client.post(PATH)
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
    first = await client.post(PATH, json={"payload": None}, headers=once)
    assert (first.status_code, "idempotency-replayed" in first.headers) == (201, False)
    before = world.everything()
    # The live job would forbid another one.
    again = await client.post(PATH, json={"payload": None}, headers=once)
    assert (again.status_code, again.headers["idempotency-replayed"], again.json()) == (200, "true", first.json())
    assert again.headers["location"] == first.headers["location"]
    for other in ({}, {"payload": 1}, {"payload": None, "overlap": "allow"}):
        assert "idempotency key 'k'" in check_problem(await client.post(PATH, json=other, headers=once), 409)["detail"]
    check_problem(await client.post("/v1/jobs", json={"definition": "log"}, headers=once), 409)
    assert world.everything() == before
    check_problem(await client.post(PATH, headers={"Idempotency-Key": "other"}), 409)
    check_problem(await client.post(PATH, headers={"Idempotency-Key": "a b"}), 422, "Idempotency-Key")


async def test_of_many_requests_at_once_under_one_key_one_makes_the_job(client: Client) -> None:
    await create(client, overlap="skip")
    answers = await asyncio.gather(*(client.post(PATH, headers={"Idempotency-Key": "k"}) for _ in range(9)))
    assert sorted(answer.status_code for answer in answers) == [200] * 8 + [201]
    assert len({answer.json()["id"] for answer in answers}) == 1


async def test_a_repeated_request_replaces_what_the_first_left_and_nothing_later(client: Client, world: World) -> None:
    await create(client, overlap="cancel_running")
    once = {"Idempotency-Key": "k"}
    before = await world.fire(NOW + 1_000)
    assert (await client.post(PATH, headers=once)).status_code == 201
    world.rewrite_job(before, state="pending", submitted_at_ms=NOW - 1_000)  # as if the first request had broken off
    later = await world.fire(NOW + 2_000)
    world.rewrite_job(later, submitted_at_ms=NOW + 1_000)
    assert (await client.post(PATH, headers=once)).status_code == 200
    assert (world.job(before)["state"], world.job(later)["state"]) == ("cancelled", "pending")


async def test_the_payload_is_rendered(client: Client) -> None:
    template = {"to": "${schedule} ${target} ${job_id}", "on": ["${nominal_date}", "${label.team} $$5 $HOME"]}
    job = {"definition": "log", "payload": template, "render": True, "target": "demo"}
    await create(client, job=job, labels={"team": "a"})
    filled = (await post(client, PATH, status=201))["payload"]
    assert filled == {"to": "tick demo trigger:tick:0001", "on": ["2030-01-01", "a $5 $HOME"]}
    other = await post(client, PATH, {"payload": "${nominal_ms} ${nominal_at}"}, 201)
    assert other["payload"] == f"{NOW} {NOW_TEXT}"
    problem = check_problem(await client.post(PATH, json={"payload": {"a": ["${day}"]}}), 422, "payload.a.0")
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
    answer = await client.post(PATH, json=body)
    if in_the_way is not None:
        assert ids[in_the_way] in check_problem(answer, 409)["detail"]
        assert world.everything() == before
        return
    assert answer.status_code == 201
    assert world.job(answer.json()["id"])["serial"] is (overlap != "allow")
    asked = [state_and_request(world, id) for id in ids]
    assert asked == [after_cancel(state) if overlap == "cancel_running" else (state, False) for state in states]


def state_and_request(world: World, id: str) -> tuple[str, bool]:
    job = world.job(id)
    return job["state"], job["cancel_requested_at_ms"] is not None


def after_cancel(state: str) -> tuple[str, bool]:
    return ("cancelled" if state in ("pending", "dispatched") else state, state == "running")


async def test_more_than_a_thousand_live_jobs_are_a_conflict(client: Client, world: World) -> None:
    await create(client)
    job: dict[str, Any] = world.job((await post(client, PATH, status=201))["id"])
    for n in range(1_000):
        world.database.insert(Collection.JOBS, {**job, "_id": f"trigger:tick:x{n}"})
    problem = check_problem(await client.post(PATH, json={"overlap": "cancel_running"}), 409)
    assert "1000" in problem["detail"]
    await post(client, PATH, {"overlap": "allow"}, 201)


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
