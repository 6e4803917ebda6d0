"""``/v1/forecast``: buckets, peaks in words, and what a tenant sees of them."""

import asyncio
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from hascheduler.api.routing import forecasts as room
from hascheduler.dispatch.forecast.inputs import OpenSlots
from hascheduler.model.values.instants import WallMs
from tests.factories import make_definition
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import check_problem, create, get
from tests.unit.api.tokens import Guarded

PATH = "/v1/forecast"
COST_MS = 5 * 60_000


async def nightly(
    client: httpx.AsyncClient, world: World, count: int, tenant: str = "default", lane: str = "default"
) -> None:
    for number in range(count):
        name = f"{tenant}-{lane}-{number:02}"
        job = {"definition": "log", "tenant": tenant, "lane": lane}
        await create(client, name=name, trigger={"type": "cron", "expression": "0 3 * * *"}, job=job)
        world.view.learned["log", name] = COST_MS - number


async def test_41_jobs_at_3_for_16_slots(client: httpx.AsyncClient, world: World) -> None:
    world.view.slots = (OpenSlots(frozenset({"*"}), 16),)
    await nightly(client, world, 41)
    found = await get(client, f"{PATH}?ahead=6h&bucket=1h")
    assert (found["as_of"], found["until"], found["slots"]) == (
        "2030-01-01T00:00:00.000Z", "2030-01-01T06:00:00.000Z", 16
    )  # fmt: skip
    assert len(found["buckets"]) == 6
    assert found["buckets"][3] == {
        "at": "2030-01-01T03:00:00.000Z",
        "fires": 41,
        "other_fires": 0,
        "jobs": 41,
        "slots_wanted": 41,
        "waiting": 25,
        "wait_ms": 600_000,
    }
    (peak,) = found["peaks"]
    names = [schedule["name"] for schedule in peak.pop("schedules")]
    assert names == [f"default-default-{number}" for number in ("00", "01", "02", "03", "04")]
    assert peak == {
        "at": "2030-01-01T03:00:00.000Z",
        "until": "2030-01-01T03:10:00.000Z",
        "lasts_ms": 600_000,
        "jobs": 41,
        "waiting": 25,
        "slots": 16,
        "more_slots": 25,
        "limited_by": "slots",
        "definition": None,
        "summary": "41 jobs for 16 slots, about 10 minutes",
        "advice": "spread the schedules with `jitter`, or add 25 slots",
        "other_jobs": 36,
    }
    assert (found["paused"], found["left_out"], found["spread"]) == (None, 0, 0)


async def test_by_default_it_is_a_day_in_buckets_of_five_minutes(client: httpx.AsyncClient, world: World) -> None:
    world.clock.now = WallMs(NOW)
    found = await get(client, PATH)
    assert len(found["buckets"]) == 288
    assert found["peaks"] == []
    assert {bucket["jobs"] for bucket in found["buckets"]} == {0}


async def test_other_limits_are_told_in_their_own_words(client: httpx.AsyncClient, world: World) -> None:
    await world.definitions.put(make_definition("log", max_concurrency=1))
    await nightly(client, world, 3)
    (peak,) = (await get(client, PATH))["peaks"]
    assert (peak["limited_by"], peak["definition"]) == ("max_concurrency", "log")
    assert peak["summary"] == "3 jobs of log for 1 at a time, about 10 minutes"
    assert peak["advice"].startswith("raise `max_concurrency` of log")


async def test_what_no_processor_takes(client: httpx.AsyncClient, world: World) -> None:
    world.view.slots = ()
    await nightly(client, world, 1)
    found = await get(client, PATH)
    assert found["slots"] == 0
    (peak,) = found["peaks"]
    assert (peak["summary"], peak["until"]) == ("1 job that no live processor takes", None)


async def test_a_pause_of_everything_is_said(client: httpx.AsyncClient, world: World) -> None:
    await nightly(client, world, 1)
    assert (await client.post("/v1/cluster/pause", json={"because": "x", "schedules_only": True})).status_code == 200
    found = await get(client, PATH)
    assert found["paused"] == "schedules"
    assert sum(bucket["fires"] for bucket in found["buckets"]) == 1


async def test_a_tenant_and_a_lane_are_told_apart_from_the_others(client: httpx.AsyncClient, world: World) -> None:
    world.view.slots = (OpenSlots(frozenset({"*"}), 2),)
    await nightly(client, world, 3, "acme")
    await nightly(client, world, 2, "beta", "slow")
    await nightly(client, world, 1, "acme", "slow")

    async def told(query: str) -> tuple[int, int, list[str], int]:
        found: Any = await get(client, f"{PATH}?{query}")
        (peak,) = found["peaks"]
        bucket = next(each for each in found["buckets"] if each["jobs"])
        names = sorted(one["name"] for one in peak["schedules"])
        return bucket["fires"], bucket["other_fires"], names, peak["other_jobs"]

    assert await told("tenant=beta") == (2, 4, ["beta-slow-00", "beta-slow-01"], 4)
    assert await told("lane=slow") == (3, 3, ["acme-slow-00", "beta-slow-00", "beta-slow-01"], 3)
    assert await told("lane=slow&tenant=acme") == (1, 5, ["acme-slow-00"], 5)
    assert await told("tenant=nobody") == (0, 6, [], 6)
    assert world.view.forecasts == 1


