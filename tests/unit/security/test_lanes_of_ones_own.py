"""Lanes share before tenants do: a token of one tenant that could name a lane for each of its jobs had every start."""

from typing import Any

import httpx

from hascheduler.model.collection import Collection
from tests.unit.api.doubles import World
from tests.unit.api.requests import check_problem
from tests.unit.simulate.scenarios import job, outcome_of

TICK: dict[str, Any] = {"name": "tick", "trigger": {"type": "interval", "every": "1h"}, "job": {"definition": "log"}}


def refused_lane(answer: httpx.Response, path: str = "lane") -> None:
    (error,) = check_problem(answer, 422)["errors"]
    assert (error["path"], error["problem"]) == (path, "there is no lane 'own'")
    assert error["expected"].startswith("default, or a lane of /v1/lanes")


def test_a_lane_a_job_would_take_every_start() -> None:
    """Why it is refused: what the core makes of such lanes is what their weights say."""
    crowd = [job(f"crowd-{n}", tenant="acme", lane=f"own-{n}") for n in range(10)]
    plain = [job(f"plain-{n}", tenant="globex") for n in range(10)]
    outcome = outcome_of(
        *crowd, *plain, policy="balanced", processors=[{"id": "p", "types": "*", "slots": 11}], until=0
    )
    started = [attempt.job for attempt in outcome.attempts]
    assert sum(each.startswith("crowd") for each in started) == 10


async def test_a_token_of_one_tenant_cannot_name_an_undefined_lane(acme: httpx.AsyncClient, world: World) -> None:
    before = world.database.documents(Collection.JOBS)
    refused_lane(await acme.post("/v1/jobs", json={"definition": "log", "lane": "own"}))
    refused_lane(await acme.post("/v1/schedules", json={**TICK, "job": {**TICK["job"], "lane": "own"}}), "job.lane")
    assert list(world.database.documents(Collection.JOBS)) == list(before)
    assert not list(world.database.documents(Collection.SCHEDULES))


async def test_of_a_batch_the_jobs_with_such_a_lane_are_refused_alone(acme: httpx.AsyncClient) -> None:
    jobs = [{"definition": "log", "lane": "own"}, {"definition": "log"}]
    answer = await acme.post("/v1/jobs:batch", json={"jobs": jobs})
    refused, taken = answer.json()["results"]
    assert (refused["status"], taken["status"]) == (422, 201)
    assert refused["problem"]["errors"][0]["path"] == "lane"


async def test_an_edit_moves_no_schedule_to_such_a_lane(acme: httpx.AsyncClient, world: World) -> None:
    assert (await acme.post("/v1/schedules", json=TICK)).status_code == 201
    for answer in (
        await acme.patch("/v1/schedules/tick", json={"job": {"lane": "own"}}),
        await acme.post("/v1/schedules/tick/preview", json={"job": {"lane": "own"}}),
    ):
        refused_lane(answer, "job.lane")
    assert world.schedule()["job"]["lane"] == "default"


async def test_the_default_lane_and_those_that_are_defined_are_for_all(
    acme: httpx.AsyncClient, boss: httpx.AsyncClient
) -> None:
    assert (await boss.put("/v1/lanes/own", json={"weight": 2})).is_success
    for lane in ("own", "default"):
        assert (await acme.post("/v1/jobs", json={"definition": "log", "lane": lane})).status_code == 201


async def test_a_stored_schedule_with_such_a_lane_can_be_sent_again_and_edited(
    acme: httpx.AsyncClient, boss: httpx.AsyncClient, world: World
) -> None:
    own = {**TICK["job"], "lane": "own", "tenant": "acme"}
    assert (await boss.post("/v1/schedules", json={**TICK, "job": own})).status_code == 201
    assert (await acme.patch("/v1/schedules/tick", json={"overlap": "skip"})).status_code == 200
    assert world.schedule()["job"]["lane"] == "own"


async def test_a_token_for_all_tenants_names_any_lane(boss: httpx.AsyncClient) -> None:
    assert (await boss.post("/v1/jobs", json={"definition": "log", "lane": "own"})).status_code == 201
