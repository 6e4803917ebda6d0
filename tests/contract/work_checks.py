"""What must hold of any `WorkStore`; the planted bugs must fail these.

Each takes the stores that bring a job into place as well; only ``work`` is the one under test.
"""

from typing import Any

from hascheduler.dispatch.decisions import Dispatch, Requeue, Settlement
from hascheduler.model.job import JobState
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import AttemptOutcome, ClaimStore, FinishAnswer, JobStore, WorkStore
from tests.contract.racing import RACERS, raced
from tests.factories import NOW, make_job

AT = WallMs(NOW + 40)


async def an_old_attempt_can_not_start(work: WorkStore, claims: ClaimStore, jobs: JobStore) -> None:
    await _second_attempt(claims, jobs)
    before = await jobs.get("a")
    assert await work.start("a", 1, "p1", AT) is None
    assert await jobs.get("a") == before


async def an_old_attempt_can_not_finish(work: WorkStore, claims: ClaimStore, jobs: JobStore) -> None:
    """Its result is kept beside the job and changes nothing."""
    await _second_attempt(claims, jobs)
    assert await work.start("a", 2, "p1", AT) is not None
    before: Any = await jobs.get("a")
    late = AttemptOutcome(JobState.SUCCEEDED, result="$late")
    assert await work.finish("a", 1, "p1", late, AT) is FinishAnswer.LATE
    kept = {"attempt": 1, "processor": "p1", "state": "succeeded", "result": "$late", "error": None, "at_ms": AT}
    assert await jobs.get("a") == {**before, "rev": before["rev"] + 1, "late_results": [kept]}


async def of_racing_starts_one_moves_the_job(work: WorkStore, claims: ClaimStore, jobs: JobStore) -> None:
    """Half of them are those of processors that it was not promised to."""
    await jobs.submit(make_job())
    await _apply(claims, Dispatch("a", 1, "p1"))
    answers = await raced(
        work.start("a", 1, "p1" if number % 2 else f"other-{number}", WallMs(AT + number)) for number in range(RACERS)
    )
    assert {number % 2 for number, started in enumerate(answers) if started is not None} == {1}
    job: Any = await jobs.get("a")
    assert (job["state"], job["processor"], job["rev"]) == (JobState.RUNNING, "p1", 3)


async def _second_attempt(claims: ClaimStore, jobs: JobStore) -> None:
    """A job whose first attempt was revoked, and whose second is promised to the same processor."""
    await jobs.submit(make_job())
    await _apply(claims, Dispatch("a", 1, "p1"), Requeue("a", 1, "dead"), Dispatch("a", 2, "p1"))


async def _apply(claims: ClaimStore, *decisions: Dispatch | Requeue) -> None:
    settled = await claims.apply(decisions, NOW, majority=True)
    assert settled == [Settlement.DONE] * len(decisions)
