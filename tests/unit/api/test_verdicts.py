"""``…/verdicts``: what became of each nominal time, and which are undecided."""

from typing import Any

import httpx
import pytest

from hascheduler.model.collection import Collection
from hascheduler.model.values.instants import WallMs, format_instant
from hascheduler.model.verdict import Verdict
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import TICK, create, get, post

PATH = "/v1/schedules/tick/verdicts"


def at(seconds: int) -> WallMs:
    return WallMs(NOW + seconds * 1_000)


def text(seconds: int) -> str:
    return format_instant(at(seconds))


async def listed(client: httpx.AsyncClient, query: str = "") -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = (await get(client, f"{PATH}?{query}"))["items"]
    return items


def item(verdict: str, first: int, last: int | None = None, count: int = 1, **fields: Any) -> dict[str, Any]:
    last = first if last is None else last
    nothing_more = {"job": None, "job_state": None, "because_of": None, "into": None}
    return {
        "verdict": verdict,
        "nominal_at": text(first),
        "through_at": text(last),
        "count": count,
        **nothing_more,
        **fields,
    }


async def history(client: httpx.AsyncClient, world: World) -> str:
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


async def test_each_nominal_time_has_its_verdict_the_newest_first(client: httpx.AsyncClient, world: World) -> None:
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
            "fired": 2,
            "skipped": 1,
            "missed": 10,
            "coalesced": 6,
            "paused": 10,
            "excluded": 10,
            "throttled": 0,
            "unstorable": 0,
        },
        "undecided": {"count": 0, "since": None, "because": None},
        "next": None,
    }


@pytest.mark.parametrize("limit", range(1, 9))
async def test_pages_follow_each_other_without_gap_or_overlap(
    client: httpx.AsyncClient, world: World, limit: int
) -> None:
    await history(client, world)
    whole = await listed(client)
    seen, after = [], ""
    while True:
        page = await get(client, f"{PATH}?limit={limit}{after}")
        seen += page["items"]
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    assert seen == whole


async def test_verdicts_may_be_filtered(client: httpx.AsyncClient, world: World) -> None:
    await history(client, world)
    whole = await listed(client)
    for wanted in (["fired"], ["coalesced"], ["missed", "skipped"]):
        query = "&".join(f"verdict={verdict}" for verdict in wanted)
        assert await listed(client, query) == [one for one in whole if one["verdict"] in wanted]


async def test_an_earlier_schedule_by_the_same_name_is_another_one(client: httpx.AsyncClient, world: World) -> None:
    await history(client, world)
    await client.delete("/v1/schedules/tick")
    await create(client)
    answer = await get(client, PATH)
    assert (answer["items"], answer["counts"]["fired"]) == ([], 0)


# Into which fire


async def test_coalesced_times_go_into_the_next_fire_whatever_lies_between(
    client: httpx.AsyncClient, world: World
) -> None:
    await create(client)
    await world.pass_over(Verdict.COALESCED, at(1), at(3), count=3)
    await world.pass_over(Verdict.SKIPPED, at(4))
    await world.pass_over(Verdict.COALESCED, at(5), at(6), count=2)
    assert [one["into"] for one in await listed(client, "verdict=coalesced")] == [None, None]
    await world.pass_over(Verdict.EXCLUDED, at(7), at(8), count=2)
    for second in (9, 10):
        await world.fire(at(second))
    await world.pass_over(Verdict.COALESCED, at(11), at(12), count=2)
    for query in ("verdict=coalesced", "verdict=coalesced&verdict=fired", ""):
        coalesced = [one for one in await listed(client, query) if one["verdict"] == "coalesced"]
        assert [one["into"] for one in coalesced] == [None, text(9), text(9)], query


