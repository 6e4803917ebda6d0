"""Batches, atomic ones too, whom their jobs wait for, and jobs of definitions that are `unique` or limited by keys."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from hascheduler.api.edge import Edge
from hascheduler.model.collection import Collection
from hascheduler.model.values.instants import format_instant
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import Client, check_problem, create, post
from tests.unit.api.tokens import Guarded

LOG: dict[str, Any] = {"definition": "log"}


async def batch(client: Client, *jobs: Any, key: str | None = None) -> dict[str, Any]:
    headers = {} if key is None else {"Idempotency-Key": key}
    answer = await client.post("/v1/jobs:batch", json={"jobs": list(jobs)}, headers=headers)
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    assert len(shown["results"]) == len(jobs)
    return shown


async def test_jobs_of_a_batch_depend_on_each_other_by_ref(client: Client, world: World) -> None:
    answer = await batch(
        client,
        {**LOG, "depends_on": ["ref:left", "ref:right"]},
        {**LOG, "ref": "left", "depends_on": ["ref:first"]},
        {**LOG, "ref": "right", "depends_on": ["ref:first"]},
        {**LOG, "ref": "first"},
    )
    last, left, right, first = (result["job"] for result in answer["results"])
    assert world.job(last)["waits_for"] == [left, right]
    assert world.job(left)["waits_for"] == world.job(right)["waits_for"] == [first]
    inserted = [document["_id"] for document in world.everything()["jobs"]]
    assert inserted.index(first) < inserted.index(left) < inserted.index(last)
    assert inserted.index(right) < inserted.index(last)


@pytest.mark.parametrize(
    ("states", "ignores", "is_waited_for"),
    [
        (("pending", "succeeded"), False, True), (("pending", "failed"), True, True),
        (("succeeded", "succeeded"), False, False), (("succeeded", "failed"), False, True),
        (("succeeded", "cancelled"), True, False), (("running", "succeeded"), True, True),
    ],
)  # fmt: skip
async def test_what_has_ended_of_a_batch_decides_whether_it_is_waited_for(
    states: tuple[str, ...], ignores: bool, is_waited_for: bool, client: Client, world: World
) -> None:
    answer = await batch(client, LOG, LOG)
    for result, state in zip(answer["results"], states, strict=True):
        world.rewrite_job(result["job"], state=state)
    how = {"on_dependency_failure": "ignore"} if ignores else {}
    id = (await post(client, "/v1/jobs", {**LOG, "depends_on": [answer["batch"]], **how}, 201))["id"]
    assert world.job(id)["depends_on"] == [answer["batch"]]
    assert world.job(id)["waits_for"] == ([id, answer["batch"]] if is_waited_for else [])


async def test_a_job_of_a_batch_can_not_wait_for_that_batch(client: Client, world: World) -> None:
    key = "again"
    own = (await batch(client, LOG, key=key))["batch"]
    before = world.everything()
    answer = await batch(client, LOG, {**LOG, "depends_on": [own]}, key=key)
    assert answer["batch"] == own
    [_, refused] = answer["results"]
    assert refused["status"] == 422
    assert refused["problem"]["detail"].startswith("depends_on.0: is the batch that contains the job")
    assert "ref:NAME" in refused["problem"]["detail"]
    assert world.everything() == before


PATH = "/v1/jobs:batch"


def atomic(*jobs: Any) -> dict[str, Any]:
    return {"jobs": list(jobs), "atomic": True}


@pytest.mark.parametrize(
    ("wrong", "paths"),
    [
        ([{**LOG, "priority": 11}], ["jobs.1.priority"]),
        ([5], ["jobs.1"]),
        ([{"definition": "a b"}, LOG, {**LOG, "x": 1}], ["jobs.1.definition", "jobs.3.x"]),
        ([{**LOG, "depends_on": ["ref:nobody"]}], ["jobs.1.depends_on.0"]),
        ([{**LOG, "depends_on": ["job:nobody"]}, {**LOG, "priority": -1}], ["jobs.1.depends_on.0", "jobs.2.priority"]),
        ([{**LOG, "ref": "a", "depends_on": ["ref:a"]}], ["jobs.1.depends_on"]),
        ([{**LOG, "ref": "a"}, {**LOG, "ref": "a"}], ["jobs.2.ref"]),
        ([{**LOG, "ref": "a", "priority": 11}, {**LOG, "depends_on": ["ref:a"]}],
         ["jobs.1.priority", "jobs.2.depends_on.0"]),
        ([{**LOG, "idempotency_key": "k"}], ["jobs.1.idempotency_key"]),
    ],
)  # fmt: skip
async def test_one_refused_job_keeps_all_of_an_atomic_batch_back(
    client: Client, world: World, wrong: list[Any], paths: list[str]
) -> None:
    before = world.everything()
    problem = check_problem(await client.post(PATH, json=atomic(LOG, *wrong)), 422)
    assert [error["path"] for error in problem["errors"]] == paths
    assert f"of {1 + len(wrong)} jobs" in problem["detail"]
    assert world.everything() == before


async def test_another_tenants_job_is_forbidden_with_its_path(guarded: Guarded, world: World) -> None:
    async with await guarded.client("submitter", "acme") as acme:
        check_problem(await acme.post(PATH, json=atomic(LOG, {**LOG, "tenant": "other"})), 403)
    assert world.everything()[Collection.JOBS] == []


async def test_under_one_key_it_is_the_same_batch_and_another_one_is_refused(client: Client, world: World) -> None:
    once = {"Idempotency-Key": "k"}
    body = atomic({**LOG, "ref": "a"}, {**LOG, "depends_on": ["ref:a"]})
    first = (await client.post(PATH, json=body, headers=once)).json()
    before = world.everything()
    again = (await client.post(PATH, json=body, headers=once)).json()
    assert [one["status"] for one in again["results"]] == [200, 200]
    assert [one["job"] for one in again["results"]] == [one["job"] for one in first["results"]]
    assert again["batch"] == first["batch"]
    others = (atomic(*body["jobs"], LOG), atomic(body["jobs"][0]), atomic(*reversed(body["jobs"])))
    for other in others:
        assert "'k'" in check_problem(await client.post(PATH, json=other, headers=once), 409)["detail"]
    # As a batch of single jobs it is another request.
    single = (await client.post(PATH, json={"jobs": body["jobs"]}, headers=once)).json()
    assert single["results"][0]["status"] == 409
    assert world.everything() == before


OF_BOTH = "tenant 'other', but this job to 'acme'"
OF_ACME, OF_OTHER = ({"definition": "log", "tenant": tenant} for tenant in ("acme", "other"))


@pytest.fixture
async def within(app: Edge, world: World) -> AsyncIterator[Client]:
    app.services = replace(world.services(), is_one_of_several=True)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://api") as within:
        yield within


async def test_of_a_mixed_batch_a_job_waits_for_those_of_its_tenant(within: Client, world: World) -> None:
    mixed = await batch(within, OF_ACME, OF_OTHER, OF_ACME)
    waiting = world.job((await post(within, "/v1/jobs", {**OF_ACME, "depends_on": [mixed["batch"]]}, 201))["id"])
    assert waiting["waits_for"] == [mixed["results"][0]["job"], mixed["results"][2]["job"]]


@pytest.mark.parametrize("atomic", [False, True])
async def test_within_a_batch_another_tenants_job_is_refused_too(within: Client, world: World, atomic: bool) -> None:
    others = (await post(within, "/v1/jobs", OF_OTHER, 201))["id"]
    jobs = [
        {**OF_OTHER, "ref": "theirs"},
        {**OF_ACME, "depends_on": ["ref:theirs"]},
        {**OF_ACME, "depends_on": [others]},
        OF_ACME,
    ]
    answer = await within.post("/v1/jobs:batch", json={"jobs": jobs, "atomic": atomic})
    if atomic:
        assert OF_BOTH in check_problem(answer, 422, "jobs.1.depends_on.0")["detail"]
        assert len(world.everything()["jobs"]) == 1
        return
    results = answer.json()["results"]
    assert [result["status"] for result in results] == [201, 422, 422, 201]
    for result in results[1:3]:
        assert OF_BOTH in result["problem"]["detail"]


DEFINITION = "/v1/definitions/log"
JOBS = "/v1/jobs"
BY_CUSTOMER: dict[str, Any] = {"by": ["payload.customer"]}
ACME: dict[str, Any] = {"definition": "log", "payload": {"customer": "acme"}}
OTHER: dict[str, Any] = {"definition": "log", "payload": {"customer": "other"}}


async def defined(client: Client, **unique: Any) -> None:
    assert (await client.put(DEFINITION, json={"unique": {**BY_CUSTOMER, **unique}})).is_success


@pytest.mark.parametrize("ready", [True, False])
async def test_a_duplicate_is_answered_with_the_job_that_is_there(client: Client, world: World, ready: bool) -> None:
    await defined(client)
    if not ready:
        await post(client, JOBS, {"definition": "else"}, 201)  # else it is not known how much waits
        world.view.ready, world.view.definitions = False, dict
    first = await post(client, JOBS, ACME, 201)
    answer = await client.post(JOBS, json={**ACME, "priority": 9})
    assert (answer.status_code, answer.json()) == (200, first)
    assert (answer.headers["duplicate-of"], answer.headers["location"]) == (first["id"], f"{JOBS}/{first['id']}")
    assert "idempotency-replayed" not in answer.headers
    assert (await client.post(JOBS, json=OTHER)).status_code == 201
    assert (await client.post(JOBS, json={**ACME, "tenant": "another"})).status_code == 201


async def test_an_atomic_batch_has_no_unique_jobs(client: Client, world: World) -> None:
    await defined(client)
    before = world.everything()
    answer = await client.post(PATH, json={"jobs": [{"definition": "else"}, ACME], "atomic": True})
    assert [one["path"] for one in check_problem(answer, 422)["errors"]] == ["jobs.1.definition"]
    assert world.everything() == before
    assert (await client.post(PATH, json={"jobs": [{"definition": "else"}], "atomic": True})).is_success


async def test_one_that_would_expire_while_it_is_debounced_is_refused(client: Client) -> None:
    await defined(client, on_duplicate="debounce", period="30s")
    early = {**ACME, "expires_at": format_instant(NOW + 30_000)}
    check_problem(await client.post(JOBS, json=early), 422, "expires_at")
    [result] = (await post(client, PATH, {"jobs": [early]}))["results"]
    assert (result["status"], result["problem"]["errors"][0]["path"]) == (422, "expires_at")
    assert (await client.post(JOBS, json={**ACME, "expires_at": format_instant(NOW + 30_001)})).status_code == 201


@pytest.mark.parametrize(
    ("one", "other", "are_duplicates"),
    [
        ({"payload": {"customer": 5}}, {"payload": {"customer": "5"}}, True),
        ({"payload": {"customer": "a" * 300}}, {"payload": {"customer": "a" * 301}}, False),
        ({"payload": {"customer": "a"}}, {"payload": {"customer": "a"}, "labels": {"region": "eu"}}, False),
        ({"payload": {"customer": "\u2028"}}, {"payload": {"customer": "\u2029"}}, False),
        ({"payload": {"customer": "a"}, "target": "x"}, {"payload": {"customer": "a"}, "target": "y"}, True),
    ],
)
async def test_the_values_decide(client: Client, world: World, one: Any, other: Any, are_duplicates: bool) -> None:
    await defined(client, by=["payload.customer", "label.region"])
    first = await post(client, JOBS, {"definition": "log", **one}, 201)
    answer = await client.post(JOBS, json={"definition": "log", **other})
    assert (answer.headers.get("duplicate-of") == first["id"]) is are_duplicates
    assert len(world.job(first["id"])["unique_key"]) == 64


LIMITS = {"key_limits": [{"key": "payload.customer", "max_concurrency": 2}, {"key": "target", "max_concurrency": 1}]}


def acme(**more: Any) -> dict[str, Any]:
    return {"definition": "log", "target": "t", "payload": {"customer": "acme"}, **more}


async def test_a_submitted_job_has_its_values(client: Client, world: World) -> None:
    await client.put(DEFINITION, json=LIMITS)
    job = await post(client, "/v1/jobs", acme(), 201)
    assert world.job(job["id"])["limit_keys"] == [["payload.customer", "acme"], ["target", "t"]]
    batch = await post(client, "/v1/jobs:batch", {"jobs": [acme(), acme(payload={"customer": 7}), acme(payload=None)]})
    stored = [world.job(result["job"])["limit_keys"][0] for result in batch["results"]]
    assert stored == [["payload.customer", "acme"], ["payload.customer", "7"], ["payload.customer", ""]]


async def test_what_a_schedule_makes_has_the_values_of_its_rendered_payload(client: Client, world: World) -> None:
    await client.put(DEFINITION, json=LIMITS)
    await create(
        client,
        trigger={"type": "interval", "every": "1h"},
        job={"definition": "log", "payload": {"customer": "${label.customer}"}, "render": True},
        labels={"customer": "acme"},
    )
    made = [await post(client, "/v1/schedules/tick/trigger", None, 201)]
    made.append(await post(client, "/v1/schedules/tick/trigger", {"payload": {"customer": "other"}}, 201))
    past = format_instant(NOW - 3_600_000)
    backfilled = await post(client, "/v1/schedules/tick/backfill", {"from": past, "to": past})
    ids = [*(job["id"] for job in made), *backfilled["jobs"]]
    assert [world.job(id)["limit_keys"][0][1] for id in ids] == ["acme", "other", "acme"]
