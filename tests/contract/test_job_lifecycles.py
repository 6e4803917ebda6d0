"""A job between its submission and its end: retries, priorities, revival, and the jobs that depend on it."""

from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Any

import pytest

from hascheduler.dispatch.decisions import Fail, Requeue, Settlement
from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import IDEMPOTENCY_MS, RETRY_KEYS_KEPT_MAX, REVIVED_FIELDS, new_job_document
from hascheduler.model.job import TERMINAL, JobState, dependency_error, tries
from hascheduler.model.values.instants import WallMs, to_datetime
from hascheduler.ports import (
    DELETED_IN_MS,
    AttemptOutcome,
    CancelAnswer,
    CancelledSome,
    Dependent,
    HandlerProgress,
    JobSelection,
    KeyedRetry,
    ReprioritizeAnswer,
    RetryAnswer,
    RetryKey,
    SubmitAnswer,
)
from hascheduler.schema.definition import Definition
from hascheduler.schema.retry import RetryPolicy
from tests.contract.backends import Backend, on
from tests.contract.checks import applied, raced
from tests.contract.job_states import bring_to, dispatch, finish, start, stored
from tests.factories import NOW, make_job

pytestmark = on("memory", "pymongo", "motor")

AT = WallMs(NOW + 100)
RETRY_AT = WallMs(NOW + 2_100)
AGAIN = AttemptOutcome(JobState.FAILED, error="no luck", retry_at_ms=RETRY_AT)
DONE, LOST = Settlement.DONE, Settlement.LOST


# Reports of failures


async def test_failures_are_unreported_until_they_are_marked_and_again_after_a_revival(backend: Backend) -> None:
    failed = AttemptOutcome(JobState.FAILED, error="no luck")
    jobs: dict[str, dict[str, Any]] = {
        "by definition": {},
        "by schedule": {"definition": "other", "on_failure": "notify"},
        "before the last of a graph": {"on_failure": ""},
        "a report": {"failed_job": "x"},
        "other": {"definition": "other"},
        "of its dependency": {},
    }
    for number, (id, fields) in enumerate(jobs.items()):
        await backend.jobs.submit(make_job(id, labels={"a": "b"}, submitted_at_ms=WallMs(NOW + number), **fields))
        error = dependency_error("x", JobState.FAILED) if id == "of its dependency" else "no luck"
        if id == "by definition":
            await dispatch(backend, id)
            await start(backend, id)
            await finish(backend, id, outcome=failed)
        else:
            assert await applied(backend.claims, Fail(id, 0, error)) == [DONE]

    async def unreported(
        since_ms: int = NOW, limit: int = 9, ids: Sequence[str] | None = None, not_of: Sequence[str] = ()
    ) -> list[str]:
        found = await backend.jobs.unreported({"log"}, WallMs(since_ms), limit, ids, not_of=not_of)
        assert all(job["error"] == "no luck" and job["labels"] == {"a": "b"} for job in found)
        return [job["_id"] for job in found]

    assert await unreported() == ["by schedule", "by definition"]  # the newest first
    assert (await unreported(limit=1), await unreported(NOW + 10_000)) == (["by schedule"], [])
    assert await unreported(ids=["by definition", "other", "nobody"]) == ["by definition"]
    assert (await unreported(not_of=["tenant"]), len(await unreported(not_of=["acme"]))) == ([], 2)
    before = await stored(backend, "by definition")
    for attempt in (7, 1):
        await backend.jobs.reported("by definition", attempt, "r")
        assert (await unreported() == ["by schedule"]) is (attempt == 1)
    assert await stored(backend, "by definition") == {**before, "on_failure_job": "r"}
    await backend.jobs.retry("by definition", AT)
    assert await applied(backend.claims, Fail("by definition", 2, "no luck")) == [DONE]
    assert sorted(await unreported()) == ["by definition", "by schedule"]


# Tries


async def test_a_failed_attempt_with_a_cancel_request_cancels_the_job(backend: Backend) -> None:
    await bring_to(backend, JobState.RUNNING)
    assert await backend.jobs.cancel("a", AT) is CancelAnswer.ALREADY_RUNNING
    await finish(backend, outcome=AGAIN)
    job = await stored(backend)
    assert (job["state"], job["error"]) == ("cancelled", "no luck")


def counts(job: Mapping[str, Any]) -> tuple[int, int]:
    return job["failures"], job["losses"]


