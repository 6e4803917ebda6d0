"""`ClaimStore`: attempts that are revoked, jobs that fail for good, and jobs that a later fire replaces."""

import pytest

from hascheduler.dispatch.decisions import LOST_UNSTARTED, NOT_STARTED, UNREGISTERED, Cancel, Fail, Requeue
from hascheduler.model.documents.job import decode_job
from hascheduler.model.job import LIVE, OCCUPYING, TERMINAL, JobState
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import SubmitAnswer
from tests.contract.backends import Backend, on
from tests.contract.checks import AT, DONE, LOST, applied
from tests.contract.job_states import bring_to, dispatch, finish, start, stored
from tests.factories import make_job

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


NOT_THEIRS = [
    *((JobState.RUNNING, decided("a", attempt, "used up")) for decided in (Requeue, Fail) for attempt in (0, 2)),
    *((JobState.RUNNING, Requeue("a", 1, reason)) for reason in (NOT_STARTED, UNREGISTERED, LOST_UNSTARTED)),
    *((state, Requeue("a", 1, "dead")) for state in sorted(TERMINAL - {JobState.CANCELLED})),
    *((state, Requeue("a", 0, "dead")) for state in (JobState.CANCELLED, JobState.PENDING)),
    (JobState.SUCCEEDED, Fail("a", 1, "used up")),
]


@pytest.mark.parametrize(("state", "decision"), NOT_THEIRS, ids=str)
async def test_what_is_about_another_attempt_or_state_is_lost(
    backend: Backend, state: JobState, decision: Requeue | Fail
) -> None:
    await bring_to(backend, state)
    before = await stored(backend)
    assert await applied(backend.claims, decision) == [LOST]
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


@pytest.mark.parametrize("state", [JobState.PENDING, JobState.DISPATCHED])
async def test_a_job_that_has_not_started_ends(backend: Backend, state: JobState) -> None:
    await bring_to(backend, state)
    before = await stored(backend)
    assert await applied(backend.claims, Cancel("a", before["attempt"], "$replaced")) == [DONE]
    after = await stored(backend)
    assert (after["state"], after["error"], after["finished_at_ms"]) == (JobState.CANCELLED, "$replaced", AT)
    assert (after["rev"], after["processor"]) == (before["rev"] + 1, None)
    assert len(after["attempts"]) == (state in OCCUPYING)


async def test_a_running_job_is_requested_to_stop_once(backend: Backend) -> None:
    await bring_to(backend, JobState.RUNNING)
    before = await stored(backend)
    assert await applied(backend.claims, Cancel("a", 1, "replaced")) == [DONE]
    assert await applied(backend.claims, Cancel("a", 1, "replaced")) == [DONE]
    assert await stored(backend) == {**before, "cancel_requested_at_ms": AT, "rev": before["rev"] + 1}


@pytest.mark.parametrize("state", sorted(TERMINAL))
async def test_a_job_that_has_ended_stays_as_it_is(backend: Backend, state: JobState) -> None:
    await bring_to(backend, state)
    before = await stored(backend)
    expected = DONE if state is JobState.CANCELLED else LOST
    assert await applied(backend.claims, Cancel("a", before["attempt"], "replaced")) == [expected]
    assert await stored(backend) == before


async def test_another_attempt_is_left_alone(backend: Backend) -> None:
    await bring_to(backend, JobState.RUNNING)
    before = await stored(backend)
    assert await applied(backend.claims, Cancel("a", 2, "replaced")) == [LOST]
    assert await stored(backend) == before
    await applied(backend.claims, Requeue("a", 1, "lost"))
    assert await applied(backend.claims, Cancel("a", 1, "replaced")) == [DONE]
    assert (await stored(backend))["state"] == JobState.CANCELLED


async def test_several_cancels_in_one_batch_are_settled_each_on_its_own(backend: Backend) -> None:
    await bring_to(backend, JobState.RUNNING, "r")
    await bring_to(backend, JobState.PENDING, "p")
    await bring_to(backend, JobState.SUCCEEDED, "s")
    answers = await applied(backend.claims, *[Cancel(id, n, "x") for id, n in (("r", 1), ("p", 0), ("s", 1), ("?", 0))])
    assert answers == [DONE, DONE, LOST, LOST]


async def test_a_batch_of_submits_stores_each_job_once(backend: Backend) -> None:
    await backend.jobs.submit(make_job("b", payload="first"))
    answers = await backend.jobs.submit_many([make_job("a"), make_job("b"), make_job("c")])
    assert [answer.answer for answer in answers] == [SubmitAnswer.NEW, SubmitAnswer.KNOWN, SubmitAnswer.NEW]
    assert [answer.document for answer in answers] == [await stored(backend, id) for id in "abc"]
    assert (await stored(backend, "b"))["payload"] == "first"
    [again] = await backend.jobs.submit_many([make_job("a")])
    assert again.answer is SubmitAnswer.KNOWN
