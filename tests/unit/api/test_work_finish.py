"""How attempts end that processors finish over HTTP."""

from typing import Any

import httpx
import pytest

from hascheduler.model.values.instants import format_instant
from hascheduler.schema.retry import RetryPolicy
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import check_problem, get, post
from tests.unit.api.work import promised, registered, started


async def _job(client: httpx.AsyncClient, named: dict[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = (await client.get(f"/v1/jobs/{named['job']}")).json()
    return shown


async def _finish(client: httpx.AsyncClient, named: dict[str, Any], outcome: str, **more: Any) -> Any:
    return await post(client, "/v1/work/finish", {**named, "outcome": outcome, **more})


async def test_a_success_has_its_result_and_a_repeat_changes_nothing(client: httpx.AsyncClient, world: World) -> None:
    named = await started(client, world, await registered(client))
    for _ in range(2):
        assert await _finish(client, named, "succeeded", result={"n": [1]}) == {"answer": "done", "retry_at": None}
    job = await _job(client, named)
    assert (job["state"], job["result"], len(job["attempts"])) == ("succeeded", {"n": [1]}, 1)


async def test_a_failure_is_retried_by_the_rule_of_all_processors(client: httpx.AsyncClient, world: World) -> None:
    named = await started(client, world, await registered(client))
    retry_at = format_instant(NOW + RetryPolicy().pause_ms(named["job"], 1))
    for _ in range(2):
        assert await _finish(client, named, "failed", error="no") == {"answer": "done", "retry_at": retry_at}
    job = await _job(client, named)
    assert (job["state"], job["failures"], job["retry_at"]) == ("pending", 1, retry_at)
    assert [(attempt["outcome"], attempt["error"]) for attempt in job["attempts"]] == [("failed", "no")]


@pytest.mark.parametrize(
    ("definition", "error", "again"),
    [
        ({"timeout": "1m"}, "timed out after 1m", True),
        ({"timeout": "1m", "retry": {"attempts": 1}}, "timed out after 1m", False),
        ({"total_timeout": "1m"}, "timed out after 1m in all (1 try)", False),
    ],
)
async def test_a_success_that_is_told_when_the_time_is_over_is_late_and_the_attempt_has_failed(
    client: httpx.AsyncClient, world: World, definition: dict[str, Any], error: str, again: bool
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
    client: httpx.AsyncClient, world: World
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


async def test_a_failure_keeps_its_traceback_for_those_who_look_at_the_job_alone(
    client: httpx.AsyncClient, world: World
) -> None:
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


@pytest.mark.parametrize(
    ("definition", "more"),
    [
        ({}, {"retryable": False}),
        ({"retry": {"attempts": 1}}, {}),
        ({"total_timeout": "1s"}, {}),
        ({"total_timeout": "1m"}, {"retry_after": "1m"}),
    ],
)
async def test_a_failure_that_is_not_retryable_ends_the_job(
    client: httpx.AsyncClient, world: World, definition: dict[str, Any], more: dict[str, Any]
) -> None:
    await client.put("/v1/definitions/log", json=definition)
    named = await started(client, world, await registered(client))
    assert await _finish(client, named, "failed", error="no", **more) == {"answer": "done", "retry_at": None}
    job = await _job(client, named)
    assert (job["state"], job["error"]) == ("failed", "no")


async def test_only_a_job_with_a_requested_cancellation_ends_as_cancelled(
    client: httpx.AsyncClient, world: World
) -> None:
    named = await started(client, world, await registered(client))
    before = world.everything()
    check_problem(await client.post("/v1/work/finish", json={**named, "outcome": "cancelled"}), 409)
    assert world.everything() == before
    await post(client, f"/v1/jobs/{named['job']}/cancel")
    for _ in range(2):
        assert await _finish(client, named, "cancelled") == {"answer": "done", "retry_at": None}
    assert (await _job(client, named))["state"] == "cancelled"


@pytest.mark.parametrize("bring", [promised, started])
async def test_a_job_that_is_given_back_waits_again_without_a_failure(
    client: httpx.AsyncClient, world: World, bring: Any
) -> None:
    named = await bring(client, world, await registered(client))
    for _ in range(2):
        assert await _finish(client, named, "given_back", error="going") == {"answer": "done", "retry_at": None}
    job = await _job(client, named)
    assert (job["state"], job["failures"]) == ("pending", 0)
    assert [(attempt["outcome"], attempt["error"]) for attempt in job["attempts"]] == [("given_back", "going")]


ENDS = [
    {"outcome": "succeeded"},
    {"outcome": "failed", "error": "no"},
    {"outcome": "cancelled"},
    {"outcome": "given_back"},
]


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end["outcome"])
@pytest.mark.parametrize("other", [{"processor": "http:other.1"}, {"attempt": 2}, {"job": "job:none"}], ids=str)
async def test_finishing_another_processors_attempt_is_late(
    client: httpx.AsyncClient, world: World, end: dict[str, Any], other: dict[str, Any]
) -> None:
    named = await started(client, world, await registered(client))
    answer = await post(client, "/v1/work/finish", {**named, **other, **end})
    assert answer == {"answer": "late", "retry_at": None}
    job = await _job(client, named)
    assert (job["state"], job["attempts"]) == ("running", [])


async def test_a_long_error_is_cut(client: httpx.AsyncClient, world: World) -> None:
    named = await started(client, world, await registered(client))
    await _finish(client, named, "failed", error="é" * 5_000, retryable=False)
    error = (await _job(client, named))["error"]
    assert error.startswith("é")
    assert error.endswith("…")
    assert 4_000 < len(error.encode()) <= 4_096
