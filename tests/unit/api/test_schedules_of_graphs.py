"""Schedules that make several jobs: what is refused, and what an edit, a trigger and a backfill do to all of them."""

from typing import Any

import httpx
import pytest

from hascheduler.model.values.instants import format_instant
from tests.factories import make_job
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import TICK, check_problem, patch, post

PATH = "/v1/schedules/tick"
JOBS: list[dict[str, Any]] = [
    {"ref": "a", "definition": "log", "payload": {"n": 1}},
    {"ref": "b", "definition": "log", "depends_on": ["a"]},
    {"ref": "c", "definition": "log", "depends_on": ["b"]},
]
GRAPH = {"name": "tick", "trigger": {"type": "interval", "every": "1h"}, "jobs": JOBS}


async def test_an_answer_shows_all_jobs_and_can_be_sent_back(client: httpx.AsyncClient) -> None:
    shown = await post(client, "/v1/schedules", GRAPH, 201)
    assert [(job["ref"], job["depends_on"]) for job in shown["jobs"]] == [("a", []), ("b", ["a"]), ("c", ["b"])]
    assert shown["job"] == {name: shown["jobs"][2][name] for name in shown["job"]}
    asked = {name: shown[name] for name in ("trigger", "misfire", "overlap", "job", "jobs", "labels")}
    assert (await client.put(PATH, json=asked)).json() == shown
    assert (await patch(client, {"jobs": JOBS[:2]}))["job"]["definition"] == "log"
    assert (await patch(client, {"jobs": None, "job": {"definition": "one"}}))["jobs"] is None
    assert len((await patch(client, {"jobs": JOBS}))["jobs"]) == 3


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        pytest.param({"jobs": JOBS[:1]}, "jobs", id="one"),
        pytest.param({"jobs": [*JOBS, {"ref": "d", "definition": "log"}]}, "jobs", id="two ends"),
        pytest.param({"jobs": [*JOBS, JOBS[0]]}, "jobs.3.ref", id="a ref twice"),
        pytest.param({"jobs": [{**JOBS[0], "depends_on": ["c"]}, *JOBS[1:]]}, "jobs.0.depends_on", id="a circle"),
        pytest.param({"jobs": [*JOBS[:2], {**JOBS[2], "depends_on": ["b", "x"]}]}, "jobs.2.depends_on.1", id="unknown"),
        pytest.param({"jobs": [{**JOBS[0], "ref": "A"}, *JOBS[1:]]}, "jobs.0.ref", id="no ref"),
        pytest.param({"job": {"definition": "other"}}, "job", id="both"),
        pytest.param({"jobs": [{**job, "payload": "x" * 100_000} for job in JOBS]}, "jobs", id="too large"),
    ],
)
async def test_what_makes_no_sense_is_refused(client: httpx.AsyncClient, changes: dict[str, Any], path: str) -> None:
    check_problem(await client.post("/v1/schedules", json={**GRAPH, **changes}), 422, path)


async def test_a_trigger_makes_all_jobs_once_under_a_key(client: httpx.AsyncClient, world: World) -> None:
    await post(client, "/v1/schedules", GRAPH, 201)
    answers = [await client.post(f"{PATH}/trigger", headers={"Idempotency-Key": "k"}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 200]
    assert answers[0].json()["depends_on"] == ["trigger:tick:0001.b"]
    assert world.job("trigger:tick:0001.a")["payload"] == {"n": 1}
    check_problem(await client.post(f"{PATH}/trigger", json={"payload": 1}), 422, "payload")


async def test_a_trigger_waits_for_all_of_one_graph_and_is_refused_after_a_second(
    client: httpx.AsyncClient, world: World
) -> None:
    await post(client, "/v1/schedules", {**GRAPH, "overlap": "buffer_one"}, 201)
    first, second = [(await post(client, f"{PATH}/trigger", None, 201))["id"] for _ in range(2)]
    assert world.job(f"{first}.a")["waits_for"] == []
    assert set(world.job(f"{second}.a")["waits_for"]) == {first, f"{first}.a", f"{first}.b"}
    assert world.job(f"{second}.a")["ignores_failures"]
    assert world.job(f"{second}.b")["waits_for"] == [f"{second}.a"]
    problem = check_problem(await client.post(f"{PATH}/trigger"), 409)
    assert f"{second!r} of schedule 'tick' waits already" in problem["detail"]


async def test_a_trigger_replaces_all_jobs_of_fires_and_of_no_other(client: httpx.AsyncClient, world: World) -> None:
    await post(client, "/v1/schedules", {**GRAPH, "overlap": "cancel_running"}, 201)
    by_hand = (await post(client, f"{PATH}/trigger", {"overlap": "allow"}, 201))["id"]
    fired = [f"fire:tick:{NOW}{tail}" for tail in (".a", ".b", "")]
    for id in fired:
        await world.jobs.submit(make_job(id, schedule_created_at_ms=NOW, submitted_at_ms=NOW))
    answer = await post(client, f"{PATH}/trigger", None, 201)
    assert [world.job(id)["state"] for id in fired] == ["cancelled"] * 3
    assert world.job(by_hand)["state"] == "pending"
    assert set(world.job(f"{answer['id']}.a")["waits_for"]) >= {*fired, by_hand}


async def test_of_too_many_jobs_in_its_way_a_trigger_waits_for_those_that_run_and_the_newest(
    client: httpx.AsyncClient, world: World
) -> None:
    await post(client, "/v1/schedules", {**GRAPH, "overlap": "cancel_running"}, 201)
    by_hand = [f"trigger:tick:by-hand-{number}" for number in range(120)]
    for number, id in enumerate(by_hand):
        await world.jobs.submit(make_job(id, schedule_created_at_ms=NOW, submitted_at_ms=NOW + number))
    world.rewrite_job(by_hand[7], state="running")
    answer = await post(client, f"{PATH}/trigger", None, 201)
    assert world.job(f"{answer['id']}.a")["waits_for"] == [by_hand[7], *reversed(by_hand[21:])]


async def test_a_backfill_makes_one_graph_after_the_other(client: httpx.AsyncClient, world: World) -> None:
    await post(client, "/v1/schedules", GRAPH, 201)
    hour_ms = 3_600_000
    span = {"from": format_instant(NOW - 2 * hour_ms), "to": format_instant(NOW - hour_ms)}
    assert (await post(client, f"{PATH}/backfill", span))["created"] == 2
    first, second = (f"backfill:tick:{NOW - hours * hour_ms}" for hours in (2, 1))
    assert world.job(f"{second}.a")["waits_for"] == [f"{first}.a", f"{first}.b", first]
    assert world.job(f"{first}.a")["waits_for"] == []
    assert (await post(client, f"{PATH}/backfill", span))["created"] == 0


async def test_all_jobs_belong_to_one_tenant(client: httpx.AsyncClient) -> None:
    jobs = [{**JOBS[0], "tenant": "a"}, JOBS[1], {**JOBS[2], "tenant": "b"}]
    check_problem(await client.post("/v1/schedules", json={**TICK, "job": None, "jobs": jobs}), 422, "jobs.2.tenant")
