"""Every write of a job names the state and the attempt that it is about. About any other it changes nothing."""

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
    Requeue,
)
from hascheduler.model.job import OCCUPYING, TERMINAL, JobState
from hascheduler.ports import CancelAnswer, KeyedRetry, ReprioritizeAnswer, RetryAnswer
from tests.contract.backends import Backend, on
from tests.contract.checks import AFTER as AT
from tests.contract.checks import LOST, applied
from tests.contract.job_states import bring_to, stored

pytestmark = on("memory", "pymongo", "motor")

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
        (state, "work.start", ("a", *other, AT), None)
        for state in sorted(OCCUPYING)
        for other in ((2, "p1"), (0, "p1"), (1, "p2"))
    ),
    *((state, "work.start", ("a", int(state in (SUCCEEDED, FAILED)), "p1", AT), None) for state in NOT_HELD),
    (RUNNING, "work.start", ("nobody", 1, "p1", AT), None),
    *((RUNNING, "work.give_back", (*other, "draining", AT), False) for other in (("a", 2, "p1"), ("a", 1, "p2"))),
    *((state, "work.give_back", ("a", 1, "p1", "draining", AT), False) for state in NOT_HELD),
    (RUNNING, "work.give_back", ("nobody", 1, "p1", "draining", AT), False),
    *((state, "jobs.cancel", ("a", AT), CancelAnswer.ALREADY_DONE) for state in sorted(TERMINAL)),
    (PENDING, "jobs.cancel", ("nobody", AT), None),
    *((state, "jobs.retry", ("a", AT), KeyedRetry(RetryAnswer.NOT_ENDED)) for state in (PENDING, RUNNING)),
    (SUCCEEDED, "jobs.retry", ("a", AT), KeyedRetry(RetryAnswer.NOT_FAILED)),
    (FAILED, "jobs.retry", ("nobody", AT), None),
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
