"""`WorkStore`: how attempts end, with an outcome or by being given back."""

import asyncio
from typing import Any

import pytest

from hascheduler.dispatch.decisions import Dispatch, Requeue, Settlement
from hascheduler.errors import InvalidInput
from hascheduler.model.collection import Collection
from hascheduler.model.job import OCCUPYING, JobState
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import AttemptOutcome, FinishAnswer, StartedJob, Submission, SubmitAnswer
from tests.contract.backends import Backend, on
from tests.contract.checks import AFTER as AT
from tests.contract.checks import RACERS, an_old_attempt_can_not_finish, applied, raced
from tests.contract.job_states import SUCCEEDED, attempt_record, bring_to, dispatch, stored
from tests.factories import NOW, make_job

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
        "attempts": [attempt_record(before, outcome.state, outcome.error, AT)],
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
    assert after["attempts"] == [attempt_record(before, "given_back", "$draining", AT)]
    assert await backend.work.give_back("a", 1, "p1", "$draining", LATER) is True
    assert await stored(backend) == after
    await dispatch(backend, attempt=2)


JOBS = [f"job-{number:02}" for number in range(20)]
TOO_LARGE_A_NUMBER = 2**70


async def promised(backend: Backend) -> None:
    """Every third job is promised to another processor."""
    for id in JOBS:
        await backend.jobs.submit(make_job(id=id, payload={"of": id}))
    claims = [Dispatch(id, 1, "p2" if number % 3 == 0 else "p1") for number, id in enumerate(JOBS)]
    assert await backend.claims.apply(claims, NOW, majority=True) == [Settlement.DONE] * len(JOBS)


def ours(number: int) -> bool:
    return number % 3 != 0


async def started(backend: Backend) -> list[StartedJob | None]:
    return await asyncio.gather(*(backend.work.start(id, 1, "p1", WallMs(AT + n)) for n, id in enumerate(JOBS)))


async def test_of_many_starts_the_dispatched_jobs_begin_each_with_its_own_payload(backend: Backend) -> None:
    await promised(backend)
    answers = await started(backend)
    assert [answer is not None for answer in answers] == [ours(number) for number in range(len(JOBS))]
    for id, answer in zip(JOBS, answers, strict=True):
        job: Any = await backend.jobs.get(id)
        if answer is None:
            assert (job["state"], job["started_at_ms"]) == ("dispatched", None)
        else:
            assert (answer.id, answer.payload, answer.started_at_ms) == (id, {"of": id}, job["started_at_ms"])
            assert (job["state"], job["rev"], answer.first_started_at_ms) == ("running", 3, answer.started_at_ms)


async def test_many_finishes_each_end_their_own_attempt(backend: Backend) -> None:
    await promised(backend)
    await started(backend)
    outcomes = [
        SUCCEEDED,
        AttemptOutcome(JobState.SUCCEEDED, result={"n": 1}),
        AttemptOutcome(JobState.FAILED, error="boom"),
        AttemptOutcome(JobState.FAILED, error="again", retry_at_ms=WallMs(AT + 5_000)),
    ]

    async def finish(number: int, id: str) -> FinishAnswer:
        return await backend.work.finish(id, 1, "p1", outcomes[number % 4], WallMs(AT + 100))

    for _ in range(2):  # the second time as after unknown answers
        answers = await asyncio.gather(*(finish(number, id) for number, id in enumerate(JOBS)))
        expected = [FinishAnswer.DONE if ours(number) else FinishAnswer.LATE for number in range(len(JOBS))]
        assert answers == expected
        for number, id in enumerate(JOBS):
            job: Any = await backend.jobs.get(id)
            if not ours(number):
                assert job["state"] == "dispatched"
                continue
            outcome = outcomes[number % 4]
            state = "pending" if outcome.retry_at_ms else outcome.state.value
            assert (job["state"], job["result"], len(job["attempts"]), job["rev"]) == (state, outcome.result, 1, 4)


async def test_concurrent_submits_each_get_their_own_answer(backend: Backend) -> None:
    """Two are the same by their key, one asks for something else under it, one can't be stored."""
    jobs = [make_job(id=f"new-{number}") for number in range(10)]
    keyed = {"idempotency_key": "key", "request_hash": "one"}
    jobs += [make_job(id="first", **keyed), make_job(id="same", **keyed)]
    jobs += [make_job(id="other", **{**keyed, "request_hash": "two"}), make_job(id="huge", payload=TOO_LARGE_A_NUMBER)]
    answers = await asyncio.gather(*map(backend.jobs.submit, jobs), return_exceptions=True)
    assert isinstance(answers[-1], InvalidInput)
    results = [answer.answer for answer in answers if isinstance(answer, Submission)]
    assert results[:11] == [SubmitAnswer.NEW] * 11
    assert results[11:] == [SubmitAnswer.KNOWN, SubmitAnswer.OTHER]
    stored = {job.id for job in await backend.jobs.known([job.id for job in jobs])}
    assert stored == {f"new-{number}" for number in range(10)} | {"first"}
