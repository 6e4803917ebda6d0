"""`ClaimStore`: dispatches, requeues, fails and resets; a write about another attempt or state changes nothing."""

from dataclasses import replace
from typing import Any

import pytest

from hascheduler.dispatch.decisions import (
    LOST_UNSTARTED,
    NOT_STARTED,
    UNREGISTERED,
    Cancel,
    Decision,
    Dispatch,
    Fail,
    Fire,
    RecordVerdict,
    Requeue,
    ResetCursor,
)
from hascheduler.model.documents.job import decode_job
from hascheduler.model.documents.schedule import decode_fire_counts, decode_schedule
from hascheduler.model.job import LIVE, OCCUPYING, TERMINAL, JobState, fire_job_id
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import FireCounts, Verdict, VerdictRun
from hascheduler.ports import CancelAnswer, KeyedRetry, ReprioritizeAnswer, RetryAnswer
from hascheduler.schema.schedule import Basis
from tests.contract.backends import Backend, on
from tests.contract.checks import (
    AFTER,
    AT,
    DONE,
    LOST,
    a_dispatch_of_a_job_that_was_cancelled_in_between_is_lost,
    applied,
    of_racing_dispatches_of_one_attempt_one_wins,
    raced,
)
from tests.contract.job_states import at, attempt_record, bring_to, dispatch, finish, records, stored, stored_schedule
from tests.factories import NOW, make_fire, make_job, make_schedule

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
        "last_error": "1 $dead",
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


PENDING, DISPATCHED, RUNNING = JobState.PENDING, JobState.DISPATCHED, JobState.RUNNING
SUCCEEDED, FAILED, CANCELLED = JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED
NOT_HELD = sorted(TERMINAL | {PENDING})

DECISIONS: list[tuple[JobState, Decision]] = [
    (DISPATCHED, Dispatch("a", 1, "p2")),  # promised to another
    (DISPATCHED, Dispatch("a", 2, "p1")),  # still occupied
    (DISPATCHED, Dispatch("nobody", 1, "p1")),
    *((PENDING, Dispatch("a", attempt, "p1")) for attempt in (0, 2, 3)),
    *((RUNNING, decided("a", attempt, "used up")) for decided in (Requeue, Fail, Cancel) for attempt in (0, 2)),
    *((RUNNING, Requeue("a", 1, reason)) for reason in (NOT_STARTED, UNREGISTERED, LOST_UNSTARTED)),
    *((state, Requeue("a", 1, "dead")) for state in (SUCCEEDED, FAILED)),
    *((state, Requeue("a", 0, "dead")) for state in (CANCELLED, PENDING)),
    (SUCCEEDED, Fail("a", 1, "used up")),
    *((state, Cancel("a", 1, "replaced")) for state in (SUCCEEDED, FAILED)),
]


@pytest.mark.parametrize(("state", "decision"), DECISIONS, ids=str)
async def test_a_decision_about_another_attempt_or_state_is_lost(
    backend: Backend, state: JobState, decision: Decision
) -> None:
    await bring_to(backend, state)
    before = await stored(backend)
    assert await applied(backend.claims, decision) == [LOST]
    assert await stored(backend) == before


CALLS: list[tuple[JobState, str, tuple[Any, ...], object]] = [
    *(
        (state, "work.start", ("a", *other, AFTER), None)
        for state in sorted(OCCUPYING)
        for other in ((2, "p1"), (0, "p1"), (1, "p2"))
    ),
    *((state, "work.start", ("a", int(state in (SUCCEEDED, FAILED)), "p1", AFTER), None) for state in NOT_HELD),
    (RUNNING, "work.start", ("nobody", 1, "p1", AFTER), None),
    *((RUNNING, "work.give_back", (*other, "draining", AFTER), False) for other in (("a", 2, "p1"), ("a", 1, "p2"))),
    *((state, "work.give_back", ("a", 1, "p1", "draining", AFTER), False) for state in NOT_HELD),
    (RUNNING, "work.give_back", ("nobody", 1, "p1", "draining", AFTER), False),
    *((state, "jobs.cancel", ("a", AFTER), CancelAnswer.ALREADY_DONE) for state in sorted(TERMINAL)),
    (PENDING, "jobs.cancel", ("nobody", AFTER), None),
    *((state, "jobs.retry", ("a", AFTER), KeyedRetry(RetryAnswer.NOT_ENDED)) for state in (PENDING, RUNNING)),
    (SUCCEEDED, "jobs.retry", ("a", AFTER), KeyedRetry(RetryAnswer.NOT_FAILED)),
    (FAILED, "jobs.retry", ("nobody", AFTER), None),
    *((state, "jobs.reprioritize", ("a", 9), ReprioritizeAnswer.ALREADY_RUNNING) for state in sorted(OCCUPYING)),
    *((state, "jobs.reprioritize", ("a", 9), ReprioritizeAnswer.ALREADY_DONE) for state in sorted(TERMINAL)),
    (PENDING, "jobs.reprioritize", ("nobody", 9), None),
]


