"""`ClaimStore`: attempts that are revoked, and jobs that fail for good."""

import pytest

from hascheduler.dispatch.decisions import LOST_UNSTARTED, NOT_STARTED, UNREGISTERED, Fail, Requeue
from hascheduler.model.documents.job import decode_job
from hascheduler.model.job import LIVE, OCCUPYING, TERMINAL, JobState
from hascheduler.model.values.instants import WallMs
from tests.contract.backends import Backend, on
from tests.contract.claim_checks import (
    AT,
    DONE,
    LOST,
    applied,
)
from tests.contract.job_states import bring_to, dispatch, finish, start, stored

# Not mongomock: in an array that an update pipeline builds it leaves "$attempt" standing where the value belongs.
pytestmark = on("memory", "pymongo", "motor")

RECALLS = pytest.mark.parametrize("reason", [NOT_STARTED, UNREGISTERED, LOST_UNSTARTED])

LATER = WallMs(AT + 1_000)


# Requeue


@pytest.mark.parametrize("state", sorted(OCCUPYING))
async def test_a_requeue_returns_the_job_and_keeps_the_record_of_the_attempt(backend: Backend, state: JobState) -> None:
    await bring_to(backend, state)
    before = await stored(backend)
    assert await applied(backend.claims, Requeue("a", 1, "$dead")) == [DONE]
    assert await stored(backend) == {
        **before,
        "state": JobState.PENDING,
        "processor": None,
        "dispatched_at_ms": None,
        "started_at_ms": None,
        "rev": before["rev"] + 1,
        "losses": 1 if state is JobState.RUNNING else 0,
        "attempts": [
            {
                "number": 1,
                "processor": "p1",
                "dispatched_at_ms": before["dispatched_at_ms"],
                "started_at_ms": before["started_at_ms"],
                "finished_at_ms": AT,
                "outcome": "lost",
                "error": "$dead",
            }
        ],
    }


@pytest.mark.parametrize("reason", [NOT_STARTED, UNREGISTERED, LOST_UNSTARTED, "processor lost"])
async def test_attempts_that_were_not_taken_up_are_counted(backend: Backend, reason: str) -> None:
    await bring_to(backend, JobState.DISPATCHED)
    for attempt in (1, 2):
        assert await applied(backend.claims, Requeue("a", attempt, reason)) == [DONE]
        await dispatch(backend, attempt=attempt + 1)
    job = await stored(backend)
    assert (job.get("unstarted", 0), job["losses"]) == (2 if reason == NOT_STARTED else 0, 0)
    assert decode_job("a", job).unstarted == job.get("unstarted", 0)


@RECALLS
async def test_an_attempt_is_recalled_for_not_starting_only_before_its_start(backend: Backend, reason: str) -> None:
    await bring_to(backend, JobState.RUNNING)
    before = await stored(backend)
    assert await applied(backend.claims, Requeue("a", 1, reason)) == [LOST]
    assert await stored(backend) == before


@RECALLS
async def test_an_attempt_that_has_not_started_is_recalled(backend: Backend, reason: str) -> None:
    await bring_to(backend, JobState.DISPATCHED)
    assert await applied(backend.claims, Requeue("a", 1, reason)) == [DONE]
    recalled = await stored(backend)
    assert (recalled["state"], recalled["failures"], recalled["losses"]) == (JobState.PENDING, 0, 0)
    assert await applied(backend.claims, Requeue("a", 1, reason)) == [DONE]
    assert await stored(backend) == recalled


async def test_a_requeue_applied_again_is_done_even_after_the_next_dispatch(backend: Backend) -> None:
    await bring_to(backend, JobState.RUNNING)
    await applied(backend.claims, Requeue("a", 1, "dead"))
    requeued = await stored(backend)
    assert await applied(backend.claims, Requeue("a", 1, "dead")) == [DONE]
    assert await stored(backend) == requeued
    await dispatch(backend, attempt=2)
    dispatched = await stored(backend)
    assert await applied(backend.claims, Requeue("a", 1, "dead")) == [DONE]
    assert await stored(backend) == dispatched


@pytest.mark.parametrize("state", sorted(TERMINAL | {JobState.PENDING}))
async def test_a_requeue_of_a_job_that_occupies_nothing_is_lost(backend: Backend, state: JobState) -> None:
    await bring_to(backend, state)
    before = await stored(backend)
    assert await applied(backend.claims, Requeue("a", before["attempt"], "dead")) == [LOST]
    assert await stored(backend) == before


@pytest.mark.parametrize("attempt", [0, 2])
async def test_a_requeue_demands_its_attempt(backend: Backend, attempt: int) -> None:
    await bring_to(backend, JobState.RUNNING)
    before = await stored(backend)
    assert await applied(backend.claims, Requeue("a", attempt, "dead")) == [LOST]
    assert await stored(backend) == before


async def test_a_requeue_of_an_old_attempt_leaves_the_new_one(backend: Backend) -> None:
    await bring_to(backend, JobState.RUNNING)
    assert await backend.work.give_back("a", 1, "p1", "draining", AT)
    await dispatch(backend, attempt=2, processor="p2")
    before = await stored(backend)
    assert await applied(backend.claims, Requeue("a", 1, "dead")) == [LOST]
    assert await stored(backend) == before


# Fail


@pytest.mark.parametrize("state", sorted(LIVE))
async def test_a_fail_ends_the_job(backend: Backend, state: JobState) -> None:
    await bring_to(backend, state)
    before = await stored(backend)
    assert await applied(backend.claims, Fail("a", before["attempt"], "used up: $x")) == [DONE]
    after = await stored(backend)
    assert (after["state"], after["error"], after["processor"]) == (JobState.FAILED, "used up: $x", None)
    assert (after["finished_at_ms"], after["rev"]) == (AT, before["rev"] + 1)
    assert after["expire_at"] is not None
    assert [record["outcome"] for record in after["attempts"]] == ["lost"] * (state in OCCUPYING)
    assert await applied(backend.claims, Fail("a", before["attempt"], "used up: $x"), at_ms=LATER) == [DONE]
    assert await stored(backend) == after


@pytest.mark.parametrize("attempt", [0, 2])
async def test_a_fail_demands_its_attempt(backend: Backend, attempt: int) -> None:
    await bring_to(backend, JobState.RUNNING)
    before = await stored(backend)
    assert await applied(backend.claims, Fail("a", attempt, "used up")) == [LOST]
    assert await stored(backend) == before


async def test_a_fail_of_a_job_that_finished_first_is_lost(backend: Backend) -> None:
    await bring_to(backend, JobState.SUCCEEDED)
    before = await stored(backend)
    assert await applied(backend.claims, Fail("a", 1, "used up")) == [LOST]
    assert await stored(backend) == before


async def test_a_fail_and_a_requeue_with_the_same_words_are_told_apart(backend: Backend) -> None:
    await bring_to(backend, JobState.RUNNING)
    assert await applied(backend.claims, Fail("a", 1, "dead")) == [DONE]
    assert await applied(backend.claims, Requeue("a", 1, "dead")) == [LOST]
    await bring_to(backend, JobState.RUNNING, "b")
    assert await applied(backend.claims, Requeue("b", 1, "dead")) == [DONE]
    await finish_second_attempt(backend, "b")
    assert await applied(backend.claims, Fail("b", 1, "dead")) == [LOST]


async def finish_second_attempt(backend: Backend, job_id: str) -> None:
    await dispatch(backend, job_id, attempt=2)
    await start(backend, job_id, attempt=2)
    await finish(backend, job_id, attempt=2)
