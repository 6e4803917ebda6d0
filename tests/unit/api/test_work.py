"""Work over HTTP: registrations, the long poll, starts, heartbeats, and how attempts end."""

import asyncio
from typing import Any

import pytest

from hascheduler.model.collection import Collection
from hascheduler.model.processor import is_polling
from hascheduler.model.values.instants import format_instant
from hascheduler.schema.retry import RetryPolicy
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import Client, check_problem, get, post
from tests.unit.api.work import NOBODY, attempt, promised, registered, started, waits


async def test_a_registration_is_stored_and_answered_with_the_terms(client: Client, world: World) -> None:
    body = {"name": "far", "definitions": ["log", "*"], "slots": 3, "resources": {"gpu": 1}}
    answer = await post(client, "/v1/work/processors", body, 201)
    id = answer.pop("processor")
    assert answer == {"heartbeat_interval": 1.0, "heartbeat_deadline": 4.0}
    assert id.startswith("http:far.")
    assert is_polling(id)
    stored = world.stored(Collection.PROCESSORS, id)
    assert {name: stored[name] for name in ("name", "shard", "slots", "draining", "resources")} == {
        "name": "far", "shard": "default", "slots": 3, "draining": False, "resources": {"gpu": 1},
    }  # fmt: skip
    assert sorted(stored["definitions"]) == ["*", "log"]
    assert await registered(client) != await registered(client)


async def test_a_start_gives_the_job_and_a_repeat_gives_it_again(client: Client, world: World) -> None:
    named = await promised(
        client, world, await registered(client), target="t", payload={"n": 1}, labels={"a": "b"}, tenant="acme"
    )
    answer = await post(client, "/v1/work/start", named)
    assert answer == {
        **attempt(named), "definition": "log", "target": "t", "payload": {"n": 1}, "tenant": "acme",
        "labels": {"a": "b"}, "schedule": None, "nominal_at": None, "submitted_at": "2030-01-01T00:00:00.000Z",
        "started_at": "2030-01-01T00:00:00.000Z", "failures": 0, "losses": 0, "timeout": None, "traceparent": None,
    }  # fmt: skip
    assert world.job(named["job"])["state"] == "running"
    assert await post(client, "/v1/work/start", named) == answer


@pytest.mark.parametrize(
    ("definition", "passed_ms", "timeout"),
    [
        ({"timeout": "5m"}, 1_500, 298.5),
        ({"timeout": "5m", "total_timeout": "5m"}, 0, 300.0),
        ({"total_timeout": "1m"}, 61_000, 0.0),
        ({}, 0, None),
    ],
)
async def test_a_start_returns_the_timeout_and_a_repeat_the_rest_of_it(
    client: Client, world: World, definition: dict[str, Any], passed_ms: int, timeout: float | None
) -> None:
    assert (await client.put("/v1/definitions/log", json=definition)).status_code == 201
    named = await started(client, world, await registered(client))
    world.clock.now = NOW + passed_ms  # type: ignore[assignment]  # an instant
    assert (await post(client, "/v1/work/start", named))["timeout"] == timeout


async def test_only_its_own_attempt_is_started(client: Client, world: World) -> None:
    named = await promised(client, world, await registered(client))
    before = world.everything()
    for other in ({"processor": await registered(client)}, {"attempt": 2}, {"job": "job:none"}):
        check_problem(await client.post("/v1/work/start", json={**named, **other}), 409)
    assert world.everything()["jobs"] == before["jobs"]


@pytest.mark.parametrize("processor", [NOBODY, "p-1.bb"])
async def test_an_unknown_processor_is_answered_that_it_must_register_again(client: Client, processor: str) -> None:
    for path in ("fetch", "heartbeat"):
        answer = await client.post(f"/v1/work/{path}", json={"processor": processor})
        check_problem(answer, 404)
        assert answer.json()["type"] == "urn:hascheduler:problem:not-registered"
        assert "register again" in answer.json()["detail"]


async def test_processors_that_do_not_speak_http_are_out_of_reach(client: Client, world: World) -> None:
    job_id = (await post(client, "/v1/jobs", {"definition": "log"}, 201))["id"]
    await world.dispatch(job_id, "p-1.bb")
    named = {"processor": "p-1.bb", "job": job_id, "attempt": 1}
    before = world.everything()
    check_problem(await client.post("/v1/work/start", json=named), 404)
    check_problem(await client.post("/v1/work/finish", json={**named, "outcome": "succeeded"}), 404)
    check_problem(await client.delete("/v1/work/processors/p-1.bb"), 404)
    assert world.everything() == before


async def test_a_promised_attempt_is_returned_at_once_and_again_until_it_is_started(
    client: Client, world: World
) -> None:
    processor = await registered(client)
    named = await promised(client, world, processor)
    await promised(client, world, await registered(client))
    asked = {"processor": processor, "wait": "60s"}
    for _ in range(2):
        answer = await post(client, "/v1/work/fetch", asked)
        assert answer == {"attempts": [attempt(named)], "cancelled": [], "revoked": []}
    await post(client, "/v1/work/start", named)
    assert (await post(client, "/v1/work/fetch", {**asked, "wait": 0}))["attempts"] == []


