"""`WorkStore`: how attempts end, with an outcome or by being given back."""

import pytest

from hascheduler.dispatch.decisions import Requeue
from hascheduler.errors import InvalidInput
from hascheduler.model.collection import Collection
from hascheduler.model.job import OCCUPYING, TERMINAL, JobState
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import AttemptOutcome, FinishAnswer
from tests.contract.backends import Backend, on
from tests.contract.checks import AFTER as AT
from tests.contract.checks import RACERS, an_old_attempt_can_not_finish, applied, raced
from tests.contract.job_states import SUCCEEDED, bring_to, dispatch, stored

# Not mongomock: in an array that an update pipeline builds it leaves "$attempt" standing where the value belongs.
pytestmark = on("memory", "pymongo", "motor")

LATER = WallMs(AT + 1_000)


@pytest.mark.parametrize(
    "outcome",
    [
        AttemptOutcome(JobState.SUCCEEDED, result={"$set": ["$x", None, 1.5]}),
        AttemptOutcome(JobState.FAILED, error="$boom"),
        AttemptOutcome(JobState.CANCELLED),
    ],
)
async def test_a_finish_ends_the_job_and_keeps_the_record_of_the_attempt(
    backend: Backend, outcome: AttemptOutcome
) -> None:
    await bring_to(backend, JobState.RUNNING)
    before = await stored(backend)
    assert await backend.work.finish("a", 1, "p1", outcome, AT) is FinishAnswer.DONE
    after = await stored(backend)
    assert after["expire_at"] is not None
    assert after == {
        **before,
        "state": outcome.state,
        "result": outcome.result,
        "error": outcome.error,
        "processor": None,
        "finished_at_ms": AT,
        "expire_at": after["expire_at"],
        "rev": before["rev"] + 1,
        "failures": 1 if outcome.state is JobState.FAILED else 0,
        "attempts": [
            {
                "number": 1,
                "processor": "p1",
                "dispatched_at_ms": before["dispatched_at_ms"],
                "started_at_ms": before["started_at_ms"],
                "finished_at_ms": AT,
                "outcome": outcome.state,
                "error": outcome.error,
            }
        ],
    }


async def test_the_newest_three_attempts_keep_their_tracebacks_as_they_were_told(backend: Backend) -> None:
    """Without one, the record is as before."""
    await bring_to(backend, JobState.RUNNING)
    for number in range(1, 6):
        if number > 1:
            await dispatch(backend, "a", number, "p1")
            assert await backend.work.start("a", number, "p1", AT) is not None
        told = None if number == 1 else f"$state {number}"
        retry_at_ms = LATER if number < 5 else None
        failed = AttemptOutcome(JobState.FAILED, error="no", retry_at_ms=retry_at_ms, traceback=told)
        assert await backend.work.finish("a", number, "p1", failed, AT) is FinishAnswer.DONE
    records = (await stored(backend))["attempts"]
    assert [record.get("traceback") for record in records] == [None, None, "$state 3", "$state 4", "$state 5"]
    assert ["traceback" in record for record in records] == [False, False, True, True, True]
    assert [record["error"] for record in records] == ["no"] * 5


async def test_an_old_attempt_can_not_finish(backend: Backend) -> None:
    await an_old_attempt_can_not_finish(backend.work, backend.claims, backend.jobs)


async def test_a_late_finish_is_late_however_often_and_kept_once(backend: Backend) -> None:
    await bring_to(backend, JobState.RUNNING)
    await applied(backend.claims, Requeue("a", 1, "dead"))
    assert await backend.work.finish("a", 1, "p1", SUCCEEDED, AT) is FinishAnswer.LATE
    after = await stored(backend)
    assert after["state"] == JobState.PENDING
    assert len(after["late_results"]) == 1
    assert await backend.work.finish("a", 1, "p1", SUCCEEDED, LATER) is FinishAnswer.LATE
    assert await stored(backend) == after


