"""Lanes and tenants: what is stored, what is shown, what an edit keeps."""

from typing import Any

import httpx
import pytest

from hascheduler.model.collection import Collection
from hascheduler.model.policy import PRESETS, Criterion
from hascheduler.schema.definition import RateLimit
from hascheduler.schema.lane import Lane, LaneBody
from hascheduler.schema.noun import read_document
from hascheduler.schema.tenant import Tenant, TenantBody
from tests.unit.api.doubles import World
from tests.unit.api.requests import check_problem, complete, get

BULK, ACME = "/v1/lanes/bulk", "/v1/tenants/acme"
PLAIN = complete(
    LaneBody, {"name": "bulk", "rev": 1, "weight": 1, "promote_after": "1m", "policy": None, "owner": None}
)


async def test_a_lane_has_its_defaults(client: httpx.AsyncClient, world: World) -> None:
    answer = await client.put(BULK, json={})
    assert (answer.status_code, answer.json()) == (201, PLAIN)
    assert answer.headers["location"] == BULK
    assert read_document(Lane, "bulk", world.stored(Collection.LANES, "bulk")) == Lane(name="bulk", rev=1)
    assert (await client.put(BULK, json={"weight": None, "promote_after": None, "policy": None})).json() == PLAIN
    assert (await get(client, "/v1/lanes"))["items"] == [PLAIN]


@pytest.mark.parametrize(
    ("policy", "criteria"),
    [
        ("fair", PRESETS["fair"]),
        ("aged_priority", (Criterion.AGED_PRIORITY, Criterion.ARRIVAL)),
        (["tier", "score"], (Criterion.TIER, Criterion.SCORE, Criterion.ARRIVAL)),
        (["arrival"], (Criterion.ARRIVAL,)),
    ],
)
async def test_a_lanes_policy_is_a_preset_or_a_list(
    client: httpx.AsyncClient, world: World, policy: object, criteria: tuple[Criterion, ...]
) -> None:
    shown = (await client.put(BULK, json={"policy": policy})).json()
    assert shown["policy"] == list(criteria)
    assert read_document(Lane, "bulk", world.stored(Collection.LANES, "bulk")).criteria == criteria


async def test_each_priority_may_have_its_own_step(client: httpx.AsyncClient, world: World) -> None:
    steps = [f"{step}m" for step in range(11, 0, -1)]
    assert (await client.put(BULK, json={"promote_after": steps})).json()["promote_after"] == steps
    lane = read_document(Lane, "bulk", world.stored(Collection.LANES, "bulk"))
    assert (lane.promote_after(0), lane.promote_after(10)) == (660_000, 60_000)


@pytest.mark.parametrize(
    ("patch", "shown"),
    [
        ({}, {"rev": 1}),
        ({"weight": 2}, {"rev": 1}),
        ({"weight": None}, {"rev": 2, "weight": 1}),
        ({"policy": None, "promote_after": None}, {"rev": 2, "policy": None, "promote_after": "1m"}),
        ({"promote_after": 90}, {"rev": 2, "promote_after": "1m30s"}),
    ],
)
async def test_a_patch_changes_what_it_names(
    client: httpx.AsyncClient, patch: dict[str, Any], shown: dict[str, Any]
) -> None:
    before = (await client.put(BULK, json={"weight": 2, "policy": "fair", "promote_after": "30s"})).json()
    assert (await client.patch(BULK, json=patch)).json() == {**before, **shown}


async def test_a_mistake_says_what_would_be_right(client: httpx.AsyncClient) -> None:
    answer = await client.put(BULK, json={"policy": ["tier", "luck"], "promote_after": "1ms"})
    told = {error["path"]: error for error in answer.json()["errors"]}
    assert "'luck'" in told["policy"]["problem"]
    assert "aged_priority" in told["policy"]["expected"]
    assert told["promote_after"] == {
        "path": "promote_after", "problem": "1ms is out of range", "expected": "1s to 7d"
    }  # fmt: skip


async def test_a_tenant_has_a_quota_or_none(client: httpx.AsyncClient, world: World) -> None:
    quota = {
        "max_running": 10, "max_pending": 10_000, "submit_rate": {"count": 100, "per": "1s"}, "max_schedules": 200,
        "fire_rate": {"count": 600, "per": "1m"}, "owner": "team-a",
    }  # fmt: skip
    none = complete(TenantBody, {"name": "acme", "rev": 1, **dict.fromkeys(quota)})
    assert (await client.put(ACME, json=quota)).json() == none | quota
    stored = read_document(Tenant, "acme", world.stored(Collection.TENANTS, "acme"))
    assert stored == Tenant(
        name="acme",
        rev=1,
        max_running=10,
        max_pending=10_000,
        submit_rate=RateLimit(count=100, per_ms=1_000),
        max_schedules=200,
        fire_rate=RateLimit(count=600, per_ms=60_000),
        owner="team-a",
    )
    shown = (
        await client.patch(ACME, json={"max_running": None, "submit_rate": {"count": 5}, "fire_rate": None})
    ).json()
    assert shown == none | {
        "rev": 2, "max_pending": 10_000, "submit_rate": {"count": 5, "per": "1s"}, "max_schedules": 200,
        "owner": "team-a",
    }  # fmt: skip
    shown = (await client.patch(ACME, json=dict.fromkeys(quota))).json()
    assert shown == await get(client, ACME) == none | {"rev": 3}
    assert (await client.delete(ACME)).status_code == 204
    check_problem(await client.get(ACME), 404)


@pytest.mark.parametrize(
    ("path", "broken"),
    [
        (BULK, {"weight": "heavy"}),
        (ACME, {"max_running": -1}),
        ("/v1/definitions/log", {"max_concurrency": "many"}),
    ],
)
async def test_one_that_cannot_be_read_is_repaired_by_a_replacement_alone(
    client: httpx.AsyncClient, world: World, path: str, broken: dict[str, Any]
) -> None:
    await client.put(path, json={})
    kind, name = path.split("/")[2:]
    world.rewrite(Collection(kind), name, **broken)
    check_problem(await client.get(path), 409)
    check_problem(await client.patch(path, json={}), 409)
    assert [one["id"] for one in (await get(client, f"/v1/{kind}"))["unreadable"]] == [name]
    assert (await client.put(path, json={})).json()["rev"] == 2


@pytest.mark.parametrize("path", [BULK, ACME, "/v1/definitions/log"])
async def test_an_owner_is_kept_by_edits_and_dropped_by_what_replaces_the_whole(
    client: httpx.AsyncClient, world: World, path: str
) -> None:
    assert (await client.put(path, json={"owner": "team-a"})).json()["owner"] == "team-a"
    assert (await client.put(path, json={"owner": "team-a"})).json()["rev"] == 1
    assert (await client.patch(path, json={})).json()["owner"] == "team-a"
    assert (await client.patch(path, json={"owner": "team-b"})).json()["owner"] == "team-b"
    for wrong in ("", "a b", "x" * 129, 5, ["team-a"]):
        check_problem(await client.patch(path, json={"owner": wrong}), 422, "owner")
    collection, name = Collection(path.split("/")[2]), path.split("/")[3]
    assert world.stored(collection, name)["owner"] == "team-b"
    assert (await client.put(path, json={})).json()["owner"] is None
    await client.put(path, json={"owner": "team-b"})
    assert (await client.patch(path, json={"owner": None})).json()["owner"] is None
    stored = world.stored(collection, name)
    world.database.replace(collection, {field: value for field, value in stored.items() if field != "owner"})
    assert (await get(client, path))["owner"] is None, "as 0.2.0 stored it"
