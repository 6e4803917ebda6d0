"""Batches: each job has its own answer, and is inserted after those that it depends on."""

from typing import Any

import httpx
import pytest

from hascheduler.api.jobs.dependencies import levels_of
from tests.unit.api.doubles import World
from tests.unit.api.requests import check_problem, get, post

LOG = {"definition": "log"}


async def batch(client: httpx.AsyncClient, *jobs: Any, key: str | None = None) -> dict[str, Any]:
    headers = {} if key is None else {"Idempotency-Key": key}
    answer = await client.post("/v1/jobs:batch", json={"jobs": list(jobs)}, headers=headers)
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    assert len(shown["results"]) == len(jobs)
    return shown


async def test_a_thousand_jobs_are_submitted_and_found_by_their_batch(client: httpx.AsyncClient, world: World) -> None:
    answer = await batch(client, *({**LOG, "payload": n} for n in range(1_000)))
    assert {result["status"] for result in answer["results"]} == {201}
    ids = [result["job"] for result in answer["results"]]
    assert [world.job(id)["payload"] for id in ids] == list(range(1_000))
    page = await get(client, f"/v1/jobs?batch={answer['batch']}&limit=200")
    assert len(page["items"]) == 200
    check_problem(await client.post("/v1/jobs:batch", json={"jobs": [LOG] * 1_001}), 422, "jobs")
    check_problem(await client.post("/v1/jobs:batch", json={"jobs": []}), 422, "jobs")


async def test_a_refused_job_gets_its_problem_in_its_place_and_keeps_no_other_back(
    client: httpx.AsyncClient, world: World
) -> None:
    answer = await batch(client, LOG, {"definition": "log", "priority": 11}, 7, {**LOG, "idempotency_key": "a b"}, LOG)
    assert [result["status"] for result in answer["results"]] == [201, 422, 422, 422, 201]
    assert [error["path"] for error in answer["results"][1]["problem"]["errors"]] == ["priority"]
    assert [result["job"] is None for result in answer["results"]] == [False, True, True, True, False]
    assert len(world.everything()["jobs"]) == 2


async def test_jobs_of_a_batch_depend_on_each_other_by_ref(client: httpx.AsyncClient, world: World) -> None:
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


async def test_cycles_are_refused_with_all_jobs_behind_them(client: httpx.AsyncClient, world: World) -> None:
    answer = await batch(
        client,
        {**LOG, "ref": "a", "depends_on": ["ref:b"]},
        {**LOG, "ref": "b", "depends_on": ["ref:a"]},
        {**LOG, "ref": "self", "depends_on": ["ref:self"]},
        {**LOG, "depends_on": ["ref:a"]},
        LOG,
    )
    assert [result["status"] for result in answer["results"]] == [422, 422, 422, 422, 201]
    assert len(world.everything()["jobs"]) == 1


async def test_a_repeated_batch_is_the_same_batch(client: httpx.AsyncClient, world: World) -> None:
    jobs = [{**LOG, "ref": "a"}, {**LOG, "depends_on": ["ref:a"]}]
    first = await batch(client, *jobs, key="k")
    before = world.everything()
    again = await batch(client, *jobs, key="k")
    assert again["batch"] == first["batch"]
    assert [result["status"] for result in again["results"]] == [200, 200]
    assert [result["job"] for result in again["results"]] == [result["job"] for result in first["results"]]
    assert world.everything() == before


async def test_a_jobs_own_key_goes_before_that_of_the_batch(client: httpx.AsyncClient) -> None:
    first = await batch(client, {**LOG, "idempotency_key": "own"}, LOG, key="k")
    other = await batch(client, {**LOG, "idempotency_key": "own"}, {**LOG, "priority": 6}, key="k")
    assert [result["status"] for result in other["results"]] == [200, 409]
    assert other["results"][0]["job"] == first["results"][0]["job"]


def waits_of(world: World, job: dict[str, Any]) -> tuple[list[str], list[str]]:
    """What it depends on, and what it waits for beside itself."""
    stored = world.job(job["id"])
    return stored["depends_on"], [id for id in stored["waits_for"] if id != job["id"]]


async def test_a_job_waits_for_a_whole_batch_by_one_dependency(client: httpx.AsyncClient, world: World) -> None:
    answer = await batch(client, *[LOG] * 1_000)
    one = (await batch(client, LOG))["results"][0]["job"]
    job = await post(client, "/v1/jobs", {**LOG, "depends_on": [answer["batch"], one, answer["batch"]]}, 201)
    assert waits_of(world, job) == ([answer["batch"], one], [answer["batch"], one])
    assert world.job(job["id"])["waits_for"][0] == job["id"], "so that 0.2.0 does not run it"
    [result] = (await batch(client, {**LOG, "depends_on": [answer["batch"]]}))["results"]
    assert waits_of(world, {"id": result["job"]}) == ([answer["batch"]], [answer["batch"]])


@pytest.mark.parametrize(
    ("states", "ignores", "is_waited_for"),
    [
        (("pending", "succeeded"), False, True), (("pending", "failed"), True, True),
        (("succeeded", "succeeded"), False, False), (("succeeded", "failed"), False, True),
        (("succeeded", "cancelled"), True, False), (("running", "succeeded"), True, True),
    ],
)  # fmt: skip
async def test_what_has_ended_of_a_batch_decides_whether_it_is_waited_for(
    states: tuple[str, ...], ignores: bool, is_waited_for: bool, client: httpx.AsyncClient, world: World
) -> None:
    answer = await batch(client, LOG, LOG)
    for result, state in zip(answer["results"], states, strict=True):
        world.rewrite_job(result["job"], state=state)
    how = {"on_dependency_failure": "ignore"} if ignores else {}
    job = await post(client, "/v1/jobs", {**LOG, "depends_on": [answer["batch"]], **how}, 201)
    assert waits_of(world, job) == ([answer["batch"]], [answer["batch"]] if is_waited_for else [])
    assert not is_waited_for or world.job(job["id"])["waits_for"][0] == job["id"]


async def test_a_job_of_a_batch_can_not_wait_for_that_batch(client: httpx.AsyncClient, world: World) -> None:
    key = "again"
    own = (await batch(client, LOG, key=key))["batch"]
    before = world.everything()
    answer = await batch(client, LOG, {**LOG, "depends_on": [own]}, key=key)
    assert answer["batch"] == own
    [_, refused] = answer["results"]
    assert refused["status"] == 422
    assert refused["problem"]["detail"].startswith("depends_on.0: is the batch of the job itself")
    assert "ref:NAME" in refused["problem"]["detail"]
    assert world.everything() == before


def test_levels_are_in_order_and_leave_out_cycles() -> None:
    levels, in_cycles = levels_of([[1], [2], [], [4], [3], [3], [2, 2]])
    assert levels == [[2], [1, 6], [0]]
    assert in_cycles == [3, 4, 5]
