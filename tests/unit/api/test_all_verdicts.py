"""``/v1/verdicts``: the times of all schedules that did not fire."""

from typing import Any

import httpx
import pytest

from hascheduler.api.edge import Edge
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import Verdict
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import check_problem
from tests.unit.api.tokens import Guarded

PATH = "/v1/verdicts"


async def history(client: httpx.AsyncClient, world: World) -> None:
    for name, tenant, team in (("a", "acme", "x"), ("b", "beta", "y")):
        job, trigger = {"definition": "log", "tenant": tenant}, {"type": "interval", "every": "1s"}
        body = {"name": name, "trigger": trigger, "job": job, "labels": {"team": team}}
        assert (await client.post("/v1/schedules", json=body)).status_code == 201
    for name, verdict, second in (("a", Verdict.MISSED, 1), ("b", Verdict.SKIPPED, 2), ("b", Verdict.MISSED, 3)):
        world.clock.now = WallMs(NOW + 10_000 * second)
        await world.pass_over(verdict, NOW + 1_000 * second, because_of=f"fire:{name}:1", name=name)


async def listed(client: httpx.AsyncClient, query: str = "") -> list[str]:
    """Of pages of one each."""
    found: list[str] = []
    after = ""
    while True:
        answer = await client.get(f"{PATH}?limit=1&{query}{after}")
        assert answer.status_code == 200, answer.text
        found += [f"{item['schedule']} {item['verdict']}" for item in answer.json()["items"]]
        if answer.json()["next"] is None:
            return found
        after = f"&after={answer.json()['next']}"


async def test_each_says_of_which_schedule_it_is_what_it_was_and_when_it_was_decided(
    client: httpx.AsyncClient, world: World
) -> None:
    await history(client, world)
    page: Any = (await client.get(f"{PATH}?verdict=skipped")).json()
    assert page == {
        "items": [
            {
                "schedule": "b",
                "verdict": "skipped",
                "nominal_at": "2030-01-01T00:00:02.000Z",
                "through_at": "2030-01-01T00:00:02.000Z",
                "count": 1,
                "because_of": "fire:b:1",
                "decided_at": "2030-01-01T00:00:20.000Z",
            }
        ],
        "next": None,
    }


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["b missed", "b skipped", "a missed"]),
        ("verdict=missed", ["b missed", "a missed"]),
        ("verdict=missed&verdict=skipped&verdict=missed", ["b missed", "b skipped", "a missed"]),
        ("verdict=paused", []),
        ("label=team=x", ["a missed"]),
        ("label=team=z", []),
        ("tenant=beta", ["b missed", "b skipped"]),
        ("text=B", ["b missed", "b skipped"]),
        ("text=(", []),
        ("since=2030-01-01T00:00:20Z", ["b missed", "b skipped"]),
        ("until=2030-01-01T00:00:20Z", ["a missed"]),
        ("verdict=missed&since=2030-01-01T00:00:15Z&label=team=y", ["b missed"]),
    ],
)
async def test_they_may_be_filtered(client: httpx.AsyncClient, world: World, query: str, expected: list[str]) -> None:
    await history(client, world)
    assert await listed(client, query) == expected


@pytest.mark.parametrize(
    ("query", "where"),
    [("verdict=fired", "verdict.0"), ("after=b:1", "after"), ("since=yesterday", "since"), ("schedule=a", "schedule")],
)
async def test_what_is_no_filter_is_refused(client: httpx.AsyncClient, query: str, where: str) -> None:
    check_problem(await client.get(f"{PATH}?{query}"), 422, where)


async def test_a_token_of_one_tenant_sees_its_own(app: Edge, world: World) -> None:
    guarded = Guarded(app, world)
    await history(await guarded.client(), world)
    acme = await guarded.client("viewer", "acme")
    assert await listed(acme) == ["a missed"]
    assert await listed(acme, "label=team=y") == []
    check_problem(await acme.get(f"{PATH}?tenant=beta"), 403)
    assert (await guarded.showing(None).get(PATH)).status_code == 401
