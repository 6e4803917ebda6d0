"""Schedules: how they are stored and shown, the jobs that they make, and what edits, pauses and resets keep."""

from typing import Any

import pytest

from hascheduler.dispatch.decisions import ResetCursor
from hascheduler.model.collection import Collection
from hascheduler.model.values.instants import WallMs, format_instant
from hascheduler.model.verdict import Verdict
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import DEFAULT_NARROWING, NOW_TEXT, TICK, Client, check_problem, create, get, patch, post

NOTHING_COUNTED = {
    "fired": 0, "skipped": 0, "missed": 0, "coalesced": 0, "paused": 0, "excluded": 0, "throttled": 0, "unstorable": 0,
}  # fmt: skip


async def test_a_schedule_is_stored_with_its_defaults_and_shown(client: Client, world: World) -> None:
    answer = await client.post("/v1/schedules", json=TICK)
    assert answer.status_code == 201
    assert answer.headers["location"] == "/v1/schedules/tick"
    assert world.schedule() == {
        "_id": "tick", "v": 1, "rev": 1, "trigger": {"type": "interval", "every_ms": 1000, "anchor_ms": NOW},
        "since_ms": NOW, "past": [], "paused_at_ms": None, "paused_because": None,
        "policy": {
            "grace_ms": 60_000, "catch_up": "latest", "catch_up_max": 1_000, "overlap": "allow",
            "pause_after_failures": None,
        },
        "job": {
            "definition": "log", "target": "tick", "tenant": "default", "lane": "default", "fairness_key": "default",
            "priority": 5, "mode": "queued", "resources": None,
        },
        "payload": None, "render": False, "labels": {}, "created_at_ms": NOW, "cursor_ms": NOW,
        "tally": [0, 0, 0, 0, 0, 0], "failures": 0, "throttled": 0,
    }  # fmt: skip
    shown = {
        "name": "tick", "rev": 1, "misfire": {"grace": "1m", "catch_up": "latest", "limit": 1000}, "overlap": "allow",
        "trigger": {"type": "interval", "every": "1s", "anchor": NOW_TEXT, **DEFAULT_NARROWING},
        "pause_after_failures": None, "jobs": None, "labels": {}, "created_at": NOW_TEXT,
        "job": {
            "definition": "log", "target": "tick", "payload": None, "render": False, "priority": 5,
            "tenant": "default", "fairness_key": "default", "lane": "default", "mode": "queued", "expires_in": None,
            "resources": None,
        },
        "paused": False, "paused_at": None, "paused_because": None, "last_nominal_at": None, "ahead_until": None,
        "next_at": "2030-01-01T00:00:01.000Z", "next_due_at": "2030-01-01T00:00:01.000Z",
        "counts": NOTHING_COUNTED, "failures_in_a_row": 0, "late": False, "warnings": [],
    }  # fmt: skip
    assert answer.json() == shown
    assert await get(client, "/v1/schedules/tick") == shown
    assert await get(client, "/v1/schedules") == {"items": [shown], "next": None, "unreadable": []}


async def test_a_document_that_cannot_be_read_does_not_hide_the_others_and_a_replacement_repairs_it(
    client: Client, world: World
) -> None:
    await create(client)
    breaks: dict[str, dict[str, Any]] = {
        "no-such-hour": {"trigger": {"type": "cron", "expression": "0 99 * * *", "timezone": "UTC"}},
        "no-job": {"job": None},
        "no-cursor": {"cursor_ms": "x"},
        "no-counts": {"tally": [1]},
    }
    for name, fields in breaks.items():
        await create(client, name=name)
        world.rewrite(Collection.SCHEDULES, name, **fields)
    page = await get(client, "/v1/schedules")
    assert [item["name"] for item in page["items"]] == ["tick"]
    assert {one["id"] for one in page["unreadable"]} == set(breaks)
    for name in breaks:
        check_problem(await client.get(f"/v1/schedules/{name}"), 409)
        check_problem(await client.patch(f"/v1/schedules/{name}", json={"overlap": "skip"}), 409)
        check_problem(await client.post(f"/v1/schedules/{name}/pause"), 409)
        repaired = await client.put(f"/v1/schedules/{name}", json={**TICK, "name": name})
        assert repaired.status_code == 200, repaired.text
        assert repaired.json() == {**await get(client, f"/v1/schedules/{name}"), "rev": 2}
        # No nominal time before the repair comes into force by it.
        assert repaired.json()["next_at"] == "2030-01-01T00:00:01.000Z"