async def test_after_a_loss_the_job_waits_longer_each_time_but_not_after_the_first(backend: Backend) -> None:
    long_ago = WallMs(5_000)  # no clock of a store is behind it
    await backend.jobs.submit(make_job())
    waited = []
    for number in range(1, 10):
        await dispatch(backend, attempt=number)
        await start(backend, attempt=number)
        for _ in range(2):  # a repeat changes nothing
            if number % 2:
                lost = Requeue("a", number, "processor lost")
                assert await backend.claims.apply([lost], long_ago, majority=True) == [DONE]
            else:
                assert await backend.work.give_back("a", number, "p1", "no sign of life", long_ago, lost=True)
        job = await stored(backend)
        assert counts(job) == (0, number)
        waited.append(job["retry_at_ms"] and job["retry_at_ms"] - long_ago)
    assert waited == [None, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]


@pytest.mark.parametrize("who", ["the leader", "its processor"])
async def test_a_job_that_is_lost_too_often_has_failed_and_its_last_attempt_was_lost(
    backend: Backend, who: str
) -> None:
    await bring_to(backend, JobState.RUNNING)
    reason = "processor lost; 1 attempt lost, as many as lost_attempts allows"
    for _ in range(2):
        if who == "the leader":
            assert await applied(backend.claims, Fail("a", 1, reason)) == [DONE]
        else:
            await finish(backend, outcome=AttemptOutcome(JobState.FAILED, error=reason, lost=True))
    job = await stored(backend)
    assert (*counts(job), job["state"], job["error"]) == (0, 1, "failed", reason)
    assert [each["outcome"] for each in job["attempts"]] == ["lost"]


async def test_a_start_returns_the_definition_and_the_earlier_failures(backend: Backend) -> None:
    rules = Definition(
        name="log",
        rev=1,
        retry=RetryPolicy(attempts_max=3, backoff_ms=500, backoff_factor=1_500, backoff_max_ms=9_000),
        timeout_ms=1_000,
        total_timeout_ms=60_000,
    )
    await backend.definitions.create(rules)
    await bring_to(backend, JobState.RUNNING)
    await finish(backend, outcome=AGAIN)
    await dispatch(backend, attempt=2)
    started = await backend.work.start("a", 2, "p1", AT)
    assert started is not None
    assert (started.rules, started.failures, started.started_at_ms) == (rules, 1, AT)
    assert started.first_started_at_ms == NOW + 20


# Progress


async def test_progress_is_stored_for_the_running_attempt_alone(backend: Backend) -> None:
    await bring_to(backend, JobState.RUNNING)
    before = await stored(backend)
    await backend.work.report(
        "p1", {("a", 1): HandlerProgress(40.0, "2 of 5", AT), ("b", 1): HandlerProgress(1.0, "", AT)}
    )
    shown = {"percent": 40.0, "text": "2 of 5", "at_ms": AT}
    assert await stored(backend) == {**before, "progress": shown}
    await backend.work.report("other", {("a", 1): HandlerProgress(None, "x", AT)})
    await backend.work.report("p1", {("a", 2): HandlerProgress(None, "x", AT)})
    assert (await stored(backend))["progress"] == shown
    await finish(backend, outcome=AGAIN)
    await dispatch(backend, attempt=2)
    await start(backend, attempt=2)
    assert (await stored(backend))["progress"] is None


# Priorities


async def test_a_pending_job_gets_another_priority(backend: Backend) -> None:
    await bring_to(backend, JobState.PENDING)
    before = await stored(backend)
    assert await backend.jobs.reprioritize("a", 9) is ReprioritizeAnswer.OK
    assert await stored(backend) == {**before, "priority": 9, "rev": before["rev"] + 1}


# A new life


@pytest.mark.parametrize("state", [JobState.FAILED, JobState.CANCELLED])
async def test_a_revived_job_has_all_its_tries_and_its_history(backend: Backend, state: JobState) -> None:
    await bring_to(backend, state)
    before: Any = await stored(backend)
    attempt = before["attempt"] + 1
    assert await backend.jobs.retry("a", AT) == KeyedRetry(RetryAnswer.OK)
    revived = {**before, **REVIVED_FIELDS, "attempt": attempt, "revivals": 1, "rev": before["rev"] + 1}
    assert await stored(backend) == revived
    assert len(before["attempts"]) == (state is JobState.FAILED)
    await dispatch(backend, attempt=attempt + 1)
    assert await backend.jobs.cancel("a", AT) is CancelAnswer.CANCELLED
    assert await backend.jobs.retry("a", AT) == KeyedRetry(RetryAnswer.OK)
    again = await stored(backend)
    assert (again["attempt"], again["revivals"], tries(again["attempt"], again["revivals"])) == (
        attempt + 2, 2, len(before["attempts"]) + 1,
    )  # fmt: skip


