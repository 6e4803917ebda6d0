"""`ClaimStore` and `Cancel`: a later fire replaces a job."""

import pytest

from hascheduler.dispatch.decisions import Cancel, Requeue
from hascheduler.model.job import OCCUPYING, TERMINAL, JobState
from hascheduler.ports import SubmitAnswer
from tests.contract.backends import Backend, on
from tests.contract.claim_checks import AT, DONE, LOST, applied
from tests.contract.job_states import bring_to, stored
from tests.factories import make_job

pytestmark = on("memory", "pymongo", "motor")  # not mongomock: see test_requeues


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