@pytest.mark.parametrize(
    ("state", "id", "processor"),
    [(JobState.RUNNING, "a", "p2"), (JobState.DISPATCHED, "a", "p1"), (JobState.RUNNING, "nobody", "p1")],
    ids=["of another processor", "not started", "of no job"],
)
async def test_a_finish_of_what_does_not_run_there_is_late(
    backend: Backend, state: JobState, id: str, processor: str
) -> None:
    await bring_to(backend, state)
    assert await backend.work.finish(id, 1, processor, SUCCEEDED, AT) is FinishAnswer.LATE
    assert (await stored(backend))["state"] == state
    assert await backend.behind.find(Collection.JOBS, "nobody") is None


async def test_late_results_are_bounded(backend: Backend) -> None:
    await bring_to(backend, JobState.PENDING)
    for number in range(15):
        await backend.work.finish("a", 1, f"p{number}", SUCCEEDED, AT)
    kept = (await stored(backend))["late_results"]
    assert [late["processor"] for late in kept] == [f"p{number}" for number in range(12, 15)]


async def test_a_result_that_arrives_before_the_request_to_cancel_is_heeded_wins(backend: Backend) -> None:
    await bring_to(backend, JobState.RUNNING)
    await backend.jobs.cancel("a", AT)
    assert await backend.work.finish("a", 1, "p1", SUCCEEDED, AT) is FinishAnswer.DONE
    assert (await stored(backend))["state"] == JobState.SUCCEEDED


@pytest.mark.parametrize("state", [JobState.PENDING, JobState.DISPATCHED, JobState.RUNNING])
async def test_an_outcome_that_ends_nothing_is_refused(backend: Backend, state: JobState) -> None:
    await bring_to(backend, JobState.RUNNING)
    with pytest.raises(InvalidInput):
        await backend.work.finish("a", 1, "p1", AttemptOutcome(state), AT)


async def test_of_fifty_racing_finishes_the_first_is_kept_and_all_are_done(backend: Backend) -> None:
    await bring_to(backend, JobState.RUNNING)
    rev = (await stored(backend))["rev"]
    answers = await raced(backend.work.finish("a", 1, "p1", SUCCEEDED, WallMs(AT + n)) for n in range(RACERS))
    assert set(answers) == {FinishAnswer.DONE}
    after = await stored(backend)
    assert (after["rev"], len(after["attempts"])) == (rev + 1, 1)


# Giving back


@pytest.mark.parametrize("state", sorted(OCCUPYING))
async def test_a_job_that_is_given_back_waits_for_its_next_attempt(backend: Backend, state: JobState) -> None:
    await bring_to(backend, state)
    before = await stored(backend)
    assert await backend.work.give_back("a", 1, "p1", "$draining", AT) is True
    after = await stored(backend)
    assert (after["state"], after["attempt"], after["processor"]) == (JobState.PENDING, 1, None)
    assert (after["dispatched_at_ms"], after["started_at_ms"], after["rev"]) == (None, None, before["rev"] + 1)
    assert after["attempts"] == [
        {
            "number": 1,
            "processor": "p1",
            "dispatched_at_ms": before["dispatched_at_ms"],
            "started_at_ms": before["started_at_ms"],
            "finished_at_ms": AT,
            "outcome": "given_back",
            "error": "$draining",
        }
    ]
    assert await backend.work.give_back("a", 1, "p1", "$draining", LATER) is True
    assert await stored(backend) == after
    await dispatch(backend, attempt=2)


@pytest.mark.parametrize(
    ("state", "id", "attempt", "processor"),
    [
        (JobState.RUNNING, "a", 2, "p1"),
        (JobState.RUNNING, "a", 1, "p2"),
        (JobState.RUNNING, "nobody", 1, "p1"),
        *((state, "a", 1, "p1") for state in sorted(TERMINAL | {JobState.PENDING})),
    ],
)
async def test_what_is_not_held_there_can_not_be_given_back(
    backend: Backend, state: JobState, id: str, attempt: int, processor: str
) -> None:
    await bring_to(backend, state)
    before = await stored(backend)
    assert await backend.work.give_back(id, attempt, processor, "draining", AT) is False
    assert await stored(backend) == before


async def test_an_attempt_that_was_given_back_can_not_finish(backend: Backend) -> None:
    await bring_to(backend, JobState.RUNNING)
    await backend.work.give_back("a", 1, "p1", "draining", AT)
    assert await backend.work.finish("a", 1, "p1", SUCCEEDED, AT) is FinishAnswer.LATE