@pytest.mark.parametrize(("state", "call", "arguments", "answer"), CALLS)
async def test_a_call_about_another_attempt_or_state_says_so_and_changes_nothing(
    backend: Backend, state: JobState, call: str, arguments: tuple[Any, ...], answer: object
) -> None:
    await bring_to(backend, state)
    before = await stored(backend)
    store, method = call.split(".")
    assert await getattr(getattr(backend, store), method)(*arguments) == answer
    assert await stored(backend) == before


# Not mongomock: it knows no transactions.


RESET = ResetCursor("tick", at(10), NOW)


def passed(first: int, last: int, verdict: Verdict = Verdict.COALESCED) -> RecordVerdict:
    run = VerdictRun("tick", verdict, at(first), at(last), last - first + 1)
    return RecordVerdict(run, Basis(at(first - 1), NOW, created_at_ms=NOW))


def fired(second: int, basis: Basis | None = None) -> Fire:
    return Fire("tick", at(second), basis or Basis(at(second - 1), NOW, created_at_ms=NOW))


async def ahead(backend: Backend, *decided: Decision) -> None:
    """A schedule for which all that was decided, and which is to be reset to its tenth second."""
    made = make_schedule()
    await backend.schedules.create(made)
    assert set(await applied(backend.claims, *decided)) == {DONE}
    assert await backend.schedules.edit("tick", 1, {"reset_at_ms": at(10)}) is not None


async def test_a_reset_takes_the_cursor_back_and_what_fired_stays(backend: Backend) -> None:
    await ahead(backend, passed(1, 50), passed(51, 99, Verdict.THROTTLED), fired(100), fired(101))
    assert await applied(backend.claims, RESET) == [DONE]
    schedule = await stored_schedule(backend)
    assert (schedule["cursor_ms"], schedule["since_ms"], schedule["rev"]) == (at(10), at(101), 3)
    assert (schedule["reset_at_ms"], schedule["throttled"]) == (None, 0)
    assert decode_fire_counts(schedule["tally"]) == FireCounts(fired=2, coalesced=10)
    kept = passed(101, 101, Verdict.FIRED), passed(100, 100, Verdict.FIRED), passed(1, 10)
    assert [record.run for record in await records(backend)] == [each.run for each in kept]
    # And it goes on from there.
    basis = decode_schedule("tick", schedule).basis_at(at(10))
    assert await applied(backend.claims, fired(11, basis)) == [DONE]
    assert (await stored_schedule(backend))["cursor_ms"] == at(11)


async def test_what_was_decided_before_a_reset_is_not_carried_out_after_it(backend: Backend) -> None:
    await ahead(backend, passed(1, 99), fired(100))
    assert await applied(backend.claims, RESET) == [DONE]
    assert await applied(backend.claims, fired(101)) == [LOST]
    assert await backend.jobs.get(fire_job_id("tick", at(101))) is None
    assert (await stored_schedule(backend))["cursor_ms"] == at(10)


async def test_a_reset_of_another_schedule_of_that_name_is_lost(backend: Backend) -> None:
    await ahead(backend, passed(1, 99), fired(100))
    before = await stored_schedule(backend)
    assert await applied(backend.claims, replace(RESET, created_at_ms=WallMs(NOW - 1))) == [LOST]
    assert await stored_schedule(backend) == before
    assert await applied(backend.claims, replace(RESET, schedule="nothing")) == [LOST]


async def test_a_request_that_was_broken_by_hand_is_answered_by_taking_it_away(backend: Backend) -> None:
    await ahead(backend, passed(1, 99), fired(100))
    assert await backend.schedules.edit("tick", 2, {"trigger": {"type": "nonsense"}}) is not None
    assert await applied(backend.claims, RESET) == [DONE]
    schedule = await stored_schedule(backend)
    assert (schedule["reset_at_ms"], schedule["cursor_ms"]) == (None, at(100))
