"""``…/backfill``: which nominal times get a job, and that none gets two."""

from typing import Any

import httpx
import pytest

from hascheduler.model.values.instants import WallMs, format_instant
from hascheduler.model.verdict import Verdict
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import TICK, check_problem, create, post

PATH = "/v1/schedules/tick/backfill"
HOUR_MS = 3_600_000


def span(from_hours: float, to_hours: float, **fields: Any) -> dict[str, Any]:
    """Hours from now, mostly negative."""
    from_ms, to_ms = (round(NOW + hours * HOUR_MS) for hours in (from_hours, to_hours))
    return {"from": format_instant(from_ms), "to": format_instant(to_ms), **fields}


async def hourly(client: httpx.AsyncClient, **fields: Any) -> None:
    await create(client, trigger={"type": "interval", "every": "1h", **fields})


def id_of(hours: int, kind: str = "backfill") -> str:
    return f"{kind}:tick:{NOW + hours * HOUR_MS}"


async def test_each_nominal_time_of_the_span_gets_a_job(client: httpx.AsyncClient, world: World) -> None:
    await hourly(client)
    ids = [id_of(-3), id_of(-2), id_of(-1)]
    answer = await post(client, PATH, span(-3, -1))
    assert answer == {"count": 3, "created": 3, "existing": 0, "undecided": 0, "jobs": ids}
    jobs = [world.job(id) for id in ids]
    assert [job["nominal_ms"] for job in jobs] == [NOW + hours * HOUR_MS for hours in (-3, -2, -1)]
    assert [job["schedule"] for job in jobs] == ["tick"] * 3
    assert all(job["serial"] for job in jobs)
    # They are as old as the request, in the order of their times.
    assert [(job["submitted_at_ms"], job["sequence"]) for job in jobs] == [(NOW, 0), (NOW, 1), (NOW, 2)]


async def test_a_repeat_creates_only_what_is_missing(client: httpx.AsyncClient, world: World) -> None:
    await hourly(client)
    await post(client, PATH, span(-2, -2))
    assert (await post(client, PATH, span(-3, -1)))["created"] == 2
    before = world.everything()
    answer = await post(client, PATH, span(-3, -1))
    assert (answer["count"], answer["created"], answer["existing"]) == (3, 0, 3)
    assert answer["jobs"] == [id_of(-3), id_of(-2), id_of(-1)]
    assert world.everything() == before


async def test_a_time_that_fired_has_its_job(client: httpx.AsyncClient, world: World) -> None:
    await hourly(client)
    await world.fire(NOW + HOUR_MS)
    await world.pass_over(Verdict.MISSED, NOW + 2 * HOUR_MS, NOW + 3 * HOUR_MS, count=2)
    world.clock.now = WallMs(NOW + 3 * HOUR_MS)
    answer = await post(client, PATH, span(1, 3))
    assert answer == {
        "count": 3, "created": 2, "existing": 1, "undecided": 0, "jobs": [id_of(1, "fire"), id_of(2), id_of(3)],
    }  # fmt: skip


async def test_a_time_that_may_still_fire_is_left_alone(client: httpx.AsyncClient, world: World) -> None:
    await hourly(client)
    await world.fire(NOW + HOUR_MS)
    world.clock.now = WallMs(NOW + 3 * HOUR_MS)
    answer = await post(client, PATH, span(0, 3))
    assert answer == {
        "count": 4, "created": 1, "existing": 1, "undecided": 2, "jobs": [id_of(0), id_of(1, "fire")],
    }  # fmt: skip
    await world.fire(NOW + 2 * HOUR_MS)
    await world.pass_over(Verdict.MISSED, NOW + 3 * HOUR_MS)
    assert (await post(client, PATH, span(0, 3)))["jobs"] == [
        id_of(0), id_of(1, "fire"), id_of(2, "fire"), id_of(3),
    ]  # fmt: skip


async def test_the_triggers_that_were_in_force_decide_what_may_still_fire(
    client: httpx.AsyncClient, world: World
) -> None:
    await hourly(client)
    world.clock.now = WallMs(NOW + 2 * HOUR_MS)
    half_hourly = {"type": "interval", "every": "30m", "anchor": format_instant(NOW)}
    await client.patch("/v1/schedules/tick", json={"trigger": half_hourly})
    world.clock.now = WallMs(NOW + 3 * HOUR_MS)
    answer = await post(client, PATH, span(0.5, 3, dry_run=True))
    # Until two hours ago only the full hours were in force.
    assert (answer["count"], answer["undecided"]) == (6, 4)
    assert answer["jobs"] == [f"backfill:tick:{NOW + half * HOUR_MS // 2}" for half in (1, 3)]


async def test_a_dry_run_gives_the_same_answer_and_makes_nothing(client: httpx.AsyncClient, world: World) -> None:
    await hourly(client)
    await post(client, PATH, span(-2, -2))
    before = world.everything()
    answer = await post(client, PATH, span(-3, 0, dry_run=True))
    assert world.everything() == before
    assert answer == await post(client, PATH, span(-3, 0))
    assert (answer["count"], answer["created"], answer["existing"]) == (4, 3, 1)


async def test_one_at_a_time_or_all_at_once(client: httpx.AsyncClient, world: World) -> None:
    await hourly(client)
    await post(client, PATH, span(-1, -1, overlap="allow"))
    await post(client, PATH, span(-2, -2, overlap="buffer_one"))
    assert [world.job(id_of(hours))["serial"] for hours in (-1, -2)] == [False, True]


