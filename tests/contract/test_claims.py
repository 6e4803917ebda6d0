"""`ClaimStore`: dispatches, and batches of all kinds; fires and requeues have suites of their own."""

import pytest

from hascheduler.dispatch.decisions import (
    LOST_UNSTARTED,
    NOT_STARTED,
    UNREGISTERED,
    Cancel,
    Decision,
    Dispatch,
    Fail,
    Requeue,
)
from hascheduler.model.documents.job import decode_job
from hascheduler.model.job import LIVE, OCCUPYING, JobState
from hascheduler.model.values.instants import WallMs
from tests.contract.backends import Backend, on
from tests.contract.checks import (
    AT,
    DONE,
    LOST,
    a_dispatch_applied_again_is_done_and_changes_nothing,
    a_dispatch_of_a_job_that_was_cancelled_in_between_is_lost,
    applied,
    of_racing_dispatches_of_one_attempt_one_wins,
    raced,
)
from tests.contract.job_states import attempt_record, bring_to, dispatch, finish, stored
from tests.factories import make_fire, make_job, make_schedule

# Not mongomock: in an array that an update pipeline builds it leaves "$attempt" standing where the value belongs.
pytestmark = on("memory", "pymongo", "motor")


# Dispatch


async def test_a_dispatch_claims_a_pending_job(backend: Backend) -> None:
    await backend.jobs.submit(make_job())
    before = await stored(backend)
    assert await applied(backend.claims, Dispatch("a", 1, "p1")) == [DONE]
    assert await stored(backend) == {
        **before,
        "state": JobState.DISPATCHED,
        "attempt": 1,
        "processor": "p1",
        "dispatched_at_ms": AT,
        "rev": 2,
    }


async def test_a_dispatch_applied_again_is_done_and_changes_nothing(backend: Backend) -> None:
    await a_dispatch_applied_again_is_done_and_changes_nothing(backend.claims, backend.jobs)


async def test_a_dispatch_of_a_job_that_was_cancelled_in_between_is_lost(backend: Backend) -> None:
    await a_dispatch_of_a_job_that_was_cancelled_in_between_is_lost(backend.claims, backend.jobs)


@pytest.mark.parametrize("then", ["started", "succeeded", "failed", "requeued", "given back", "dispatched again"])
async def test_a_dispatch_stays_done_however_its_attempt_ended(backend: Backend, then: str) -> None:
    await bring_to(backend, JobState.RUNNING)
    match then:
        case "succeeded":
            await finish(backend)
        case "failed":
            assert await applied(backend.claims, Fail("a", 1, "used up")) == [DONE]
        case "requeued":
            assert await applied(backend.claims, Requeue("a", 1, "dead")) == [DONE]
        case "given back":
            assert await backend.work.give_back("a", 1, "p1", "draining", AT)
        case "dispatched again":
            assert await applied(backend.claims, Requeue("a", 1, "dead"), Dispatch("a", 2, "p2")) == [DONE, DONE]
    before = await stored(backend)
    assert await applied(backend.claims, Dispatch("a", 1, "p1")) == [DONE]
    assert await applied(backend.claims, Dispatch("a", 1, "p9")) == [LOST]
    assert await stored(backend) == before


async def test_of_fifty_racing_dispatches_of_one_attempt_one_wins(backend: Backend) -> None:
    await of_racing_dispatches_of_one_attempt_one_wins(backend.claims, backend.jobs)


async def test_many_leaders_that_apply_one_entry_at_once_are_all_done_and_it_happens_once(backend: Backend) -> None:
    decisions = [Dispatch(f"job-{number}", 1, f"p{number % 3}") for number in range(20)]
    for decision in decisions:
        await backend.jobs.submit(make_job(decision.job_id))
    answers = await raced(applied(backend.claims, *decisions) for _ in range(10))
    assert answers == [[DONE] * len(decisions)] * 10
    for decision in decisions:
        job = await stored(backend, decision.job_id)
        assert (job["rev"], job["attempt"], job["processor"]) == (2, 1, decision.processor)


async def test_a_racing_cancel_and_dispatch_agree_on_the_outcome(backend: Backend) -> None:
    for number in range(20):
        id = f"job-{number}"
        await backend.jobs.submit(make_job(id))
        settled, _ = await raced([applied(backend.claims, Dispatch(id, 1, "p1")), _cancel(backend, id)])
        job = await stored(backend, id)
        # Cancelled either way; the record says whether the promise had been made by then.
        assert job["state"] == JobState.CANCELLED
        assert settled == [LOST] or job["attempt"] == 1


async def _cancel(backend: Backend, id: str) -> list[object]:
    return [await backend.jobs.cancel(id, AT)]


# Batches


async def test_settlements_come_in_the_order_of_the_decisions(backend: Backend) -> None:
    for id in ("new", "free"):
        await backend.jobs.submit(make_job(id))
    await bring_to(backend, JobState.RUNNING, "lost")
    await bring_to(backend, JobState.DISPATCHED, "hopeless")
    await bring_to(backend, JobState.CANCELLED, "gone")
    decisions: list[Decision] = [
        Dispatch("new", 1, "p1"),
        Dispatch("gone", 1, "p1"),
        Requeue("lost", 1, "dead"),
        Fail("hopeless", 1, "used up"),
        Requeue("nobody", 1, "dead"),
        make_fire(0, schedule="nothing"),
        Dispatch("free", 1, "p2"),
    ]
    assert await applied(backend.claims, *decisions) == [DONE, LOST, DONE, DONE, LOST, LOST, DONE]
    assert await applied(backend.claims, *decisions) == [DONE, LOST, DONE, DONE, LOST, LOST, DONE]


async def test_decisions_for_one_job_are_applied_in_their_order(backend: Backend) -> None:
    await backend.jobs.submit(make_job())
    decisions: list[Decision] = [
        Dispatch("a", 1, "p1"),
        Requeue("a", 1, "dead"),
        Dispatch("a", 2, "p2"),
        Fail("a", 2, "used up"),
    ]
    assert await applied(backend.claims, *decisions) == [DONE] * 4
    job = await stored(backend)
    assert (job["state"], job["attempt"], job["rev"]) == (JobState.FAILED, 2, 5)
    assert [record["number"] for record in job["attempts"]] == [1, 2]
    assert await applied(backend.claims, *decisions) == [DONE] * 4
    assert await stored(backend) == job


@pytest.mark.parametrize("majority", [False, True])
async def test_large_batches_are_applied_whole(backend: Backend, majority: bool) -> None:
    await backend.schedules.create(make_schedule())
    fires = [make_fire(number) for number in range(1, 301)]
    dispatches = [Dispatch(fire.job_id, 1, f"p{number % 7}") for number, fire in enumerate(fires)]
    decisions: list[Decision] = [*fires, *dispatches]
    assert await backend.claims.apply(decisions, AT, majority=majority) == [DONE] * len(decisions)
    assert await applied(backend.claims, *decisions) == [DONE] * len(decisions)
    for dispatched in (dispatches[0], dispatches[150], dispatches[-1]):
        assert (await stored(backend, dispatched.job_id))["processor"] == dispatched.processor


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
        "attempts": [attempt_record(before, "lost", "$dead", AT)],
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


async def test_a_fail_and_a_requeue_with_the_same_words_are_told_apart(backend: Backend) -> None:
    await bring_to(backend, JobState.RUNNING)
    assert await applied(backend.claims, Fail("a", 1, "dead"), Requeue("a", 1, "dead")) == [DONE, LOST]


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
