"""``…/verdicts`` and ``/v1/verdicts``: what became of each nominal time, and which are undecided."""

from typing import Any

import pytest

from hascheduler.api.edge import Edge
from hascheduler.model.collection import Collection
from hascheduler.model.values.instants import WallMs, format_instant
from hascheduler.model.verdict import Verdict
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import TICK, Client, check_problem, create, get, pages, post
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
        job, trigger = {"definition": "log", "tenant": tenant}, {"type": "interval", "every": "1s"}
        body = {"name": name, "trigger": trigger, "job": job, "labels": {"team": team}}
        assert (await client.post("/v1/schedules", json=body)).status_code == 201
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


async def test_a_token_of_one_tenant_sees_its_own(app: Edge, world: World) -> None:
    guarded = Guarded(app, world)
    await history_of_two(await guarded.client(), world)
    acme = await guarded.client("viewer", "acme")
    assert await listed_of_all(acme) == ["a missed"]
    assert await listed_of_all(acme, "label=team=y") == []
    check_problem(await acme.get(f"{OF_ALL}?tenant=beta"), 403)
    assert (await guarded.showing(None).get(OF_ALL)).status_code == 401
