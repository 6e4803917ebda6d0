"""What is done to all jobs or schedules that match: those that the list shows for the same filter, and no others."""

import asyncio
from collections.abc import Collection as SomeOf
from dataclasses import replace
from typing import Any

import pytest

from hascheduler.api.edge import Edge
from hascheduler.api.jobs import all_that_match as of_jobs
from hascheduler.api.schedules import all_that_match as of_schedules
from hascheduler.model.partition import partition_of
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import Client, check_problem, create, get, post
from tests.unit.api.test_job_totals import put
from tests.unit.api.test_schedule_lists import some as some_schedules
from tests.unit.api.tokens import Guarded

LOG = {"filter": {"definition": "log"}}
AT = "2030-01-01T00:00:00.00{}Z"


async def submit(client: Client, count: int) -> list[str]:
    answer = await post(client, "/v1/jobs:batch", {"jobs": [{"definition": "log"}] * count})
    return [one["job"] for one in answer["results"]]


def some_jobs(world: World) -> None:
    """Submitted a millisecond apart; the odd ones have ended."""
    for number, (id, state) in enumerate(
        [
            ("fire:tick:1", "pending"), ("fire:tick:2", "failed"), ("fire:tock:1", "running"), ("job:03", "failed"),
            ("job:04", "pending"), ("job:05", "cancelled"), ("job:14", "pending"),
        ]
    ):  # fmt: skip
        put(world, id, state, None, submitted_at_ms=NOW + number, schedule=id.split(":")[1] if "fire" in id else None)
    world.view.never_to_run = {"fire:tick:1", "job:14"}
    world.clock.now = type(world.clock.now)(NOW + 1_000)


@pytest.mark.parametrize(
    ("verb", "filter", "meant"),
    [
        ("cancel", {"id": "fire:"}, {"fire:tick:1", "fire:tock:1"}),
        ("cancel", {"since": AT.format(2), "until": AT.format(5)}, {"fire:tock:1", "job:04"}),
        ("cancel", {"unschedulable": True, "id": "job:"}, {"job:14"}),
        ("cancel", {"state": "failed"}, set()),
        ("retry", {"since": AT.format(2)}, {"job:03"}),
        ("retry", {"id": "job:", "state": "cancelled"}, {"job:05"}),
        ("reprioritize", {"unschedulable": True, "since": AT.format(1)}, {"job:14"}),
    ],
)
async def test_jobs_are_meant_by_all_that_the_list_takes(
    client: Client, world: World, *, verb: str, filter: Any, meant: set[str]
) -> None:
    some_jobs(world)
    listed = await client.get("/v1/jobs", params={name: str(value) for name, value in filter.items()})
    assert meant <= {job["id"] for job in listed.json()["items"]}
    before = {job["_id"]: job for job in world.everything()["jobs"]}
    body = {"filter": filter, **({"priority": 9} if verb == "reprioritize" else {})}
    counted = await post(client, f"/v1/jobs:{verb}", {**body, "dry_run": True})
    assert (counted["matched"], counted["exact"], counted["complete"]) == (len(meant), True, True)
    for expected in (len(meant), 0):  # the second request finds none that is not as asked
        answer = await post(client, f"/v1/jobs:{verb}", body)
        assert (answer["changed"] + answer["asked_to_stop"], answer["complete"]) == (expected, True)
    assert {job["_id"] for job in world.everything()["jobs"] if job != before[job["_id"]]} == meant


async def test_a_request_ends_when_its_time_is_over(
    client: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_jobs, "_SLICE", 1)
    monkeypatch.setattr(of_jobs, "BUSY_MS_MAX", 0)
    await submit(client, 3)
    answers = [await post(client, "/v1/jobs:cancel", LOG) for _ in range(4)]
    assert [(one["changed"], one["complete"]) for one in answers] == [(1, False)] * 3 + [(0, True)]


SCHEDULES: list[tuple[str, dict[str, Any], str, set[str]]] = [
    ("pause", {"state": "ended"}, "state=ended", {"c-once", "d-ended"}),
    ("pause", {"state": "paused"}, "", set()),
    ("pause", {"verdict": "missed", "tenant": "acme"}, "verdict=missed&tenant=acme", set()),
    ("pause", {"state": "active", "labels": {"team": "x"}}, "state=active&label=team=x", {"a.nightly", "f"}),
    ("resume", {"text": "NIGHT"}, "text=night&state=paused", {"B-Nightly"}),
]


@pytest.mark.parametrize(("verb", "filter", "query", "meant"), SCHEDULES)
@pytest.mark.parametrize("share", [1, 20_000])
async def test_schedules_are_meant_by_all_that_the_list_takes(
    client: Client,
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    *,
    verb: str,
    filter: Any,
    query: str,
    meant: set[str],
    share: int,
) -> None:
    monkeypatch.setattr(of_schedules, "CHANGED_MAX", share)
    await some_schedules(client, world)
    if query:
        assert {one["name"] for one in (await get(client, f"/v1/schedules?{query}"))["items"]} == meant
    before = {one["_id"]: one["paused_at_ms"] for one in world.everything()["schedules"]}
    changed, after, complete = 0, None, False
    counted = await post(client, f"/v1/schedules:{verb}", {"filter": filter, "dry_run": True})
    assert counted["matched"] == len(meant)
    while not complete:
        answer = await post(client, f"/v1/schedules:{verb}", {"filter": filter, "after": after})
        changed, after, complete = changed + answer["changed"], answer["next"], answer["complete"]
    assert changed == len(meant)
    found = {one["_id"] for one in world.everything()["schedules"] if one["paused_at_ms"] != before[one["_id"]]}
    assert found == meant
    assert (await post(client, f"/v1/schedules:{verb}", {"filter": filter}))["changed"] == 0