async def test_a_token_of_one_tenant_sees_the_names_of_its_own(app: FastAPI, world: World) -> None:
    world.view.slots = (OpenSlots(frozenset({"*"}), 1),)
    guarded = Guarded(app, world)
    admin = await guarded.client()
    await nightly(admin, world, 2, "acme")
    await nightly(admin, world, 2, "beta")
    acme = await guarded.client("viewer", "acme")
    answer = await acme.get(PATH)
    assert answer.status_code == 200
    assert "beta" not in answer.text
    assert answer.json()["peaks"][0]["other_jobs"] == 2
    assert answer.json()["peaks"][0]["jobs"] == 4
    check_problem(await acme.get(f"{PATH}?tenant=beta"), 403)
    assert (await guarded.showing(None).get(PATH)).status_code == 401


@pytest.mark.parametrize(
    ("query", "where"),
    [
        ("ahead=8d", "ahead"),
        ("ahead=0", "ahead"),
        ("ahead=soon", "ahead"),
        ("bucket=10s", "bucket"),
        ("bucket=90s", "bucket"),
        ("bucket=2d", "bucket"),
        ("ahead=7d&bucket=1m", "bucket"),
        ("ahead=" + "9" * 500, "ahead"),
        ("bucket=nan", "bucket"),
        ("tenant=" + "x" * 257, "tenant"),
        ("horizon=1h", "horizon"),
    ],
)
async def test_what_makes_no_sense_is_refused(client: httpx.AsyncClient, query: str, where: str) -> None:
    check_problem(await client.get(f"{PATH}?{query}"), 422, where)


async def test_hostile_names_of_filters_cost_nothing_and_find_nothing(client: httpx.AsyncClient, world: World) -> None:
    await nightly(client, world, 1)
    for number in range(room._SHARES_MAX + 10):
        found = await get(client, f"{PATH}?ahead=1h&lane=%3Cscript%3E{number}")
        assert found["buckets"][0]["fires"] == 0
    assert world.view.forecasts == 1


async def test_an_old_forecast_is_made_again(client: httpx.AsyncClient, world: World) -> None:
    clock = _MovingClock()
    forecasts = room.Forecasts()
    for at_ms, made in ((0, 1), (room.FRESH_MS[room.DAY_MS], 1), (room.STALE_MS[room.DAY_MS], 2)):
        clock.mono = at_ms
        await forecasts.of(room.DAY_MS, None, None, world.view, clock)  # type: ignore[arg-type]  # a double
        assert world.view.forecasts == made
    await forecasts.of(room.WEEK_MS, None, None, world.view, clock)  # type: ignore[arg-type]
    assert world.view.forecasts == 3


async def test_it_is_kept_fresh_while_a_client_asks(client: httpx.AsyncClient, world: World) -> None:
    clock = _MovingClock()
    forecasts = room.Forecasts()
    await nightly(client, world, 1, "acme")
    await forecasts.of(room.DAY_MS, "acme", None, world.view, clock)  # type: ignore[arg-type]
    keeping = asyncio.create_task(forecasts.keep_fresh(world.view, clock))  # type: ignore[arg-type]
    try:
        clock.mono = room.FRESH_MS[room.DAY_MS]
        first, _, _ = await forecasts.of(room.DAY_MS, "acme", None, world.view, clock)  # type: ignore[arg-type]
        newest = first
        for _ in range(1_000):
            newest, _, _ = await forecasts.of(room.DAY_MS, "acme", None, world.view, clock)  # type: ignore[arg-type]
            if newest is not first:
                break
            await asyncio.sleep(0)
        assert newest is not first
        assert world.view.forecasts == 2
    finally:
        keeping.cancel()


async def test_one_that_fails_ends_nothing_and_is_made_when_it_is_asked_for(
    client: httpx.AsyncClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = _MovingClock()
    forecasts = room.Forecasts()
    await forecasts.of(room.DAY_MS, None, None, world.view, clock)  # type: ignore[arg-type]
    broken = asyncio.Event()

    def breaks(*_: object) -> None:
        broken.set()
        raise RuntimeError("a bug")

    monkeypatch.setattr(room, "make_forecast", breaks)
    clock.mono = room.FRESH_MS[room.DAY_MS]
    keeping = asyncio.create_task(forecasts.keep_fresh(world.view, clock))  # type: ignore[arg-type]
    try:
        await forecasts.of(room.DAY_MS, None, None, world.view, clock)  # type: ignore[arg-type]
        async with asyncio.timeout(10):
            await broken.wait()
        monkeypatch.undo()
        assert not keeping.done()
        found, _, _ = await forecasts.of(room.DAY_MS, None, None, world.view, clock)  # type: ignore[arg-type]
        assert found.slots == 4
    finally:
        keeping.cancel()


class _MovingClock:
    mono = 0

    def mono_ms(self) -> int:
        return self.mono

    def wall_ms(self) -> int:
        return NOW