PATH = "/v1/schedules/tick"
JOBS: list[dict[str, Any]] = [
    {"ref": "a", "definition": "log", "payload": {"n": 1}},
    {"ref": "b", "definition": "log", "depends_on": ["a"]},
    {"ref": "c", "definition": "log", "depends_on": ["b"]},
]
GRAPH = {"name": "tick", "trigger": {"type": "interval", "every": "1h"}, "jobs": JOBS}


async def test_an_answer_shows_all_jobs_and_can_be_sent_back(client: Client) -> None:
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
        pytest.param({"jobs": [*JOBS, {"ref": "d", "definition": "log"}]}, "jobs", id="two ends"),
        pytest.param({"jobs": [*JOBS, JOBS[0]]}, "jobs.3.ref", id="a ref twice"),
        pytest.param({"jobs": [{**JOBS[0], "depends_on": ["c"]}, *JOBS[1:]]}, "jobs.0.depends_on", id="a circle"),
        pytest.param({"jobs": [*JOBS[:2], {**JOBS[2], "depends_on": ["b", "x"]}]}, "jobs.2.depends_on.1", id="unknown"),
        pytest.param({"jobs": [{**job, "tenant": job["ref"]} for job in JOBS]}, "jobs.1.tenant", id="tenants"),
        pytest.param({"job": {"definition": "other"}}, "job", id="both"),
        pytest.param({"jobs": [{**job, "payload": "x" * 100_000} for job in JOBS]}, "jobs", id="too large"),
    ],
)
async def test_what_makes_no_sense_is_refused(client: Client, changes: dict[str, Any], path: str) -> None:
    check_problem(await client.post("/v1/schedules", json={**GRAPH, **changes}), 422, path)


async def test_a_trigger_makes_all_jobs_once_under_a_key(client: Client, world: World) -> None:
    await post(client, "/v1/schedules", GRAPH, 201)
    answers = [await client.post(f"{PATH}/trigger", headers={"Idempotency-Key": "k"}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 200]
    assert answers[0].json()["depends_on"] == ["trigger:tick:0001.b"]
    assert world.job("trigger:tick:0001.a")["payload"] == {"n": 1}
    check_problem(await client.post(f"{PATH}/trigger", json={"payload": 1}), 422, "payload")


async def test_a_backfill_makes_one_graph_after_the_other(client: Client, world: World) -> None:
    await post(client, "/v1/schedules", GRAPH, 201)
    hour_ms = 3_600_000
    span = {"from": format_instant(NOW - 2 * hour_ms), "to": format_instant(NOW - hour_ms)}
    assert (await post(client, f"{PATH}/backfill", span))["created"] == 2
    first, second = (f"backfill:tick:{NOW - hours * hour_ms}" for hours in (2, 1))
    assert world.job(f"{second}.a")["waits_for"] == [f"{first}.a", f"{first}.b", first]
    assert world.job(f"{first}.a")["waits_for"] == []
    assert (await post(client, f"{PATH}/backfill", span))["created"] == 0


JOB = {"definition": "log", "expires_in": "90s"}
HOURLY = {"type": "interval", "every": "1h"}


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"job": {**JOB, "expires_in": "0s"}}, "job.expires_in"),
        ({"job": JOB, "trigger": {**HOURLY, "jitter": "90s"}}, "job.expires_in"),
    ],
)
async def test_a_span_in_which_nothing_could_begin_is_refused(
    client: Client, fields: dict[str, Any], path: str
) -> None:
    body = {"name": "tick", "trigger": HOURLY, **fields}
    problem = check_problem(await client.post("/v1/schedules", json=body), 422)
    assert [error["path"] for error in problem["errors"]] == [path]


