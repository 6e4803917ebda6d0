"""One action on all that match: counted, begun at once, carried out in slices, followed and stopped."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from hascheduler.api.admission.operation_queue import HELD_MAX
from hascheduler.api.operations import runner as running
from hascheduler.api.operations.slices import JOBS_AT_ONCE
from hascheduler.model.collection import Collection
from hascheduler.model.job import JobState
from hascheduler.ports import BulkOperation, LeaderLag
from tests.unit.api.doubles import World
from tests.unit.api.operations import REPLICA, runner_of, stored, turns
from tests.unit.api.requests import check_problem, create, get, post
from tests.unit.api.tokens import Guarded

LOG = {"definition": "log"}
CANCEL = {"action": "cancel_jobs", "filter": LOG}


async def submit(client: httpx.AsyncClient, count: int, **body: Any) -> list[str]:
    ids: list[str] = []
    for first in range(0, count, 1_000):
        jobs = [{**LOG, **body}] * min(1_000, count - first)
        ids += [one["job"] for one in (await post(client, "/v1/jobs:batch", {"jobs": jobs}))["results"]]
    return ids


async def start(client: httpx.AsyncClient, body: Any, **headers: str) -> dict[str, Any]:
    answer = await client.post("/v1/operations", json=body, headers=headers)
    assert answer.status_code == 202, answer.text
    shown: dict[str, Any] = answer.json()
    assert answer.headers["location"] == f"/v1/operations/{shown['id']}"
    return shown


async def done(client: httpx.AsyncClient, world: World, body: Any) -> dict[str, Any]:
    """How it ended, run by one replica."""
    operation = await start(client, body)
    await turns(runner_of(world), 2 + operation["matched"] // JOBS_AT_ONCE)
    shown: dict[str, Any] = await get(client, f"/v1/operations/{operation['id']}")
    return shown


# Jobs


async def test_it_is_answered_at_once_and_carried_out_in_slices(client: httpx.AsyncClient, world: World) -> None:
    await submit(client, JOBS_AT_ONCE + 1)
    operation = await start(client, {**CANCEL, "reason": "wrong images", "expected": JOBS_AT_ONCE})
    assert (operation["state"], operation["matched"], operation["changed"]) == ("running", JOBS_AT_ONCE + 1, 0)
    runner = runner_of(world)
    await turns(runner)
    half = await get(client, f"/v1/operations/{operation['id']}")
    assert (half["state"], half["changed"]) == ("running", JOBS_AT_ONCE)
    await turns(runner)
    assert await get(client, f"/v1/operations/{operation['id']}") == {
        "id": operation["id"], "action": "cancel_jobs", "filter": LOG, "priority": None, "catch_up": False,
        "reason": "wrong images", "state": "done", "matched": JOBS_AT_ONCE + 1, "exact": True,
        "changed": JOBS_AT_ONCE + 1, "asked_to_stop": 0, "refused": 0, "error": None, "by": "anonymous",
        "started_at": operation["started_at"], "ended_at": operation["started_at"], "stop_requested_at": None,
        "stop_requested_by": None,
    }  # fmt: skip
    assert {job["state"] for job in world.database.documents(Collection.JOBS)} == {"cancelled"}
    assert (await get(client, "/v1/operations"))["items"][0]["state"] == "done"


@pytest.mark.parametrize(
    ("body", "changed", "asked", "left"),
    [
        ({"action": "cancel_jobs"}, 2, 1, {"cancelled": 3, "running": 1, "succeeded": 1, "failed": 1}),
        ({"action": "cancel_jobs", "state": "pending"}, 1, 0, {"cancelled": 2, "dispatched": 1, "running": 1,
                                                               "succeeded": 1, "failed": 1}),
        ({"action": "cancel_jobs", "state": "failed"}, 0, 0, dict.fromkeys(JobState, 1)),
        ({"action": "retry_jobs"}, 1, 0, {"pending": 2, "dispatched": 1, "running": 1, "succeeded": 1,
                                          "cancelled": 1}),
        ({"action": "retry_jobs", "state": "cancelled"}, 1, 0, {"pending": 2, "dispatched": 1, "running": 1,
                                                                "succeeded": 1, "failed": 1}),
        ({"action": "reprioritize_jobs", "priority": 9}, 1, 0, dict.fromkeys(JobState, 1)),
    ],
)  # fmt: skip
async def test_each_action_changes_the_jobs_that_it_may(
    client: httpx.AsyncClient, world: World, *, body: dict[str, Any], changed: int, asked: int, left: dict[str, int]
) -> None:
    for state, id in zip(JobState, await submit(client, len(JobState)), strict=True):
        world.rewrite_job(id, state=state.value)
    [other] = await submit(client, 1, labels={"team": "b"}, definition="other")
    filter = {**LOG, **({"state": body["state"]} if "state" in body else {})}
    asked_for = {name: value for name, value in body.items() if name != "state"} | {"filter": filter}
    counted = (await post(client, "/v1/operations", {**asked_for, "dry_run": True}))["matched"]
    operation = await done(client, world, asked_for)
    assert (operation["matched"], operation["changed"], operation["asked_to_stop"]) == (changed + asked, changed, asked)
    assert counted == changed + asked
    states = [job["state"] for job in world.database.documents(Collection.JOBS) if job["definition"] == "log"]
    assert {state: states.count(state) for state in states} == left
    assert world.job(other)["state"] == "pending"
    if "priority" in body:
        priorities = {job["state"]: job["priority"] for job in world.database.documents(Collection.JOBS)}
        assert priorities["running"] == 5
        assert 9 in [job["priority"] for job in world.database.documents(Collection.JOBS)]


async def test_what_is_submitted_after_it_began_is_left_alone(client: httpx.AsyncClient, world: World) -> None:
    await submit(client, 2)
    operation = await start(client, CANCEL)
    world.clock.now = type(world.clock.now)(world.clock.now + 1)
    [late] = await submit(client, 1)
    await turns(runner_of(world), 2)
    assert (await get(client, f"/v1/operations/{operation['id']}"))["changed"] == 2
    assert world.job(late)["state"] == "pending"


async def test_what_fails_again_is_not_revived_again(client: httpx.AsyncClient, world: World) -> None:
    ids = await submit(client, JOBS_AT_ONCE + 1)
    for id in ids:
        world.rewrite_job(id, state="failed")
    operation = await start(client, {"action": "retry_jobs", "filter": LOG})
    runner = runner_of(world)
    await turns(runner)
    for id in ids[:JOBS_AT_ONCE]:
        world.rewrite_job(id, state="failed")
    await turns(runner, 3)
    ended = await get(client, f"/v1/operations/{operation['id']}")
    assert (ended["state"], ended["changed"]) == ("done", JOBS_AT_ONCE + 1)


# Schedules


async def made_schedules(client: httpx.AsyncClient, count: int = 3) -> list[str]:
    names = [f"Nightly-{number:03}" for number in range(count)]
    for name in names:
        await create(client, name=name, labels={"team": "a"})
    await create(client, name="hourly", labels={"team": "b"})
    return names


async def test_all_schedules_that_match_are_paused_and_resumed(client: httpx.AsyncClient, world: World) -> None:
    names = await made_schedules(client, 40)
    pause = {"action": "pause_schedules", "filter": {"text": "nightly"}, "reason": "the disk is full"}
    operation = await done(client, world, pause)
    assert (operation["matched"], operation["changed"], operation["state"]) == (40, 40, "done")
    operation = await done(client, world, {**pause, "filter": {"text": "nightly", "state": "active"}})
    assert (operation["matched"], operation["changed"], operation["state"]) == (0, 0, "done")
    shown = await get(client, f"/v1/schedules/{names[39]}")
    assert (shown["paused"], shown["paused_because"]) == (True, "the disk is full")
    assert not (await get(client, "/v1/schedules/hourly"))["paused"]
    resume = {"action": "resume_schedules", "filter": {"labels": {"team": "a"}}, "catch_up": True}
    operation = await start(client, resume)
    await turns(runner_of(world), 3)
    operation = await get(client, f"/v1/operations/{operation['id']}")
    assert (operation["matched"], operation["changed"], operation["state"]) == (40, 40, "done")
    assert not (await get(client, f"/v1/schedules/{names[0]}"))["paused"]


async def test_all_schedules_that_match_are_triggered_once_though_a_slice_is_repeated(
    client: httpx.AsyncClient, world: World
) -> None:
    names = await made_schedules(client)
    operation = await start(client, {"action": "trigger_schedules", "filter": {"labels": {"team": "a"}}})
    runner = runner_of(world)
    for lost in ("matches.schedules", "jobs.submit", "operations.write"):
        world.connection.fail_next(of=lost, carried_out=lost != "matches.schedules")
        await turns(runner)
        runner._delayed_until_ms.clear()
    await turns(runner)
    ended = await get(client, f"/v1/operations/{operation['id']}")
    assert (ended["state"], ended["changed"], ended["refused"]) == ("done", 3, 0)
    assert sorted(job["schedule"] for job in world.database.documents(Collection.JOBS)) == names


async def test_a_schedule_that_can_not_be_changed_is_counted_and_the_others_are(
    client: httpx.AsyncClient, world: World
) -> None:
    names = await made_schedules(client)
    world.rewrite(Collection.SCHEDULES, names[1], trigger={"type": "nonsense"})
    await client.patch(f"/v1/schedules/{names[0]}", json={"overlap": "skip"})
    await post(client, f"/v1/schedules/{names[0]}/trigger", status=201)
    ended = await done(client, world, {"action": "trigger_schedules", "filter": {"text": "nightly"}})
    assert (ended["state"], ended["changed"], ended["refused"]) == ("done", 1, 2)
    assert "overlap is skip" in ended["error"] or "can't be read" in ended["error"]


# What is asked


async def test_a_count_changes_nothing_and_leaves_no_record(client: httpx.AsyncClient, world: World) -> None:
    await submit(client, 3)
    before = world.everything()
    assert await post(client, "/v1/operations", {**CANCEL, "dry_run": True}) == {"matched": 3, "exact": True}
    await world.audit_writer.flush()
    assert world.everything() == {**before, "audit": world.everything()["audit"]}
    assert "/v1/operations" not in [record["path"] for record in world.everything()["audit"]]


async def test_a_count_that_grew_is_a_conflict_that_says_how_many(client: httpx.AsyncClient, world: World) -> None:
    await submit(client, 12)
    problem = check_problem(await client.post("/v1/operations", json={**CANCEL, "expected": 10}), 409)
    assert "12 match now, and 10 were expected" in problem["detail"]
    assert not world.everything()["operations"]
    await start(client, {**CANCEL, "expected": 11})
    await start(client, {**CANCEL, "expected": 100})


async def test_under_one_key_one_operation_begins(client: httpx.AsyncClient, world: World) -> None:
    key = {"Idempotency-Key": "once"}
    first = await start(client, CANCEL, **key)
    again = await client.post("/v1/operations", json=CANCEL, headers=key)
    assert (again.status_code, again.json(), again.headers["idempotency-replayed"]) == (202, first, "true")
    other = {**CANCEL, "reason": "another"}
    check_problem(await client.post("/v1/operations", json=other, headers=key), 409)
    assert len(world.everything()["operations"]) == 1


async def test_a_party_has_few_unfinished_ones_at_a_time(client: httpx.AsyncClient, world: World) -> None:
    ids = [(await start(client, CANCEL))["id"] for _ in range(4)]
    answer = await client.post("/v1/operations", json=CANCEL)
    check_problem(answer, 429)
    assert answer.headers["retry-after"]
    await turns(runner_of(world))
    assert stored(world, ids[0])["state"] == "done"
    await start(client, CANCEL)


async def test_a_replica_takes_no_more_than_it_can_hold(client: httpx.AsyncClient, world: World) -> None:
    await start(client, CANCEL)
    operation = world.operation_queue.take()
    assert operation is not None
    for _ in range(HELD_MAX):
        world.operation_queue.put(operation)
    answer = await client.post("/v1/operations", json=CANCEL)
    assert check_problem(answer, 503)["type"].endswith("overloaded")


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "action"),
        ({"action": "delete_jobs", "filter": LOG}, "action"),
        ({"action": "cancel_jobs"}, "filter"),
        ({"action": "cancel_jobs", "filter": {}}, "filter"),
        ({"action": "cancel_jobs", "filter": {"labels": {}}}, "filter"),
        ({"action": "cancel_jobs", "filter": {"text": "a"}}, "filter.text"),
        ({"action": "cancel_jobs", "filter": {"state": "paused"}}, "filter.state"),
        ({"action": "cancel_jobs", "filter": {"state": "done"}}, "filter.state"),
        ({"action": "cancel_jobs", "filter": {"definition": {"$gt": ""}}}, "filter.definition.$gt"),
        ({"action": "cancel_jobs", "filter": {**LOG, "$where": "1"}}, "filter.$where"),
        ({"action": "pause_schedules", "filter": LOG}, "filter.definition"),
        ({"action": "pause_schedules", "filter": {"state": "pending"}}, "filter.state"),
        ({"action": "pause_schedules", "filter": {"text": ""}}, "filter.text"),
        ({"action": "pause_schedules", "filter": {"text": "a" * 129}}, "filter.text"),
        ({"action": "pause_schedules", "filter": {"text": "a\u2029b"}}, "filter.text"),
        ({"action": "reprioritize_jobs", "filter": LOG}, "priority"),
        ({"action": "reprioritize_jobs", "filter": LOG, "priority": 11}, "priority"),
        ({**CANCEL, "priority": 3}, "priority"),
        ({**CANCEL, "catch_up": True}, "catch_up"),
        ({**CANCEL, "expected": -1}, "expected"),
        ({**CANCEL, "expected": "12"}, "expected"),
        ({**CANCEL, "reason": "a" * 257}, "reason"),
        ({**CANCEL, "dry_run": 1}, "dry_run"),
    ],
)
async def test_an_invalid_request_changes_nothing(
    client: httpx.AsyncClient, world: World, body: Any, path: str
) -> None:
    check_problem(await client.post("/v1/operations", json=body), 422, path)
    assert not world.everything()["operations"]


async def test_a_text_is_taken_literally(client: httpx.AsyncClient, world: World) -> None:
    await made_schedules(client)
    for text, matched in ((".*", 0), ("-00", 3), ("HOURLY", 1), ("nightly-001", 1)):
        body = {"action": "pause_schedules", "filter": {"text": text}, "dry_run": True}
        assert (await post(client, "/v1/operations", body))["matched"] == matched, text


# To stop it


async def test_a_stop_ends_it_after_the_slice_under_way(client: httpx.AsyncClient, world: World) -> None:
    await submit(client, 3 * JOBS_AT_ONCE)
    operation = await start(client, CANCEL)
    runner = runner_of(world)
    await turns(runner)
    asked = await post(client, f"/v1/operations/{operation['id']}/stop")
    assert (asked["state"], asked["stop_requested_by"]) == ("running", "anonymous")
    await turns(runner, 2)
    ended = await post(client, f"/v1/operations/{operation['id']}/stop")
    assert (ended["state"], ended["ended_at"] is not None) == ("stopped", True)
    assert ended["changed"] in (JOBS_AT_ONCE, 2 * JOBS_AT_ONCE)
    assert stored(world, operation["id"])["expire_at"] is not None


async def test_one_that_waits_is_stopped_before_it_began(client: httpx.AsyncClient, world: World) -> None:
    await submit(client, 1)
    operation = await start(client, CANCEL)
    await post(client, f"/v1/operations/{operation['id']}/stop")
    await turns(runner_of(world))
    ended = await get(client, f"/v1/operations/{operation['id']}")
    assert (ended["state"], ended["changed"]) == ("stopped", 0)


async def test_an_unknown_one_is_404(client: httpx.AsyncClient) -> None:
    check_problem(await client.get("/v1/operations/operation:none"), 404)
    check_problem(await client.post("/v1/operations/operation:none/stop"), 404)


# Who may


async def test_a_token_begins_what_it_may_do_with_one(guarded: Guarded) -> None:
    bodies = [
        ("cancel_jobs", LOG, {}, "submitter"),
        ("trigger_schedules", {"text": "a"}, {}, "submitter"),
        ("retry_jobs", LOG, {}, "operator"),
        ("reprioritize_jobs", LOG, {"priority": 3}, "operator"),
        ("pause_schedules", {"text": "a"}, {}, "operator"),
        ("resume_schedules", {"text": "a"}, {}, "operator"),
        ("reset_schedules", {"text": "a"}, {}, "operator"),
    ]
    in_order = ["worker", "viewer", "submitter", "operator", "admin"]
    for action, filter, more, least in bodies:
        for place, role in enumerate(in_order):
            async with await guarded.client(role) as client:
                answer = await client.post("/v1/operations", json={"action": action, "filter": filter, **more})
            allowed = place >= in_order.index(least)
            assert answer.status_code == (202 if allowed else 403), (action, role, answer.text)
            if not allowed:
                assert least in answer.json()["detail"]


async def test_a_token_of_one_tenant_reaches_its_tenant_alone(guarded: Guarded, world: World) -> None:
    async with (
        await guarded.client("operator", "acme") as acme,
        await guarded.client("operator") as boss,
        await guarded.client("viewer", "acme") as looking,
        await guarded.client("admin", "other") as other,
    ):
        await submit(acme, 2)
        await submit(boss, 1, tenant="other")
        mine = await start(acme, CANCEL)
        assert mine["matched"] == 2
        refused = {"action": "cancel_jobs", "filter": {"tenant": "other"}}
        check_problem(await acme.post("/v1/operations", json=refused), 403)
        theirs = await start(boss, {"action": "cancel_jobs", "filter": {"tenant": "other"}})
        await turns(runner_of(world), 4)
        assert [job["state"] for job in world.database.documents(Collection.JOBS)] == ["cancelled"] * 3
        for client, ids in (
            (acme, [mine["id"]]), (looking, [mine["id"]]), (other, []), (boss, [theirs["id"], mine["id"]]),
        ):  # fmt: skip
            assert [one["id"] for one in (await get(client, "/v1/operations"))["items"]] == ids
        for client in (acme, other):
            check_problem(await client.get(f"/v1/operations/{theirs['id']}"), 404)
            check_problem(await client.post(f"/v1/operations/{theirs['id']}/stop"), 404)
        check_problem(await looking.post(f"/v1/operations/{mine['id']}/stop"), 403)


async def test_stopping_takes_the_power_of_the_action(guarded: Guarded) -> None:
    async with await guarded.client("operator", "acme") as operator:
        retry = await start(operator, {"action": "retry_jobs", "filter": LOG})
        cancel = await start(operator, CANCEL)
    async with await guarded.client("submitter", "acme") as submitter:
        check_problem(await submitter.post(f"/v1/operations/{retry['id']}/stop"), 403)
        assert (await submitter.post(f"/v1/operations/{cancel['id']}/stop")).status_code == 200


async def test_the_audit_log_says_who_began_it_and_why(client: httpx.AsyncClient, world: World) -> None:
    operation = await start(client, {**CANCEL, "reason": "wrong images"})
    await world.audit_writer.flush()
    [record] = [one for one in world.everything()["audit"] if one["path"] == "/v1/operations"]
    assert (record["target"], record["because"], record["status"]) == (operation["id"], "wrong images", 202)


# Who runs it


async def test_several_take_turns(client: httpx.AsyncClient, world: World) -> None:
    await submit(client, 2 * JOBS_AT_ONCE)
    await submit(client, 1, definition="other")
    first = await start(client, CANCEL)
    second = await start(client, {"action": "cancel_jobs", "filter": {"definition": "other"}})
    await turns(runner_of(world), 2)
    assert (stored(world, first["id"])["state"], stored(world, second["id"])["state"]) == ("running", "done")


async def test_the_leader_goes_on_with_those_of_a_replica_that_is_gone(client: httpx.AsyncClient, world: World) -> None:
    ids = await submit(client, 2 * JOBS_AT_ONCE)
    operation = await start(client, CANCEL)
    dead = runner_of(world, "replica-9.zz")
    await turns(dead)
    assert stored(world, operation["id"])["runner"] == "replica-9.zz"
    assert world.operation_queue.take() is not None  # the dead one's
    world.view.leading = False
    await turns(runner_of(world, "replica-2.bb"))
    assert stored(world, operation["id"])["runner"] == "replica-9.zz"
    world.view.leading = True
    await turns(runner_of(world, "replica-2.bb"), 3)
    ended = await get(client, f"/v1/operations/{operation['id']}")
    assert (ended["state"], ended["changed"]) == ("done", len(ids))


async def test_the_leader_leaves_those_of_replicas_that_live(client: httpx.AsyncClient, world: World) -> None:
    await submit(client, 2 * JOBS_AT_ONCE)
    operation = await start(client, CANCEL)
    await turns(runner_of(world))
    held = world.operation_queue.take()
    assert held is not None
    await turns(runner_of(world, "replica-2.bb"))
    assert stored(world, operation["id"])["runner"] == REPLICA
    world.view.silent = (REPLICA,)
    leader = runner_of(world, "replica-2.bb")
    await turns(leader)
    assert stored(world, operation["id"])["runner"] == "replica-2.bb"
    # The one that was thought dead learns it at its next save, and lets go.
    world.operation_queue.take()
    world.operation_queue.put(held)
    await turns(runner_of(world))
    assert world.operation_queue.take() is None


async def test_a_replica_that_ends_gives_back_what_it_has(client: httpx.AsyncClient, world: World) -> None:
    await submit(client, 2 * JOBS_AT_ONCE)
    operation = await start(client, CANCEL)
    runner = runner_of(world)
    await turns(runner)
    await runner._give_back_finally()
    assert (stored(world, operation["id"])["runner"], stored(world, operation["id"])["changed"]) == (None, JOBS_AT_ONCE)
    await turns(runner_of(world, "replica-2.bb"), 2)
    assert stored(world, operation["id"])["changed"] == 2 * JOBS_AT_ONCE


async def test_a_replica_that_ends_in_the_middle_of_a_slice_notes_what_it_has_changed(
    client: httpx.AsyncClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await submit(client, 2 * JOBS_AT_ONCE)
    operation = await start(client, CANCEL)
    saving, may_save, save = asyncio.Event(), asyncio.Event(), world.operations.save

    async def slow(after: BulkOperation) -> Any:
        saving.set()
        await may_save.wait()
        return await save(after)

    monkeypatch.setattr(world.operations, "save", slow)
    running_for_ever = asyncio.create_task(runner_of(world).run())
    async with asyncio.timeout(20):
        await saving.wait()
    running_for_ever.cancel()
    await asyncio.sleep(0)
    may_save.set()
    await asyncio.wait({running_for_ever})
    assert running_for_ever.cancelled()
    left = stored(world, operation["id"])
    assert (left["runner"], left["changed"]) == (None, JOBS_AT_ONCE)


async def test_a_database_that_does_not_answer_delays_it(client: httpx.AsyncClient, world: World) -> None:
    await submit(client, 1)
    operation = await start(client, CANCEL)
    world.connection.fail_next(of="jobs.list")
    world.connection.fail_next(of="operations.write", carried_out=True)
    runner = runner_of(world)
    for _ in range(4):
        await turns(runner)
        runner._delayed_until_ms.clear()
    ended = await get(client, f"/v1/operations/{operation['id']}")
    assert (ended["state"], ended["changed"]) == ("done", 1)


async def test_one_that_can_not_go_on_fails_in_the_end(
    client: httpx.AsyncClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await submit(client, 1)
    operation = await start(client, CANCEL)
    world.connection.fail_next(of="jobs.list")
    monkeypatch.setattr(running, "STUCK_MAX_MS", 0)
    runner = runner_of(world)
    await turns(runner)
    runner._delayed_until_ms.clear()
    await turns(runner)
    ended = await get(client, f"/v1/operations/{operation['id']}")
    assert ended["state"] == "failed"
    assert "could not be done" in ended["error"]


async def test_a_filter_that_was_broken_by_hand_matches_nothing(client: httpx.AsyncClient, world: World) -> None:
    [id] = await submit(client, 1)
    operation = await start(client, CANCEL)
    world.rewrite(Collection.OPERATIONS, operation["id"], filter={"definitionn": "log"})
    queued = world.operation_queue.take()
    await turns(runner_of(world), 2)  # read again from the database
    assert queued is not None
    assert stored(world, operation["id"])["state"] == "failed"
    assert world.job(id)["state"] == "pending"
    assert (await get(client, "/v1/operations"))["unreadable"]
    assert (await client.get(f"/v1/operations/{operation['id']}")).status_code == 500


def _with_sleep(rest: Callable[[float], Awaitable[None]]) -> Any:
    """What the runner knows as asyncio; what else is on this loop sleeps as ever."""
    return SimpleNamespace(**{**vars(asyncio), "sleep": rest})


async def test_it_rests_longer_while_the_leader_is_late(
    client: httpx.AsyncClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    rests: list[float] = []

    async def rest(for_s: float) -> None:  # the stores yield, and do not rest
        rests.extend([for_s] if for_s else [])
        world.view.leader_lag = LeaderLag(0 if len(rests) > 3 else 5_000)

    monkeypatch.setattr(running, "asyncio", _with_sleep(rest))
    await start(client, CANCEL)
    world.view.leader_lag = LeaderLag(5_000)
    await runner_of(world).turn()
    assert len(rests) == 4


async def test_it_rests_while_submits_are_refused_and_goes_on_in_the_end(
    client: httpx.AsyncClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    rests: list[float] = []
    refusing = 3

    async def rest(for_s: float) -> None:
        rests.extend([for_s] if for_s else [])

    monkeypatch.setattr(running, "asyncio", _with_sleep(rest))
    monkeypatch.setattr(world.admission, "is_holding_back", lambda: len(rests) < refusing)
    await start(client, CANCEL)
    await runner_of(world).turn()
    assert len(rests) == refusing
    refusing = 1_000
    await start(client, CANCEL)
    await runner_of(world).turn()
    assert len(rests) < 30
