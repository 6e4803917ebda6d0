"""Pausing everything and draining processors: what is stored, shown, bounded and forgotten, and who says so."""

import httpx
import pytest

from hascheduler.api.ops import processors
from hascheduler.model.collection import Collection
from hascheduler.schema.noun import document_of
from hascheduler.schema.pause import DRAIN_FORGOTTEN_AFTER_MS, drain_id
from tests.factories import make_pause
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import NOW_TEXT, check_problem, get, post
from tests.unit.api.tokens import Guarded

PAUSE, RESUME, DRAIN, UNDRAIN = (
    "/v1/cluster/pause", "/v1/cluster/resume", "/v1/processors/p-1/drain", "/v1/processors/p-1/undrain",
)  # fmt: skip
BURNS = {"since": NOW_TEXT, "by": "anonymous", "because": "it burns", "schedules_only": False}


async def test_the_cluster_says_since_when_by_whom_and_why_everything_is_paused(client: httpx.AsyncClient) -> None:
    assert (await get(client, "/v1/cluster"))["paused"] is None
    assert (await post(client, PAUSE, {"because": "it burns"})) == {"paused": BURNS}
    assert (await get(client, "/v1/cluster"))["paused"] == BURNS
    assert (await post(client, RESUME)) == {"paused": None}
    assert (await get(client, "/v1/cluster"))["paused"] is None
    assert (await post(client, RESUME)) == {"paused": None}


async def test_said_again_it_is_the_same_pause_with_another_reason(client: httpx.AsyncClient, world: World) -> None:
    await post(client, PAUSE, {"because": "it burns"})
    world.clock.now = type(NOW)(NOW + 60_000)
    again = await post(client, PAUSE, {"because": "it floods", "schedules_only": True})
    assert again["paused"] == {**BURNS, "because": "it floods", "schedules_only": True}


async def test_the_author_is_the_name_of_the_token(guarded: Guarded) -> None:
    async with await guarded.client("admin") as client:
        who = (await get(client, "/v1/whoami"))["name"]
        assert (await post(client, PAUSE, {"because": "it burns"}))["paused"]["by"] == who
        assert (await post(client, DRAIN))["drained"]["by"] == who


async def test_a_drained_processor_is_shown_with_who_drained_it(client: httpx.AsyncClient) -> None:
    drained = {"since": NOW_TEXT, "by": "anonymous", "because": "its node is replaced"}
    assert await post(client, DRAIN, {"because": "its node is replaced"}) == {"name": "p-1", "drained": drained}
    [shown] = (await get(client, "/v1/processors"))["items"]
    assert (shown["draining"], shown["drained"], shown["occupied"]) == (True, drained, 2)
    assert (await post(client, DRAIN))["drained"] == drained, "without a reason it keeps the one it has"
    assert await post(client, UNDRAIN) == {"name": "p-1", "drained": None}
    [shown] = (await get(client, "/v1/processors"))["items"]
    assert (shown["draining"], shown["drained"]) == (False, None)
    assert (await post(client, UNDRAIN))["drained"] is None


async def test_a_drained_name_that_is_gone_is_shown_and_may_be_undrained(
    client: httpx.AsyncClient, world: World
) -> None:
    drained_before(world, "gone", since_ms=NOW)
    [absent] = (await get(client, "/v1/processors"))["absent"]
    assert absent == {"name": "gone", "since": NOW_TEXT, "by": "deployer", "because": None}
    assert (await post(client, "/v1/processors/gone/drain"))["drained"] is not None
    await post(client, "/v1/processors/gone/undrain")
    assert (await get(client, "/v1/processors"))["absent"] == []
    check_problem(await client.post("/v1/processors/gone/drain"), 404)


async def test_drains_of_names_that_are_long_gone_are_forgotten(client: httpx.AsyncClient, world: World) -> None:
    drained_before(world, "long-gone", since_ms=NOW - DRAIN_FORGOTTEN_AFTER_MS - 1)
    drained_before(world, "gone", since_ms=NOW - DRAIN_FORGOTTEN_AFTER_MS)
    await post(client, DRAIN)
    assert {one["_id"] for one in world.database.documents(Collection.PAUSES)} == {drain_id("gone"), drain_id("p-1")}


async def test_no_more_names_than_the_bound_are_drained(
    client: httpx.AsyncClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processors, "DRAINS_MAX", 2)
    for name in ("a", "b"):
        drained_before(world, name, since_ms=NOW)
    assert "2 names are drained" in check_problem(await client.post(DRAIN), 409)["detail"]
    await post(client, "/v1/processors/a/undrain")
    await post(client, DRAIN)
    await post(client, DRAIN)


def drained_before(world: World, name: str, *, since_ms: int) -> None:
    pause = make_pause(drain_id(name), rev=1, since_ms=since_ms)
    world.database.insert(Collection.PAUSES, document_of(pause))