LOG = {"definition": "log"}


@pytest.mark.parametrize(
    ("trigger", "earlier"),
    [
        (
            {"type": "times", "at": ["2030-01-01T00:30:00Z", "2030-01-01T01:00:00Z"]},
            {"type": "times", "at": ["2030-01-01T00:30:00Z"]},
        ),
        (
            {"type": "interval", "every": "1m", "end_at": "2030-01-01T01:00:00Z"},
            {"type": "interval", "every": "1m", "end_at": "2030-01-01T00:59:00Z"},
        ),
    ],
)
async def test_a_trigger_that_has_passed_may_be_sent_again_but_not_changed(
    client: Client, world: World, trigger: dict[str, Any], earlier: dict[str, Any]
) -> None:
    await create(client, trigger=trigger)
    world.clock.now = WallMs(NOW + 2 * 3_600_000)
    again = await client.put("/v1/schedules/tick", json={**TICK, "trigger": trigger, "overlap": "skip"})
    assert again.status_code == 200, again.text
    refused = await client.put("/v1/schedules/tick", json={**TICK, "trigger": earlier})
    check_problem(refused, 422, "trigger.end_at" if "end_at" in trigger else "trigger.at")


async def test_an_edit_is_not_retroactive_and_loses_nothing(client: Client, world: World) -> None:
    await create(client)
    await world.fire(NOW + 1_000)
    world.clock.now = WallMs(NOW + 3_500)
    shown = await patch(client, {"trigger": {"every": "10s"}})
    assert shown["next_at"] == "2030-01-01T00:00:02.000Z"  # still of the trigger before
    stored = world.schedule()
    assert (stored["since_ms"], stored["cursor_ms"]) == (NOW + 3_500, NOW + 1_000)
    assert [(stretch["since_ms"], stretch["through_ms"]) for stretch in stored["past"]] == [(NOW, NOW + 3_500)]
    await world.fire(NOW + 3_000)
    assert (await get(client, "/v1/schedules/tick"))["next_at"] == "2030-01-01T00:00:10.000Z"


async def test_too_many_edits_without_a_leader_are_a_conflict(client: Client, world: World) -> None:
    await create(client)
    for n in range(32):
        world.clock.now = WallMs(world.clock.now + 60_000)
        await patch(client, {"trigger": {"every": f"{n + 2}s"}})
    world.clock.now = WallMs(world.clock.now + 60_000)
    problem = check_problem(await client.patch("/v1/schedules/tick", json={"trigger": {"every": "1m"}}), 409)
    assert "leader" in problem["detail"]


async def test_a_replacement_leaves_a_pause_alone(client: Client) -> None:
    await create(client, paused=True)
    shown = (await client.put("/v1/schedules/tick", json={**TICK, "trigger": {"type": "interval", "every": 5}})).json()
    assert shown["paused"] is True
    for method in ("PUT", "PATCH"):
        answer = await client.request(method, "/v1/schedules/tick", json={**TICK, "paused": False})
        problem = check_problem(answer, 422, "paused")
        assert "resume" in problem["detail"]


PATCHES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("nothing", {}, {}),
    ("a policy", {"overlap": "skip"}, {"overlap": "skip"}),
    (
        "a part of the misfire policy",
        {"misfire": {"limit": 3}},
        {"misfire": {"grace": "5m", "catch_up": "all", "limit": 3}},
    ),
    (
        "null of a part is its default",
        {"misfire": {"grace": None}},
        {"misfire": {"grace": "1m", "catch_up": "all", "limit": 9}},
    ),
    ("a label more", {"labels": {"tier": "1"}}, {"labels": {"team": "a", "tier": "1"}}),
    ("a label less", {"labels": {"team": None}}, {"labels": {}}),
    ("a field that is not set can be removed", {"labels": {"x": None}, "nothing": None}, {}),
    ("the name, as it is", {"name": "tick"}, {}),
]


