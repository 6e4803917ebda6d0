"""Where dependencies stay within a tenant, a job depends on jobs of its own alone, whoever submits it."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from hascheduler.api.edge import Edge
from tests.unit.api.doubles import World
from tests.unit.api.requests import check_problem

OF_ACME, OF_OTHER = ({"definition": "log", "tenant": tenant} for tenant in ("acme", "other"))


@pytest.fixture
async def client(app: Edge, world: World) -> AsyncIterator[httpx.AsyncClient]:
    app.services = replace(world.services(), is_one_of_several=True)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://api") as client:
        yield client


async def made(client: httpx.AsyncClient, job: Any) -> str:
    answer = await client.post("/v1/jobs", json=job)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def batch_of(client: httpx.AsyncClient, *jobs: Any) -> dict[str, Any]:
    answer = await client.post("/v1/jobs:batch", json={"jobs": list(jobs)})
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


def check_names_both(problem: dict[str, Any]) -> None:
    assert "tenant 'other', and this job of 'acme'" in problem["detail"]


async def test_a_job_of_another_tenant_is_refused(client: httpx.AsyncClient, world: World) -> None:
    own, others = await made(client, OF_ACME), await made(client, OF_OTHER)
    answer = await client.post("/v1/jobs", json={**OF_ACME, "depends_on": [own, others]})
    check_names_both(check_problem(answer, 422, "depends_on.1"))
    assert world.job(await made(client, {**OF_ACME, "depends_on": [own]}))["waits_for"] == [own]


async def test_a_batch_of_another_tenant_is_refused(client: httpx.AsyncClient) -> None:
    others = (await batch_of(client, OF_OTHER, OF_OTHER))["batch"]
    answer = await client.post("/v1/jobs", json={**OF_ACME, "depends_on": [others]})
    check_names_both(check_problem(answer, 422, "depends_on.0"))


async def test_of_a_mixed_batch_a_job_waits_for_those_of_its_tenant(client: httpx.AsyncClient, world: World) -> None:
    mixed = await batch_of(client, OF_ACME, OF_OTHER, OF_ACME)
    waiting = world.job(await made(client, {**OF_ACME, "depends_on": [mixed["batch"]]}))
    assert waiting["waits_for"] == [mixed["results"][0]["job"], mixed["results"][2]["job"]]


@pytest.mark.parametrize("atomic", [False, True])
async def test_within_a_batch_it_is_refused_too(client: httpx.AsyncClient, world: World, atomic: bool) -> None:
    others = await made(client, OF_OTHER)
    jobs = [
        {**OF_OTHER, "ref": "theirs"},
        {**OF_ACME, "depends_on": ["ref:theirs"]},
        {**OF_ACME, "depends_on": [others]},
        OF_ACME,
    ]
    answer = await client.post("/v1/jobs:batch", json={"jobs": jobs, "atomic": atomic})
    if atomic:
        check_names_both(check_problem(answer, 422, "jobs.1.depends_on.0"))
        assert len(world.everything()["jobs"]) == 1
        return
    results = answer.json()["results"]
    assert [result["status"] for result in results] == [201, 422, 422, 201]
    for result in results[1:3]:
        check_names_both(result["problem"])


async def test_elsewhere_a_job_may_depend_on_any(app: Edge, client: httpx.AsyncClient, world: World) -> None:
    app.services = world.services()
    others = await made(client, OF_OTHER)
    await made(client, {**OF_ACME, "depends_on": [others]})