async def test_a_fetch_that_is_woken_before_the_core_knows_looks_again_soon(client: Client, world: World) -> None:
    processor = await registered(client)
    look, looks = world.view.dispatched_attempts, 0

    def slow(id: str) -> Any:
        nonlocal looks
        looks += 1
        return look(id) if looks > 2 else ()

    world.view.dispatched_attempts = slow
    async with asyncio.TaskGroup() as tasks:
        fetch = tasks.create_task(post(client, "/v1/work/fetch", {"processor": processor, "wait": "60s"}))
        await waits(world, processor)
        named = await promised(client, world, processor)
    assert (fetch.result()["attempts"], looks) == ([attempt(named)], 3)


async def test_a_fetch_is_a_heartbeat_and_returns_the_attempts_to_stop(client: Client, world: World) -> None:
    processor = await registered(client)
    asked = await started(client, world, processor)
    await post(client, f"/v1/jobs/{asked['job']}/cancel")
    await post(client, "/v1/work/heartbeat", {"processor": processor, "draining": True})
    before = world.stored(Collection.PROCESSORS, processor)
    strange = {"job": "job:none", "attempt": 1}
    body = {"processor": processor, "wait": 0, "running": [attempt(asked), strange]}
    answer = await post(client, "/v1/work/fetch", body)
    assert answer == {"attempts": [], "cancelled": [attempt(asked)], "revoked": [strange]}
    after = world.stored(Collection.PROCESSORS, processor)
    assert (after["beat"], after["draining"]) == (before["beat"] + 1, True)


async def test_a_stopping_replica_answers_its_waiting_fetches(client: Client, world: World) -> None:
    processor = await registered(client)
    asked = {"processor": processor, "wait": "60s"}
    async with asyncio.TaskGroup() as tasks:
        fetch = tasks.create_task(post(client, "/v1/work/fetch", asked))
        await waits(world, processor)
        world.view.waiters.close()
    assert fetch.result()["attempts"] == []
    answer = await client.post("/v1/work/fetch", json=asked)
    check_problem(answer, 503)
    assert answer.headers["retry-after"] == "1"


async def _job(client: Client, named: dict[str, Any]) -> Any:
    return await get(client, f"/v1/jobs/{named['job']}")


async def _finish(client: Client, named: dict[str, Any], outcome: str, **more: Any) -> Any:
    return await post(client, "/v1/work/finish", {**named, "outcome": outcome, **more})


ENDED: dict[str, tuple[dict[str, Any], dict[str, Any], str, int]] = {
    "a success": ({}, {"outcome": "succeeded", "result": {"n": [1]}}, "succeeded", 0),
    "a failure that is retried": ({}, {"outcome": "failed", "error": "no"}, "pending", 1),
    "one that says it is final": ({}, {"outcome": "failed", "error": "no", "retryable": False}, "failed", 1),
    "the last try": ({"retry": {"attempts": 1}}, {"outcome": "failed", "error": "no"}, "failed", 1),
    "too late to retry": ({"total_timeout": "1s"}, {"outcome": "failed", "error": "no"}, "failed", 1),
    "a pause that is too long": (
        {"total_timeout": "1m"}, {"outcome": "failed", "error": "no", "retry_after": "1m"}, "failed", 1,
    ),
    "given back": ({}, {"outcome": "given_back", "error": "going"}, "pending", 0),
}  # fmt: skip
"""What the definition says, how the attempt ends, the state of the job after it, and its failures."""


@pytest.mark.parametrize("row", ENDED)
async def test_how_an_attempt_ends_is_told_once_however_often_it_is_sent(
    client: Client, world: World, row: str
) -> None:
    definition, end, state, failures = ENDED[row]
    await client.put("/v1/definitions/log", json=definition)
    named = await started(client, world, await registered(client))
    is_retried = (state, failures) == ("pending", 1)
    retry_at = format_instant(NOW + RetryPolicy().pause_ms(named["job"], 1)) if is_retried else None
    for _ in range(2):
        assert await post(client, "/v1/work/finish", {**named, **end}) == {"answer": "done", "retry_at": retry_at}
    job = await _job(client, named)
    assert (job["state"], job["failures"], job["retry_at"], job["result"]) == (
        state, failures, retry_at, end.get("result"),
    )  # fmt: skip
    assert job["error"] == (end.get("error") if state == "failed" else None)
    assert [(one["outcome"], one["error"]) for one in job["attempts"]] == [(end["outcome"], end.get("error"))]


