"""Cancel, reprioritize and retry: one job, or all matching jobs."""

from typing import Any

import httpx
import pytest

from hascheduler.model.job import JobState
from tests.unit.api.doubles import World
from tests.unit.api.requests import check_problem, get, post

LOG = {"definition": "log"}


async def job_in(client: httpx.AsyncClient, world: World, state: str, **body: Any) -> str:
    id = str((await post(client, "/v1/jobs", {**LOG, **body}, 201))["id"])
    world.rewrite_job(id, state=state)
    return id


@pytest.mark.parametrize(
    ("state", "cancel", "reprioritize", "retry"),
    [
        ("pending", "cancelled", "ok", "not_ended"),
        ("dispatched", "cancelled", "already_running", "not_ended"),
        ("running", "already_running", "already_running", "not_ended"),
        ("succeeded", "already_done", "already_done", "not_failed"),
        ("failed", "already_done", "already_done", "ok"),
        ("cancelled", "already_done", "already_done", "ok"),
    ],
)
async def test_each_answer_says_which_state_it_met(
    client: httpx.AsyncClient, world: World, *, state: str, cancel: str, reprioritize: str, retry: str
) -> None:
    ids = [await job_in(client, world, state) for _ in range(3)]
    assert (await post(client, f"/v1/jobs/{ids[0]}/cancel"))["answer"] == cancel
    assert (await post(client, f"/v1/jobs/{ids[1]}/reprioritize", {"priority": 9}))["answer"] == reprioritize
    assert (await post(client, f"/v1/jobs/{ids[2]}/retry"))["answer"] == retry
    assert (await get(client, f"/v1/jobs/{ids[1]}"))["priority"] == (9 if reprioritize == "ok" else 5)
    assert (await get(client, f"/v1/jobs/{ids[2]}"))["state"] == ("pending" if retry == "ok" else state)


@pytest.mark.parametrize(("action", "body"), [("cancel", None), ("reprioritize", {"priority": 1}), ("retry", None)])
async def test_an_unknown_job_is_404(client: httpx.AsyncClient, action: str, body: Any) -> None:
    check_problem(await client.post(f"/v1/jobs/job:nobody/{action}", json=body), 404)


@pytest.mark.parametrize("priority", [-1, 11, "5", 5.5, None, True])
async def test_an_invalid_priority_is_refused(client: httpx.AsyncClient, world: World, priority: Any) -> None:
    id = await job_in(client, world, "pending")
    check_problem(await client.post(f"/v1/jobs/{id}/reprioritize", json={"priority": priority}), 422, "priority")


# All that match


async def test_a_dry_run_counts_and_changes_nothing(client: httpx.AsyncClient, world: World) -> None:
    for state in JobState:
        await job_in(client, world, state)
    before = world.everything()
    for action, matched in (("cancel", 3), ("retry", 1)):
        body = {"filter": {"definition": "log"}, "dry_run": True}
        answer = await post(client, f"/v1/jobs:{action}", body)
        assert answer == {
            "matched": matched, "exact": True, "changed": 0, "asked_to_stop": 0, "refused": 0, "error": None,
            "complete": True, "next": None,
        }  # fmt: skip
    answer = await post(
        client, "/v1/jobs:reprioritize", {"filter": {"definition": "log"}, "priority": 9, "dry_run": True}
    )
    assert answer["matched"] == 1
    assert world.everything() == before


async def test_all_matching_jobs_are_changed_and_no_others(client: httpx.AsyncClient, world: World) -> None:
    ours = [await job_in(client, world, state, labels={"team": "a"}) for state in JobState]
    other = await job_in(client, world, "pending", labels={"team": "b"})
    which = {"filter": {"labels": {"team": "a"}}}
    answer = await post(client, "/v1/jobs:reprioritize", {**which, "priority": 9})
    assert (answer["matched"], answer["changed"], answer["complete"]) == (1, 1, True)
    answer = await post(client, "/v1/jobs:retry", which)
    assert (answer["matched"], answer["changed"]) == (1, 1)
    answer = await post(client, "/v1/jobs:cancel", which)
    assert (answer["matched"], answer["changed"], answer["asked_to_stop"]) == (4, 3, 1)
    states = sorted([(await get(client, f"/v1/jobs/{id}"))["state"] for id in ours])
    assert states == ["cancelled"] * 4 + ["running", "succeeded"]
    assert (await get(client, f"/v1/jobs/{other}"))["state"] == "pending"


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "filter"),
        ({"filter": {}}, "filter"),
        ({"filter": {"labels": {}}}, "filter"),
        ({"filter": {"definition": {"$gt": ""}}}, "filter.definition.$gt"),
        ({"filter": {"state": "done"}}, "filter.state"),
        ({"filter": {"state": ["pending"]}}, "filter.state"),
        ({"filter": {"definition": "log", "$where": "1"}}, "filter.$where"),
        ({"filter": {"labels": {"a": {"$ne": 1}}}}, "filter.labels.a.$ne"),
        ({"filter": "all"}, "filter"),
        ({"filter": {"definition": "log"}, "dry_run": "yes"}, "dry_run"),
    ],
)
async def test_an_invalid_filter_changes_nothing(client: httpx.AsyncClient, world: World, body: Any, path: str) -> None:
    await job_in(client, world, "pending")
    before = world.everything()
    check_problem(await client.post("/v1/jobs:cancel", json=body), 422, path)
    assert world.everything() == before


# Listed by


async def test_jobs_are_listed_by_each_field_of_a_filter(client: httpx.AsyncClient, world: World) -> None:
    id = await job_in(client, world, "failed", labels={"a.b": "c"}, target="t1", tenant="acme")
    await job_in(client, world, "succeeded")
    for query in ("state=failed", "label=a.b%3Dc", "target=t1", "tenant=acme", "definition=log&tenant=acme"):
        assert [job["id"] for job in (await get(client, f"/v1/jobs?{query}"))["items"]] == [id], query
    assert (await get(client, "/v1/jobs?batch=batch:none"))["items"] == []
