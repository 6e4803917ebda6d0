"""``GET /v1/schedules`` and ``/v1/schedules:counts`` by name, state, last verdict, tenant and label."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from hascheduler.model.collection import Collection
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import Verdict
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import check_problem, create, get
from tests.unit.api.tokens import Guarded

SECOND: dict[str, Any] = {"type": "interval", "every": "1s"}
PAST_END = {**SECOND, "end_at": "2030-01-01T00:00:05Z"}


async def some(client: httpx.AsyncClient, world: World) -> None:
    """b was paused; c and d have no more times; e missed its last one, f skipped one before it fired."""
    job, of_beta = {"definition": "log", "tenant": "acme"}, {"definition": "log", "tenant": "beta"}
    await create(client, name="a.nightly", job=job, labels={"team": "x"})
    await create(client, name="B-Nightly", job=job, labels={"team": "y"}, paused=True)
    await create(client, name="c-once", job=job, trigger={"type": "once", "at": "2030-01-01T00:00:05Z"})
    await create(client, name="d-ended", job=of_beta, trigger=PAST_END, labels={"team": "x"})
    await create(client, name="e", job=of_beta)
    await create(client, name="f", job=job, labels={"team": "x"})
    world.clock.now = WallMs(NOW + 60_000)
    for name in ("c-once", "d-ended"):
        await world.fire(NOW + 5_000, name)
    await world.pass_over(Verdict.MISSED, NOW + 1_000, NOW + 4_000, count=4, name="e")
    await world.pass_over(Verdict.SKIPPED, NOW + 1_000, because_of="fire:f:1", name="f")
    await world.fire(NOW + 2_000, "f")


ALL = ["B-Nightly", "a.nightly", "c-once", "d-ended", "e", "f"]
ROWS: list[tuple[str, list[str]]] = [
    ("", ALL),
    ("text=night", ["B-Nightly", "a.nightly"]),
    ("text=NIGHT", ["B-Nightly", "a.nightly"]),
    ("text=a.n", ["a.nightly"]),
    ("text=.*", []),
    ("text=(", []),
    ("text=%00", []),
    ("text=%5C", []),
    ("state=paused", ["B-Nightly"]),
    ("state=ended", ["c-once", "d-ended"]),
    ("state=active", ["a.nightly", "e", "f"]),
    ("state=active&state=paused&state=ended", ALL),
    ("verdict=missed", ["e"]),
    ("verdict=skipped", []),
    ("verdict=missed&verdict=skipped", ["e"]),
    ("tenant=beta", ["d-ended", "e"]),
    ("tenant=beta&state=active", ["e"]),
    ("label=team=x", ["a.nightly", "d-ended", "f"]),
    ("label=team=x&state=active", ["a.nightly", "f"]),
    ("label=team=x&state=active&text=nightly", ["a.nightly"]),
    ("label=team=z&text=n", []),
]


@pytest.mark.parametrize(("query", "expected"), ROWS)
async def test_schedules_are_listed_and_counted_by_what_is_asked_for(
    client: httpx.AsyncClient, world: World, query: str, expected: list[str]
) -> None:
    await some(client, world)
    for limit in (1, 2, 100):
        found: list[str] = []
        after = ""
        while True:
            page = await get(client, f"/v1/schedules?limit={limit}&{query}{after}")
            found += [item["name"] for item in page["items"]]
            if page["next"] is None:
                break
            after = f"&after={page['next']}"
        assert found == expected
    states = {"B-Nightly": "paused", "c-once": "ended", "d-ended": "ended"}
    found = [states.get(name, "active") for name in expected]
    assert await get(client, f"/v1/schedules:counts?{query}") == {
        "matched": len(expected),
        "exact": True,
        **{state: found.count(state) for state in ("active", "paused", "ended")},
    }


@pytest.mark.parametrize("path", ["/v1/schedules", "/v1/schedules:counts"])
@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("text=", "text"),
        (f"text={'x' * 129}", "text"),
        ("state=gone", "state.0"),
        ("verdict=fired", "verdict.0"),
    ],
)
async def test_what_means_nothing_is_refused(client: httpx.AsyncClient, path: str, query: str, field: str) -> None:
    check_problem(await client.get(f"{path}?{query}"), 422, field)


async def test_labels_of_so_many_are_looked_at_and_no_more(
    client: httpx.AsyncClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await some(client, world)
    monkeypatch.setattr("hascheduler.api.schedules.selection.LABELS_LOOKED_AT_MAX", 2)
    monkeypatch.setattr("hascheduler.api.schedules.selection.LABELLED_MAX", 1)
    page = await get(client, "/v1/schedules?state=active&label=team=x")
    assert ([item["name"] for item in page["items"]], page["next"]) == (["a.nightly"], "e")
    page = await get(client, "/v1/schedules?state=active&label=team=x&after=e")
    assert ([item["name"] for item in page["items"]], page["next"]) == (["f"], None)
    assert not (await get(client, "/v1/schedules:counts?label=team=x"))["exact"]


async def test_the_last_verdict_is_looked_for_among_the_newest_decisions(
    client: httpx.AsyncClient, world: World, monkeypatch: pytest.MonkeyPatch
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


async def test_a_verdict_of_an_earlier_schedule_by_that_name_was_not_its_last(
    client: httpx.AsyncClient, world: World
) -> None:
    await create(client, name="a")
    world.clock.now = WallMs(NOW + 5_000)
    await world.pass_over(Verdict.MISSED, NOW + 5_000, name="a")
    assert (await client.delete("/v1/schedules/a")).status_code == 204
    await create(client, name="a")
    assert (await get(client, "/v1/schedules?verdict=missed"))["items"] == []


async def test_a_replica_whose_mirror_is_not_complete_says_so(client: httpx.AsyncClient, world: World) -> None:
    await create(client)
    world.view.ready = False
    for path in ("/v1/schedules?text=t", "/v1/schedules:counts"):
        check_problem(await client.get(path), 503)
    assert len((await get(client, "/v1/schedules"))["items"]) == 1


# Tenants


@pytest.fixture
async def beta(guarded: Guarded, client: httpx.AsyncClient, world: World) -> AsyncIterator[httpx.AsyncClient]:
    async with await guarded.client("admin") as boss:
        await some(boss, world)
    async with await guarded.client("viewer", "beta") as viewer:
        yield viewer


async def test_a_token_of_one_tenant_finds_and_counts_its_own(beta: httpx.AsyncClient, world: World) -> None:
    for query in ("", "text=e", "tenant=beta", "state=active&state=ended"):
        assert [item["name"] for item in (await get(beta, f"/v1/schedules?{query}"))["items"]] == ["d-ended", "e"]
        assert (await get(beta, f"/v1/schedules:counts?{query}"))["matched"] == 2
    page = await get(beta, "/v1/schedules?text=e&limit=1")
    assert (page["items"][0]["name"], page["next"]) == ("d-ended", "d-ended")
    for path in ("/v1/schedules", "/v1/schedules:counts"):
        check_problem(await beta.get(f"{path}?tenant=acme"), 403, "tenant")
    world.rewrite(Collection.SCHEDULES, "e", job={**world.schedule("e")["job"], "tenant": "acme"})
    assert [item["name"] for item in (await get(beta, "/v1/schedules?text=e"))["items"]] == ["d-ended"]