async def test_under_one_key_each_schedule_is_triggered_once(
    client: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_schedules, "CHANGED_MAX", 2)
    names = [f"nightly-{number}" for number in range(5)]
    for name in names:
        await create(client, name=name)
    await client.patch(f"/v1/schedules/{names[3]}", json={"overlap": "skip"})
    await post(client, f"/v1/schedules/{names[3]}/trigger", status=201)

    async def all_of_them(key: str) -> tuple[int, int]:
        changed, refused, after = 0, 0, None
        while True:
            body = {"filter": {"text": "nightly"}, "after": after}
            answer = await client.post("/v1/schedules:trigger", json=body, headers={"Idempotency-Key": key})
            one = answer.json()
            assert answer.status_code == 200, one
            changed, refused, after = changed + one["changed"], refused + one["refused"], one["next"]
            if one["refused"]:
                assert "overlap is skip" in one["error"]
            if one["complete"]:
                return changed, refused

    world.connection.fail_next(of="jobs.submit", carried_out=True)
    await client.post("/v1/schedules:trigger", json={"filter": {"text": "nightly"}}, headers={"Idempotency-Key": "k"})
    made = len(world.everything()["jobs"])
    assert await all_of_them("k") == (5 - made, 1)
    assert await all_of_them("k") == (0, 1)
    assert sorted(job["schedule"] for job in world.everything()["jobs"]) == names
    assert await all_of_them("other") == (4, 1)
    without = await client.post("/v1/schedules:trigger", json={"filter": {"text": "nightly"}})
    check_problem(without, 422, "Idempotency-Key")


async def test_a_count_that_grew_is_a_conflict_and_a_count_leaves_no_record(client: Client, world: World) -> None:
    await submit(client, 12)
    assert (await post(client, "/v1/jobs:cancel", {**LOG, "dry_run": True}))["changed"] == 0
    problem = check_problem(await client.post("/v1/jobs:cancel", json={**LOG, "expected": 10}), 409)
    assert "12 match now, but 10 were expected" in problem["detail"]
    assert {job["state"] for job in world.everything()["jobs"]} == {"pending"}
    await world.audit_writer.flush()
    statuses = [each["status"] for each in world.everything()["audit"] if each["path"] == "/v1/jobs:cancel"]
    assert statuses == [409]
    assert (await post(client, "/v1/jobs:cancel", {**LOG, "expected": 11}))["changed"] == 12


async def test_a_token_of_one_tenant_reaches_its_tenant_alone(guarded: Guarded, world: World) -> None:
    admin = guarded.showing(await guarded.token())
    acme = guarded.showing(await guarded.token("operator", "acme"))
    for tenant in ("acme", "umbrella"):
        await create(admin, name=f"of-{tenant}", job={"definition": "log", "tenant": tenant})
        await post(admin, "/v1/jobs", {"definition": "log", "tenant": tenant}, 201)
    for path, body in (("/v1/jobs:cancel", LOG), ("/v1/schedules:pause", {"filter": {"text": "of-"}})):
        assert (await post(acme, path, body))["changed"] == 1
        others = {"filter": {**body["filter"], "tenant": "umbrella"}}
        check_problem(await acme.post(path, json=others), 403)
    assert {job["tenant"]: job["state"] for job in world.everything()["jobs"]} == {
        "acme": "cancelled", "umbrella": "pending"
    }  # fmt: skip
    assert not (await get(admin, "/v1/schedules/of-umbrella"))["paused"]


async def test_a_token_has_one_such_request_at_a_time(
    guarded: Guarded, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    acme = guarded.showing(await guarded.token("operator", "acme"))
    admin = guarded.showing(await guarded.token())
    begun, goes_on = asyncio.Event(), asyncio.Event()
    cancel = world.jobs.cancel_some

    async def slow(*arguments: Any) -> Any:
        begun.set()
        await goes_on.wait()
        return await cancel(*arguments)

    monkeypatch.setattr(world.jobs, "cancel_some", slow)
    under_way = asyncio.create_task(acme.post("/v1/jobs:cancel", json=LOG))
    await begun.wait()
    assert check_problem(await acme.post("/v1/jobs:cancel", json=LOG), 429)["type"].endswith(":share-used-up")
    assert (await acme.post("/v1/jobs:cancel", json={**LOG, "dry_run": True})).status_code == 200
    assert (await admin.post("/v1/jobs:retry", json=LOG)).status_code == 200
    goes_on.set()
    assert (await under_way).json()["complete"]
    assert (await acme.post("/v1/jobs:cancel", json=LOG)).status_code == 200


async def test_copies_are_neither_counted_nor_changed(app: Edge, world: World, client: Client) -> None:
    async def tenants_in(partition: int) -> SomeOf[str]:
        return {"acme"} if partition == partition_of("acme") else ()

    app.services = replace(world.services(), tenants_in=tenants_in)
    world.view.copied = frozenset({partition_of("acme")})
    put(world, "job:a", tenant="acme")
    put(world, "job:b", tenant="other")
    await create(client, name="a", job={"definition": "log", "tenant": "acme"})
    await create(client, name="b", job={"definition": "log", "tenant": "other"})
    for path, filter in (("/v1/jobs:cancel", {"definition": "log"}), ("/v1/schedules:pause", {"state": "active"})):
        for dry_run in (True, False):
            assert (await post(client, path, {"filter": filter, "dry_run": dry_run}))["matched"] == 1
    stored = world.everything()
    assert {job["_id"]: job["state"] for job in stored["jobs"]} == {"job:a": "pending", "job:b": "cancelled"}
    assert [one["_id"] for one in stored["schedules"] if one["paused_at_ms"]] == ["b"]
