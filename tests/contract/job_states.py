"""Brings a job into any of its states, through the ports alone."""

from collections.abc import Mapping
from typing import Any

from hascheduler.dispatch.decisions import Dispatch, Settlement
from hascheduler.model.job import JobState, ScheduleId
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import Verdict
from hascheduler.ports import AttemptOutcome, CancelAnswer, FinishAnswer, VerdictRecord
from tests.contract.backends import Backend
from tests.factories import NOW, make_job

SUCCEEDED = AttemptOutcome(JobState.SUCCEEDED, result={"ok": 1})
TICK = ScheduleId("tick", "tenant", NOW)


def at(second: int) -> WallMs:
    return WallMs(NOW + 1_000 * second)


async def dispatch(backend: Backend, job_id: str = "a", attempt: int = 1, processor: str = "p1") -> None:
    [settled] = await backend.claims.apply([Dispatch(job_id, attempt, processor)], WallMs(NOW + 10), majority=True)
    assert settled is Settlement.DONE


async def start(backend: Backend, job_id: str = "a", attempt: int = 1, processor: str = "p1") -> None:
    assert await backend.work.start(job_id, attempt, processor, WallMs(NOW + 20)) is not None


async def finish(
    backend: Backend, job_id: str = "a", attempt: int = 1, processor: str = "p1", outcome: AttemptOutcome = SUCCEEDED
) -> None:
    answer = await backend.work.finish(job_id, attempt, processor, outcome, WallMs(NOW + 30))
    assert answer is FinishAnswer.DONE


async def bring_to(backend: Backend, state: JobState, job_id: str = "a") -> None:
    """A new job in ``state``, its first attempt with processor ``p1``."""
    await backend.jobs.submit(make_job(job_id))
    match state:
        case JobState.PENDING:
            return
        case JobState.CANCELLED:
            assert await backend.jobs.cancel(job_id, WallMs(NOW + 10)) is CancelAnswer.CANCELLED
            return
    await dispatch(backend, job_id)
    if state is JobState.DISPATCHED:
        return
    await start(backend, job_id)
    if state is not JobState.RUNNING:
        await finish(backend, job_id, outcome=AttemptOutcome(state))


def attempt_record(before: Mapping[str, Any], outcome: str, error: str | None, at_ms: int) -> dict[str, Any]:
    """What is kept of the first attempt of a job that was ``before``."""
    times = {name: before[name] for name in ("dispatched_at_ms", "started_at_ms")}
    return {"number": 1, "processor": "p1", **times, "finished_at_ms": at_ms, "outcome": outcome, "error": error}


async def stored(backend: Backend, job_id: str = "a") -> Mapping[str, Any]:
    """The job as it is stored."""
    job = await backend.jobs.get(job_id)
    assert job is not None
    return job


async def records(
    backend: Backend, *verdicts: Verdict, schedule: ScheduleId = TICK, before: int = 10**6, limit: int = 100
) -> list[VerdictRecord]:
    """The verdicts on the times of the schedule, the newest first."""
    which = frozenset(verdicts or Verdict)
    return list(await backend.verdicts.list(schedule, which, at(-100), at(before), limit))


async def stored_schedule(backend: Backend, name: str = "tick") -> Mapping[str, Any]:
    schedule = await backend.schedules.get(name)
    assert schedule is not None
    return schedule