async def test_the_fire_is_found_among_very_many(client: httpx.AsyncClient, world: World) -> None:
    """More fires than one read covers, after a gap that is not the trigger's."""
    await create(client)
    await world.pass_over(Verdict.COALESCED, at(1), at(3), count=3)
    await world.pass_over(Verdict.SKIPPED, at(4), at(99), count=96)
    for second in range(100, 1_300):
        await world.fire(at(second))
    await world.pass_over(Verdict.COALESCED, at(1_300))
    await world.pass_over(Verdict.COALESCED, at(1_301))
    assert [one["into"] for one in await listed(client, "verdict=coalesced")] == [None, None, text(100)]
    await world.fire(at(1_400))
    into = [one["into"] for one in await listed(client, "verdict=coalesced")]
    assert into == [text(1_400), text(1_400), text(100)]


# Undecided times


async def undecided(client: httpx.AsyncClient) -> dict[str, Any]:
    answer: dict[str, Any] = (await get(client, f"{PATH}?limit=1"))["undecided"]
    return answer


async def test_undecided_times_are_due(client: httpx.AsyncClient, world: World) -> None:
    await create(client)
    world.clock.now = at(60)
    assert await undecided(client) == {"count": 60, "since": text(1), "because": "due"}
    await world.fire(at(1))
    assert await undecided(client) == {"count": 59, "since": text(2), "because": "due"}


async def test_times_since_a_pause_wait_for_the_resume(client: httpx.AsyncClient, world: World) -> None:
    await create(client)
    world.clock.now = at(5)
    await post(client, "/v1/schedules/tick/pause")
    for second in range(1, 6):
        await world.fire(at(second))
    world.clock.now = at(20)
    assert await undecided(client) == {"count": 15, "since": text(6), "because": "paused"}
    await post(client, "/v1/schedules/tick/resume")
    assert await undecided(client) == {"count": 15, "since": text(6), "because": "due"}
    world.clock.now = at(21)
    assert await undecided(client) == {"count": 16, "since": text(6), "because": "due"}


async def test_times_before_a_pause_are_due_whatever_waits_for_the_resume(
    client: httpx.AsyncClient, world: World
) -> None:
    await create(client)
    world.clock.now = at(5)
    await post(client, "/v1/schedules/tick/pause")
    world.clock.now = at(20)
    assert await undecided(client) == {"count": 20, "since": text(1), "because": "due"}


async def test_times_of_a_pause_that_is_over_are_due_also_during_the_next(
    client: httpx.AsyncClient, world: World
) -> None:
    await create(client)
    await post(client, "/v1/schedules/tick/pause")
    world.clock.now = at(5)
    await post(client, "/v1/schedules/tick/resume")
    await post(client, "/v1/schedules/tick/pause")
    world.clock.now = at(20)
    assert await undecided(client) == {"count": 20, "since": text(1), "because": "due"}


async def test_times_in_a_window_wait_for_its_end(client: httpx.AsyncClient, world: World) -> None:
    window = {"from": text(10), "to": text(20)}
    await create(client, trigger={**TICK["trigger"], "exclude": [window]})
    for second in range(1, 10):
        await world.fire(at(second))
    world.clock.now = at(15)
    assert await undecided(client) == {"count": 6, "since": text(10), "because": "excluded"}
    world.clock.now = at(20)
    assert await undecided(client) == {"count": 11, "since": text(10), "because": "due"}


async def test_times_before_an_edit_are_those_of_the_trigger_then(client: httpx.AsyncClient, world: World) -> None:
    await create(client)
    world.clock.now = at(10)
    await client.patch("/v1/schedules/tick", json={"trigger": {"every": "5s"}})
    world.clock.now = at(20)
    assert await undecided(client) == {"count": 12, "since": text(1), "because": "due"}


async def test_an_exhausted_schedule_has_nothing_undecided(client: httpx.AsyncClient, world: World) -> None:
    await create(client, trigger={**TICK["trigger"], "max_fires": 1})
    await world.fire(at(1))
    world.clock.now = at(60)
    assert await undecided(client) == {"count": 0, "since": None, "because": None}


async def test_a_leader_whose_clock_is_ahead_leaves_nothing_undecided(client: httpx.AsyncClient, world: World) -> None:
    await create(client)
    await world.pass_over(Verdict.MISSED, at(1), at(9), count=9)
    world.clock.now = at(5)
    assert await undecided(client) == {"count": 0, "since": None, "because": None}
