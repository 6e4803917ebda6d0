"""`expires_in` of a schedule's jobs: what a fire, a backfill and a trigger by hand make of it."""

from typing import Any

import httpx
import pytest

from hascheduler.model.collection import Collection
from hascheduler.model.values.instants import format_instant
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import check_problem, create, get, post

JOB = {"definition": "log", "expires_in": "90s"}
HOUR_MS = 3_600_000
HOURLY = {"type": "interval", "every": "1h"}


async def test_the_job_of_a_fire_expires_so_long_after_its_nominal_time(
    client: httpx.AsyncClient, world: World
) -> None:
    shown = await create(client, job=JOB)
    assert shown["job"]["expires_in"] == "1m30s"
    job = await get(client, f"/v1/jobs/{await world.fire(NOW + 7_000)}")
    assert job["expires_at"] == format_instant(NOW + 97_000)


async def test_of_several_jobs_each_has_its_own(client: httpx.AsyncClient, world: World) -> None:
    jobs = [{**JOB, "ref": "a"}, {"definition": "log", "ref": "b", "depends_on": ["a"]}]
    await create(client, job=None, jobs=jobs)
    await world.fire(NOW + 7_000)
    made = {one["_id"]: one["expires_at_ms"] for one in world.database.documents(Collection.JOBS)}
    assert sorted(made.values(), key=str) == [NOW + 97_000, None]


async def test_of_a_backfill_and_of_a_trigger_it_counts_from_the_request(
    client: httpx.AsyncClient, world: World
) -> None:
    await create(client, trigger=HOURLY, job=JOB)
    span = {"from": format_instant(NOW - 2 * HOUR_MS), "to": format_instant(NOW - HOUR_MS)}
    answer = await post(client, "/v1/schedules/tick/backfill", span)
    triggered = await post(client, "/v1/schedules/tick/trigger", status=201)
    for id in (*answer["jobs"], triggered["id"]):
        assert world.job(id)["expires_at_ms"] == NOW + 90_000, id


async def test_it_is_edited_and_taken_away(client: httpx.AsyncClient, world: World) -> None:
    await create(client, job=JOB)
    for given, shown in (("2h", "2h"), (5, "5s"), (None, None)):
        answer = await client.patch("/v1/schedules/tick", json={"job": {"expires_in": given}})
        assert answer.json()["job"]["expires_in"] == shown
    assert "expires_in_ms" not in world.schedule()["job"]


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"job": {**JOB, "expires_in": "0s"}}, "job.expires_in"),
        ({"job": JOB, "trigger": {**HOURLY, "jitter": "90s"}}, "job.expires_in"),
        (
            {"jobs": [{"definition": "log", "ref": "a"}, {**JOB, "expires_in": 0, "ref": "b", "depends_on": ["a"]}]},
            "jobs.1.expires_in",
        ),
    ],
)
async def test_a_span_in_which_nothing_could_begin_is_refused(
    client: httpx.AsyncClient, fields: dict[str, Any], path: str
) -> None:
    body = {"name": "tick", "trigger": HOURLY, **fields}
    problem = check_problem(await client.post("/v1/schedules", json=body), 422)
    assert [error["path"] for error in problem["errors"]] == [path]