NARROWED: list[tuple[dict[str, Any], list[int]]] = [
    ({"exclude": [{"from": "2029-12-31T21:00:00Z", "to": "2029-12-31T23:00:00Z"}]}, [-4, -1]),
    ({"max_fires": 1}, [-4, -3, -2, -1]),
    ({"start_at": "2029-12-31T22:00:00Z"}, [-2, -1]),
    ({"end_at": "2030-01-01T05:00:00Z"}, [-4, -3, -2, -1]),
    ({"jitter": "30m"}, [-4, -3, -2, -1]),
]


@pytest.mark.parametrize(("narrowing", "hours"), NARROWED, ids=[str(row[0]) for row in NARROWED])
async def test_all_bounds_of_the_trigger_apply_except_max_fires(
    client: httpx.AsyncClient, narrowing: dict[str, Any], hours: list[int]
) -> None:
    await hourly(client, **narrowing)
    assert (await post(client, PATH, span(-4, -0.5)))["jobs"] == [id_of(hour) for hour in hours]


async def test_a_span_without_nominal_times_makes_nothing(client: httpx.AsyncClient, world: World) -> None:
    await create(client, trigger={"type": "once", "at": "2031-01-01T00:00:00Z"})
    before = world.everything()
    assert await post(client, PATH, span(-3, 0)) == {
        "count": 0,
        "created": 0,
        "existing": 0,
        "undecided": 0,
        "jobs": [],
    }
    assert world.everything() == before


async def test_the_payload_is_rendered_for_each_time(client: httpx.AsyncClient, world: World) -> None:
    await create(client, trigger={"type": "interval", "every": "1h"}, job={
        "definition": "log", "payload": "${job_id} ${nominal_at}", "render": True,
    })  # fmt: skip
    await post(client, PATH, span(-1, -1))
    assert world.job(id_of(-1))["payload"] == f"{id_of(-1)} 2029-12-31T23:00:00.000Z"


async def test_a_paused_schedule_is_backfilled_too(client: httpx.AsyncClient) -> None:
    await create(client, trigger={"type": "interval", "every": "1h"}, paused=True)
    assert (await post(client, PATH, span(-1, 0)))["created"] == 2


async def test_as_many_as_fit_are_made_and_not_one_more(client: httpx.AsyncClient, world: World) -> None:
    await create(client)
    before = world.everything()
    body = {"from": format_instant(NOW - 3_600_000), "to": format_instant(NOW)}
    problem = check_problem(await client.post(PATH, json=body), 422, "to")
    assert "3601 nominal times" in problem["detail"]
    assert world.everything() == before
    body["to"] = problem["errors"][0]["expected"].split()[2].rstrip(",")
    answer = await post(client, PATH, body)
    assert (answer["count"], answer["created"], len(answer["jobs"])) == (1_000, 1_000, 1_000)


async def test_excluded_times_do_not_count_against_the_limit(client: httpx.AsyncClient) -> None:
    window = {"from": "2029-12-31T22:00:00Z", "to": "2029-12-31T23:59:00Z"}
    await create(client, trigger={**TICK["trigger"], "exclude": [window]})
    body = {"from": "2029-12-31T22:00:00Z", "to": format_instant(NOW), "dry_run": True}
    assert (await post(client, PATH, body))["count"] == 61
    body["from"] = "2029-12-31T21:00:00Z"
    assert "3661 nominal times" in check_problem(await client.post(PATH, json=body), 422, "to")["detail"]


async def test_many_jobs_beside_the_span_do_not_hide_those_in_it(client: httpx.AsyncClient, world: World) -> None:
    """An earlier trigger fired far more often; the jobs of its times are in the store beside those of the span."""
    await create(client)
    for n in range(1, 2_600):
        await world.fire(NOW + n * 1_000)
    await world.pass_over(Verdict.MISSED, NOW + 2_600_000, NOW + HOUR_MS, count=1_001)
    world.clock.now = WallMs(NOW + HOUR_MS)
    await client.patch("/v1/schedules/tick", json={"trigger": {"every": "10m"}})
    answer = await post(client, PATH, span(0, 1))
    kinds = [job.partition(":")[0] for job in answer["jobs"]]
    assert kinds == ["backfill", *["fire"] * 4, "backfill", "backfill"]
    assert await post(client, PATH, span(0, 1, dry_run=True)) == {**answer, "created": 0, "existing": 7}


BAD: list[tuple[dict[str, Any], str]] = [
    ({}, "from"),
    (span(-1, 0.1), "to"),
    (span(-1, -2), "to"),
    ({"from": "2001-09-09T01:46:39Z", "to": "2029-12-31T00:00:00Z"}, "from"),
    (span(-2, -1, overlap="skip"), "overlap"),
    (span(-2, -1, limit=7), "limit"),
]


@pytest.mark.parametrize(("body", "path"), BAD, ids=[str(row[0]) for row in BAD])
async def test_bad_input_is_refused(client: httpx.AsyncClient, world: World, body: dict[str, Any], path: str) -> None:
    await hourly(client)
    before = world.everything()
    check_problem(await client.post(PATH, json=body), 422, path)
    assert world.everything() == before