async def test_under_one_key_a_job_is_revived_once(backend: Backend) -> None:
    await bring_to(backend, JobState.FAILED)
    key, other = RetryKey("k1", "asked"), RetryKey("k1", "asked for something else")
    jobs = backend.jobs
    assert await jobs.retry("a", AT, key) == KeyedRetry(RetryAnswer.OK)
    revived = await stored(backend)
    assert (revived["state"], revived["attempt"], revived["revivals"]) == ("pending", 2, 1)
    assert await jobs.cancel("a", AT) is CancelAnswer.CANCELLED
    before = await stored(backend)
    assert await jobs.retry("a", AT, key) == KeyedRetry(RetryAnswer.OK, SubmitAnswer.KNOWN)
    assert await jobs.retry("a", AT, other) == KeyedRetry(RetryAnswer.OK, SubmitAnswer.OTHER)
    assert await stored(backend) == before
    assert await jobs.retry("a", WallMs(AT + IDEMPOTENCY_MS), key) == KeyedRetry(RetryAnswer.OK)
    assert await jobs.retry("a", AT, RetryKey("k2", "asked")) == KeyedRetry(RetryAnswer.NOT_ENDED)
    assert await jobs.retry("nobody", AT, key) is None
    for number in range(RETRY_KEYS_KEPT_MAX + 3):
        assert await jobs.cancel("a", AT) is CancelAnswer.CANCELLED
        assert (await jobs.retry("a", AT, RetryKey(f"n{number}", "asked"))) == KeyedRetry(RetryAnswer.OK)
    kept = [each["key"] for each in (await stored(backend))["retry_keys"]]
    assert kept == [f"n{number}" for number in range(3, RETRY_KEYS_KEPT_MAX + 3)]


async def test_of_many_retries_under_one_key_one_revives(backend: Backend) -> None:
    await bring_to(backend, JobState.FAILED)
    answers = await raced([backend.jobs.retry("a", AT, RetryKey("k", "asked")) for _ in range(10)])
    assert sorted(str(each.met) for each in answers if each) == ["known"] * 9 + ["new"]
    assert (await stored(backend))["revivals"] == 1


# Many at once


async def _states(backend: Backend) -> list[str]:
    return sorted(str(job["state"]) for job in (await backend.jobs.list(JobSelection(), None, 100)).documents)


async def test_the_jobs_of_tenants_that_are_left_out_match_nothing(backend: Backend) -> None:
    for tenant in "abc":
        await backend.jobs.submit(make_job(tenant, tenant=tenant))
    which = JobSelection(definition="log", not_of={"a", "c"})
    assert await backend.jobs.reprioritize_some(which, 9, 10) == 1
    assert [(await stored(backend, tenant))["priority"] for tenant in "abc"] == [5, 9, 5]
    assert await backend.jobs.cancel_some(which, AT, 10) == CancelledSome(1, 0)


async def test_all_matching_jobs_that_failed_by_then_are_revived(backend: Backend) -> None:
    for state in JobState:
        for n in range(2):
            await bring_to(backend, state, f"{state}{n}")
    for at_ms, count in ((WallMs(0), 0), (AT, 2), (AT, 0)):
        assert await backend.jobs.retry_some(JobSelection(target="target"), at_ms, 10) == count
    assert await _states(backend) == sorted(["cancelled", "dispatched", "running", "succeeded"] * 2 + ["pending"] * 4)
    assert await backend.jobs.retry_some(JobSelection(states=(JobState.CANCELLED,), target="target"), AT, 10) == 2
    assert "cancelled" not in await _states(backend)


async def test_all_matching_jobs_that_have_ended_are_deleted(backend: Backend) -> None:
    """Those of a schedule are left out if asked for, and a retry keeps a job."""
    at_ms = WallMs(NOW - 1)  # they ended a little later, so they are kept for a little longer
    for state in JobState:
        await bring_to(backend, state, f"job:{state}")
    fired = {**new_job_document(make_job("fire:tick:1", schedule="tick")), "state": "failed"}
    await backend.behind.insert(Collection.JOBS, fired)
    which = JobSelection(target="target")
    assert [*await backend.jobs.schedules_of(which)] == ["tick"]
    of_others = which.model_copy(update={"not_made_by": ("tick",)})
    assert await backend.jobs.count(of_others.to_delete(at_ms), sorted(TERMINAL), 10) == 3
    assert await backend.jobs.delete_some(of_others.model_copy(update={"schedule": "tick"}), at_ms, 9) == 0
    for limit, count in ((1, 1), (9, 2), (9, 0)):
        assert await backend.jobs.delete_some(of_others, at_ms, limit) == count
    assert await backend.jobs.delete_some(of_others, WallMs(NOW), 9) == 0
    for state in TERMINAL:
        expire_at = (await stored(backend, f"job:{state}"))["expire_at"]
        assert expire_at.replace(tzinfo=UTC) == to_datetime(at_ms + DELETED_IN_MS)
    assert await backend.jobs.retry("job:failed", AT) == KeyedRetry(RetryAnswer.OK)
    assert (await stored(backend, "job:failed"))["expire_at"] is None
    assert await backend.jobs.delete_some(which, at_ms, 9) == 1