@pytest.mark.parametrize(
    ("definition", "error", "again"),
    [
        ({"timeout": "1m"}, "timed out after 1m", True),
        ({"timeout": "1m", "retry": {"attempts": 1}}, "timed out after 1m", False),
        ({"total_timeout": "1m"}, "timed out after 1m in all (1 try)", False),
    ],
)
async def test_a_success_that_is_told_when_the_time_is_over_is_late_and_the_attempt_has_failed(
    client: Client, world: World, definition: dict[str, Any], error: str, again: bool
) -> None:
    """Although the leader, which gives workers ten seconds more, has not ended it."""
    await client.put("/v1/definitions/log", json=definition)
    named = await started(client, world, await registered(client))
    world.clock.now = NOW + 60_000  # type: ignore[assignment]  # an instant
    late = await _finish(client, named, "succeeded", result="too late")
    assert (late["answer"], late["retry_at"] is not None) == ("late", again)
    job = await _job(client, named)
    assert (job["state"], job["result"]) == ("pending" if again else "failed", None)
    assert [(attempt["outcome"], attempt["error"]) for attempt in job["attempts"]] == [("failed", error)]
    assert (await _finish(client, named, "succeeded", result="too late"))["answer"] == "late", "a repeat is no success"
    assert await _job(client, named) == job


async def test_a_success_in_time_stands_and_one_after_a_cancel_and_the_timeout_is_a_cancel(
    client: Client, world: World
) -> None:
    await client.put("/v1/definitions/log", json={"timeout": "1m"})
    processor = await registered(client)
    first, second = [await started(client, world, processor) for _ in range(2)]
    world.clock.now = NOW + 59_999  # type: ignore[assignment]  # an instant
    assert (await _finish(client, first, "succeeded"))["answer"] == "done"
    await post(client, f"/v1/jobs/{second['job']}/cancel", {})
    world.clock.now = NOW + 60_000  # type: ignore[assignment]  # an instant
    assert (await _finish(client, first, "succeeded"))["answer"] == "done", "a repeat of what was in time"
    for _ in range(2):
        assert (await _finish(client, second, "succeeded"))["answer"] == "late"
    assert [(await _job(client, one))["state"] for one in (first, second)] == ["succeeded", "cancelled"]


async def test_a_failure_keeps_its_traceback_for_those_who_look_at_the_job_alone(client: Client, world: World) -> None:
    named = await started(client, world, await registered(client))
    told = "Error: no\n    at resize (mine.mjs:7) http://me:secret@there/"
    answer = await _finish(client, named, "failed", error="no", retryable=False, traceback=told)
    assert answer["answer"] == "done"
    [attempt] = (await _job(client, named))["attempts"]
    assert attempt["traceback"] == told.replace("me:secret", "***")
    assert "mine.mjs" not in (await client.get("/v1/jobs")).text
    why = await get(client, f"/v1/jobs/{named['job']}/why")
    assert (why["error"], why["summary"].endswith(": no")) == ("no", True)
    assert "mine.mjs" not in str(why)


async def test_only_a_job_with_a_requested_cancellation_ends_as_cancelled(client: Client, world: World) -> None:
    named = await started(client, world, await registered(client))
    before = world.everything()
    check_problem(await client.post("/v1/work/finish", json={**named, "outcome": "cancelled"}), 409)
    assert world.everything() == before
    await post(client, f"/v1/jobs/{named['job']}/cancel")
    for _ in range(2):
        assert await _finish(client, named, "cancelled") == {"answer": "done", "retry_at": None}
    assert (await _job(client, named))["state"] == "cancelled"


@pytest.mark.parametrize("other", [{"processor": "http:other.1"}, {"attempt": 2}, {"job": "job:none"}], ids=str)
async def test_finishing_another_processors_attempt_is_late(
    client: Client, world: World, other: dict[str, Any]
) -> None:
    named = await started(client, world, await registered(client))
    for outcome in ("succeeded", "failed", "cancelled", "given_back"):
        end = {"outcome": outcome, **({"error": "no"} if outcome == "failed" else {})}
        assert await post(client, "/v1/work/finish", {**named, **other, **end}) == {"answer": "late", "retry_at": None}
    job = await _job(client, named)
    assert (job["state"], job["attempts"]) == ("running", [])


async def test_a_long_error_is_cut(client: Client, world: World) -> None:
    named = await started(client, world, await registered(client))
    await _finish(client, named, "failed", error="é" * 5_000, retryable=False)
    error = (await _job(client, named))["error"]
    assert error.startswith("é")
    assert error.endswith("…")
    assert 4_000 < len(error.encode()) <= 4_096


async def test_progress_is_shown_and_an_empty_report_changes_nothing(client: Client, world: World) -> None:
    processor = await registered(client)
    named = await started(client, world, processor)
    shown = {"percent": 40.0, "text": "2 of 5", "at": "2030-01-01T00:00:00.000Z"}
    for report in ({"percent": 40, "text": " 2 of\n5 "}, {}):
        await post(client, "/v1/work/heartbeat", {"processor": processor, "running": [{**attempt(named), **report}]})
        assert (await client.get(f"/v1/jobs/{named['job']}")).json()["progress"] == shown