@pytest.mark.parametrize(("patch_body", "changed"), [row[1:] for row in PATCHES], ids=[row[0] for row in PATCHES])
async def test_a_patch_changes_only_the_fields_that_it_names(
    client: Client, patch_body: dict[str, Any], changed: dict[str, Any]
) -> None:
    before = await create(
        client,
        misfire={"grace": "5m", "catch_up": "all", "limit": 9},
        pause_after_failures=2,
        labels={"team": "a"},
    )
    shown = await patch(client, patch_body)
    assert shown == {**before, **changed, "rev": 2 if changed else 1}


@pytest.mark.parametrize(("old", "new"), [(1, True), (1, 1.0), (0, False), ({"a": [1]}, {"a": [True]})])
async def test_values_that_only_python_calls_equal_are_a_change(client: Client, old: object, new: object) -> None:
    await create(client, job={**LOG, "payload": old})
    assert (await patch(client, {"job": {"payload": new}}))["rev"] == 2


AHEAD_MS = 10_800_000
RESET = "/v1/schedules/tick/reset"


async def ahead(client: Client, world: World, name: str = "tick", **fields: Any) -> None:
    """Its times of the next three hours were passed over, and the last of them fired."""
    await create(client, name=name, **fields)
    await world.pass_over(Verdict.COALESCED, NOW + 1_000, NOW + AHEAD_MS - 1_000, count=10_799, name=name)
    await world.fire(NOW + AHEAD_MS, name)


async def test_a_reset_is_asked_for_once_and_the_leader_carries_it_out(client: Client, world: World) -> None:
    await ahead(client, world)
    world.clock.now = WallMs(NOW + 5_500)
    asked = await post(client, RESET, {"from": "now"})
    assert (asked["rev"], world.schedule()["reset_at_ms"]) == (2, NOW + 5_500)
    assert asked["warnings"] == ["the leader is about to reset it"]
    world.clock.now = WallMs(NOW + 6_500)
    assert (await post(client, RESET))["rev"] == 2
    await world.decide(ResetCursor("tick", WallMs(NOW + 5_500), NOW))
    shown = await get(client, "/v1/schedules/tick")
    assert (shown["ahead_until"], shown["warnings"]) == (None, [])
    assert shown["next_at"] == "2030-01-01T00:00:06.000Z"
    assert (shown["counts"]["fired"], shown["counts"]["coalesced"]) == (1, 5)
    assert await post(client, RESET) == shown
    # Its times up to the one that fired too early, and after that one, but not that one.
    preview = await get(client, "/v1/schedules/tick/verdicts")
    assert [one["verdict"] for one in preview["items"]] == ["fired", "coalesced"]


async def test_what_a_reset_can_not_do_is_refused(client: Client, world: World) -> None:
    await ahead(client, world)
    check_problem(await client.post(RESET, json={"from": NOW_TEXT}), 422)
    check_problem(await client.post(RESET, headers={"if-match": '"7"'}), 412)
    check_problem(await client.post("/v1/schedules/nothing/reset"), 404)
    await post(client, "/v1/schedules/tick/pause")
    refused = check_problem(await client.post(RESET), 409)
    assert "resume it before the reset" in refused["detail"]
    # And the remedy that is named does both.
    [warning] = (await get(client, "/v1/schedules/tick"))["warnings"]
    assert "hascheduler schedule resume tick && hascheduler schedule reset tick --from now" in warning
    await post(client, "/v1/schedules/tick/resume")
    await post(client, RESET)
    assert world.schedule()["reset_at_ms"] == NOW