WHY = dependency_error("a", JobState.FAILED)
D = "$b"
"""No value may be taken for the name of a field."""
OTHER = "t300"
"""Another tenant of the same slot: of several shards only such may wait for each other's jobs."""


async def jobs_that_depend(backend: Backend) -> None:
    await backend.jobs.submit(make_job("a"))
    await backend.jobs.submit(make_job(D, depends_on=("a", "z"), waits_for=("a",)))
    await backend.jobs.submit(make_job("c", depends_on=("a",), waits_for=("a",), ignores_failures=True))
    await backend.jobs.submit(make_job("d", depends_on=(D,), waits_for=(D,), tenant=OTHER))
    await backend.jobs.submit(make_job("e"))
    assert await applied(backend.claims, Fail(D, 0, WHY)) == [Settlement.DONE]


async def test_dependents_are_found_by_what_they_were_said_to_depend_on(backend: Backend) -> None:
    await jobs_that_depend(backend)
    b = Dependent(D, 2, JobState.FAILED, ("a", "z"), ignores_failures=False, failed_of_dependency=True)
    c = Dependent("c", 1, JobState.PENDING, ("a",), ignores_failures=True, failed_of_dependency=False)
    d = Dependent("d", 1, JobState.PENDING, (D,), ignores_failures=False, failed_of_dependency=False)
    jobs = backend.jobs
    assert list(await jobs.dependents(["a"], None, [], 9)) == [b, c]
    assert list(await jobs.dependents(["a"], None, [D], 9)) == [c]
    assert list(await jobs.dependents(["a", D, "e"], None, [], 9)) == [b, c, d]
    assert list(await jobs.dependents(["a", D, "e"], "tenant", [], 9)) == [b, c]
    assert list(await jobs.dependents(["a", D], None, [], 2)) == [b, c]
    assert list(await jobs.dependents(["e"], None, [], 9)) == []


async def test_dependents_are_found_by_the_batch_that_they_depend_on(backend: Backend) -> None:
    await backend.jobs.submit(make_job("m", batch="batch:x"))
    await backend.jobs.submit(make_job("n", batch="batch:x", depends_on=("m",), waits_for=("m",)))
    await backend.jobs.submit(make_job("w", depends_on=("batch:x",), waits_for=("batch:x",)))
    assert (await stored(backend, "w"))["waits_for"] == ["w", "batch:x"]
    assert await applied(backend.claims, Fail("w", 0, WHY)) == [Settlement.DONE]
    n, w = await backend.jobs.dependents(["m", "batch:x"], None, [], 9)
    assert (n.id, n.batch, w.id, w.batch, w.depends_on) == ("n", "batch:x", "w", None, ("batch:x",))
    assert await backend.jobs.retry_dependent(w, ["batch:x"], AT)
    assert (await stored(backend, "w"))["waits_for"] == ["w", "batch:x"]


async def test_of_a_batch_is_known_in_which_states_its_jobs_are_and_whose(backend: Backend) -> None:
    for number in range(3):
        await backend.jobs.submit(make_job(f"m{number}", batch="batch:x"))
    await backend.jobs.submit(make_job("o", batch="batch:x", tenant=OTHER))
    await backend.jobs.submit(make_job("p", batch="batch:y"))
    assert await backend.jobs.cancel("m0", AT)
    known = await backend.jobs.known(["batch:x", "batch:nobody", "p", "nobody"])
    assert sorted((row.id, row.tenant, row.state.value) for row in known) == [
        ("batch:x", OTHER, "pending"), ("batch:x", "tenant", "cancelled"), ("batch:x", "tenant", "pending"),
        ("p", "tenant", "pending"),
    ]  # fmt: skip


async def test_a_revived_dependent_waits_again(backend: Backend) -> None:
    await jobs_that_depend(backend)
    before = await stored(backend, D)
    [b, *_] = await backend.jobs.dependents(["a"], None, [], 9)
    assert await backend.jobs.retry_dependent(b, ["$a"], AT)
    revived = {**REVIVED_FIELDS, "waits_for": ["$a"], "attempt": 1, "revivals": 1, "rev": before["rev"] + 1}
    assert await stored(backend, D) == {**before, **revived}
    assert await backend.jobs.cancel(D, AT)
    for stale in (b, *(await backend.jobs.dependents(["a"], None, [D], 9))):
        assert not await backend.jobs.retry_dependent(stale, [], AT), "changed meanwhile, or not ended"
    assert (await stored(backend, D))["state"] == "cancelled"
