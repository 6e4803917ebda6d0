"""What an operation counts and changes is what the list of jobs or schedules shows for the same filter, less what is as
asked already."""

from typing import Any

import httpx
import pytest

from hascheduler.model.collection import Collection
from tests.unit.api.doubles import NOW, World
from tests.unit.api.operations import runner_of, turns
from tests.unit.api.requests import check_problem, get, post
from tests.unit.api.test_job_totals import put
from tests.unit.api.test_schedule_filters import some as some_schedules

AT = "2030-01-01T00:00:00.00{}Z"


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


JOB_ROWS: list[tuple[str, dict[str, Any], dict[str, Any], set[str]]] = [
    ("cancel_jobs", {}, {"id": "fire:"}, {"fire:tick:1", "fire:tock:1"}),
    ("cancel_jobs", {}, {"id": "fire:tick:"}, {"fire:tick:1"}),
    ("cancel_jobs", {}, {"id": "job:0"}, {"job:04"}),
    ("cancel_jobs", {}, {"id": ".*"}, set()),
    ("cancel_jobs", {}, {"id": "\x00"}, set()),
    ("cancel_jobs", {}, {"since": AT.format(4)}, {"job:04", "job:14"}),
    ("cancel_jobs", {}, {"until": AT.format(4)}, {"fire:tick:1", "fire:tock:1"}),
    ("cancel_jobs", {}, {"since": AT.format(2), "until": AT.format(5)}, {"fire:tock:1", "job:04"}),
    ("cancel_jobs", {}, {"since": AT.format(5), "until": AT.format(2)}, set()),
    ("cancel_jobs", {}, {"until": "2031-01-01T00:00:00+01:00"}, {"fire:tick:1", "fire:tock:1", "job:04", "job:14"}),
    ("cancel_jobs", {}, {"unschedulable": True}, {"fire:tick:1", "job:14"}),
    ("cancel_jobs", {}, {"unschedulable": True, "id": "job:"}, {"job:14"}),
    ("cancel_jobs", {}, {"unschedulable": True, "state": "running"}, set()),
    ("retry_jobs", {}, {"unschedulable": True}, set()),
    ("retry_jobs", {}, {"since": AT.format(2)}, {"job:03"}),
    ("retry_jobs", {}, {"id": "job:", "state": "cancelled"}, {"job:05"}),
    ("reprioritize_jobs", {"priority": 9}, {"unschedulable": True, "since": AT.format(1)}, {"job:14"}),
    ("reprioritize_jobs", {"priority": 9}, {"id": "fire:"}, {"fire:tick:1"}),
]  # fmt: skip


@pytest.mark.parametrize(("action", "more", "filter", "meant"), JOB_ROWS)
async def test_jobs_are_meant_by_all_that_the_list_takes(
    client: httpx.AsyncClient, world: World, *, action: str, more: dict[str, Any], filter: Any, meant: set[str]
) -> None:
    some_jobs(world)
    listed = await client.get("/v1/jobs", params={name: str(value) for name, value in filter.items()})
    assert meant <= {job["id"] for job in listed.json()["items"]}
    before = {job["_id"]: job for job in world.everything()["jobs"]}
    body = {"action": action, "filter": filter, **more}
    counted = await post(client, "/v1/operations", {**body, "dry_run": True})
    assert counted == {"matched": len(meant), "exact": True}
    started = await post(client, "/v1/operations", {**body, "expected": len(meant)}, status=202)
    assert started["filter"].keys() == filter.keys()
    await turns(runner_of(world), 2)
    ended = await get(client, f"/v1/operations/{started['id']}")
    assert (ended["state"], ended["changed"] + ended["asked_to_stop"]) == ("done", len(meant))
    assert {job["_id"] for job in world.everything()["jobs"] if job != before[job["_id"]]} == meant


async def test_what_can_not_run_is_not_guessed_by_a_replica_that_does_not_know_all_yet(
    client: httpx.AsyncClient, world: World
) -> None:
    some_jobs(world)
    body = {"action": "cancel_jobs", "filter": {"unschedulable": True}}
    started = await post(client, "/v1/operations", body, status=202)
    world.view.ready = False
    check_problem(await client.post("/v1/operations", json={**body, "dry_run": True}), 503)
    runner = runner_of(world)
    await turns(runner)
    assert (await get(client, f"/v1/operations/{started['id']}"))["state"] == "running"
    world.view.ready = True
    runner._delayed_until_ms.clear()
    await turns(runner)
    assert (await get(client, f"/v1/operations/{started['id']}"))["changed"] == 2


