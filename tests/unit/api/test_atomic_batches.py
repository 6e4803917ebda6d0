"""``POST /v1/jobs:batch`` with ``atomic``: all jobs, or none and the errors of all that are wrong."""

import asyncio
from typing import Any

import httpx
import pytest

from hascheduler.errors import StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.testing.memory.jobs import MemoryJobStore
from tests.unit.api.doubles import World
from tests.unit.api.requests import check_problem, get, post
from tests.unit.api.tokens import Guarded

PATH = "/v1/jobs:batch"
LOG: dict[str, Any] = {"definition": "log"}


def atomic(*jobs: Any) -> dict[str, Any]:
    return {"jobs": list(jobs), "atomic": True}


async def test_all_are_submitted_each_after_what_it_waits_for(client: httpx.AsyncClient, world: World) -> None:
    there = (await post(client, "/v1/jobs", LOG, 201))["id"]
    jobs = [{**LOG, "depends_on": ["ref:a", there]}, {**LOG, "ref": "a"}]
    answer = await post(client, PATH, atomic(*jobs))
    last, first = [one["job"] for one in answer["results"]]
    assert [one["status"] for one in answer["results"]] == [201, 201]
    assert world.job(last)["waits_for"] == [first, there]
    assert {job["id"] for job in (await get(client, f"/v1/jobs?batch={answer['batch']}"))["items"]} == {first, last}


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
async def test_one_that_is_refused_keeps_all_back(
    client: httpx.AsyncClient, world: World, wrong: list[Any], paths: list[str]
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


async def test_under_one_key_it_is_the_same_batch_and_another_one_is_refused(
    client: httpx.AsyncClient, world: World
) -> None:
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


async def test_what_is_too_much_in_all_is_refused_as_a_whole(client: httpx.AsyncClient, world: World) -> None:
    world.database.replace(Collection.TENANTS, {"_id": "default", "rev": 1, "max_pending": 2})
    world.view.waiting["default"] = 1
    before = world.everything()
    assert (await client.post(PATH, json=atomic(LOG, LOG))).status_code == 429
    assert world.everything() == before
    assert len((await post(client, PATH, atomic(LOG)))["results"]) == 1


async def test_a_failure_of_the_database_leaves_nothing(
    client: httpx.AsyncClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(self: MemoryJobStore, jobs: Any) -> Any:
        raise StoreUnavailable("submit the jobs together: away")

    with monkeypatch.context() as patch:
        patch.setattr(MemoryJobStore, "submit_all", away)
        assert (await client.post(PATH, json=atomic(LOG, LOG), headers={"Idempotency-Key": "k"})).status_code == 503
    answer = await client.post(PATH, json=atomic(LOG, LOG), headers={"Idempotency-Key": "k"})
    assert [one["status"] for one in answer.json()["results"]] == [201, 201]


async def test_of_many_at_once_under_one_key_one_submits(client: httpx.AsyncClient) -> None:
    sent = (client.post(PATH, json=atomic(LOG, LOG), headers={"Idempotency-Key": "k"}) for _ in range(8))
    answers = [answer.json()["results"] for answer in await asyncio.gather(*sent)]
    assert sorted(str([one["status"] for one in each]) for each in answers) == ["[200, 200]"] * 7 + ["[201, 201]"]
    assert len({one["job"] for each in answers for one in each}) == 2
