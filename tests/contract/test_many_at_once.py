"""`WorkStore` and `JobStore`: concurrent starts, finishes and submits each get their own answer."""

import asyncio
from typing import Any

from hascheduler.dispatch.decisions import Dispatch, Settlement
from hascheduler.errors import InvalidInput
from hascheduler.model.job import JobState
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import AttemptOutcome, FinishAnswer, StartedJob, Submission, SubmitAnswer
from tests.contract.backends import Backend, on
from tests.contract.checks import AFTER as AT
from tests.contract.job_states import SUCCEEDED
from tests.factories import NOW, make_job

# Not mongomock: see `test_finish`.
pytestmark = on("memory", "pymongo", "motor")

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


async def test_many_starts_repeated_are_answered_again_and_change_nothing(backend: Backend) -> None:
    await promised(backend)
    first = await started(backend)
    before = [await backend.jobs.get(id) for id in JOBS]
    assert await started(backend) == first
    assert [await backend.jobs.get(id) for id in JOBS] == before


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


async def test_one_result_that_can_not_be_stored_does_not_keep_the_others_from_ending(backend: Backend) -> None:
    await promised(backend)
    await started(backend)

    async def finish(number: int, id: str) -> FinishAnswer | InvalidInput:
        result = TOO_LARGE_A_NUMBER if number == 4 else None
        try:
            return await backend.work.finish(id, 1, "p1", AttemptOutcome(JobState.SUCCEEDED, result=result), AT)
        except InvalidInput as error:
            return error

    answers = await asyncio.gather(*(finish(number, id) for number, id in enumerate(JOBS) if ours(number)))
    refused = [place for place, answer in enumerate(answers) if isinstance(answer, InvalidInput)]
    assert len(refused) == 1
    assert [answer for answer in answers if answer is FinishAnswer.DONE] == [FinishAnswer.DONE] * (len(answers) - 1)


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