SCHEDULE_ROWS: list[tuple[str, dict[str, Any], str, set[str]]] = [
    ("pause_schedules", {"state": "ended"}, "state=ended", {"c-once", "d-ended"}),
    ("pause_schedules", {"state": "active"}, "state=active", {"a.nightly", "e", "f"}),
    ("pause_schedules", {"state": "paused"}, "state=none", set()),
    ("pause_schedules", {"verdict": "missed"}, "verdict=missed", {"e"}),
    ("pause_schedules", {"verdict": "skipped"}, "verdict=skipped", set()),
    ("pause_schedules", {"verdict": "missed", "tenant": "acme"}, "verdict=missed&tenant=acme", set()),
    ("pause_schedules", {"state": "active", "labels": {"team": "x"}}, "state=active&label=team=x", {"a.nightly", "f"}),
    ("pause_schedules", {"state": "active", "text": "NIGHT"}, "state=active&text=night", {"a.nightly"}),
    ("resume_schedules", {"state": "active"}, "state=none", set()),
    ("resume_schedules", {"text": "night"}, "text=night&state=paused", {"B-Nightly"}),
]


@pytest.mark.parametrize(("action", "filter", "query", "meant"), SCHEDULE_ROWS)
@pytest.mark.parametrize("at_once", [1, 2_000])
async def test_schedules_are_meant_by_all_that_the_list_takes(
    client: httpx.AsyncClient,
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    *,
    action: str,
    filter: Any,
    query: str,
    meant: set[str],
    at_once: int,
) -> None:
    """And slice by slice, where the mirror names more than are looked at."""
    monkeypatch.setattr("hascheduler.api.operations.selection.LABELS_LOOKED_AT_MAX", at_once)
    await some_schedules(client, world)
    if "none" not in query:
        assert {one["name"] for one in (await get(client, f"/v1/schedules?{query}"))["items"]} == meant
    before = {one["_id"]: one["paused_at_ms"] for one in world.everything()["schedules"]}
    body = {"action": action, "filter": filter}
    counted = await post(client, "/v1/operations", {**body, "dry_run": True})
    assert counted == {"matched": len(meant), "exact": True}
    started = await post(client, "/v1/operations", body, status=202)
    await turns(runner_of(world), 5)
    ended = await get(client, f"/v1/operations/{started['id']}")
    assert (ended["state"], ended["changed"]) == ("done", len(meant)), ended
    changed = {one["_id"] for one in world.everything()["schedules"] if one["paused_at_ms"] != before[one["_id"]]}
    assert changed == meant


async def test_a_count_that_may_miss_some_says_so(
    client: httpx.AsyncClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hascheduler.api.schedules.selection.LABELLED_MAX", 1)
    await some_schedules(client, world)
    body = {"action": "pause_schedules", "filter": {"state": "active", "labels": {"team": "x"}}}
    counted = await post(client, "/v1/operations", {**body, "dry_run": True})
    assert not counted["exact"]
    refused = await client.post("/v1/operations", json={**body, "expected": 0})
    assert "at least 1 match now" in check_problem(refused, 409)["detail"]


@pytest.mark.parametrize(
    ("action", "filter", "path"),
    [
        ("cancel_jobs", {"id": ""}, "filter.id"),
        ("cancel_jobs", {"id": "x" * 321}, "filter.id"),
        ("cancel_jobs", {"since": 1_893_456_000_000}, "filter.since"),
        ("cancel_jobs", {"since": "yesterday"}, "filter.since"),
        ("cancel_jobs", {"until": "2030-01-01T00:00:00"}, "filter.until"),
        ("cancel_jobs", {"unschedulable": "true"}, "filter.unschedulable"),
        ("cancel_jobs", {"unschedulable": False}, "filter"),
        ("cancel_jobs", {"verdict": "missed"}, "filter.verdict"),
        ("cancel_jobs", {"state": "ended"}, "filter.state"),
        ("pause_schedules", {"verdict": "fired"}, "filter.verdict"),
        ("pause_schedules", {"verdict": "late"}, "filter.verdict"),
        ("pause_schedules", {"verdict": ["missed"]}, "filter.verdict"),
        ("pause_schedules", {"id": "fire:"}, "filter.id"),
        ("pause_schedules", {"since": AT.format(1)}, "filter.since"),
        ("pause_schedules", {"until": AT.format(1)}, "filter.until"),
        ("pause_schedules", {"text": "a", "unschedulable": True}, "filter.unschedulable"),
    ],
)
async def test_what_it_can_not_mean_is_refused(
    client: httpx.AsyncClient, world: World, *, action: str, filter: Any, path: str
) -> None:
    check_problem(await client.post("/v1/operations", json={"action": action, "filter": filter}), 422, path)
    assert not world.everything()[Collection.OPERATIONS]
