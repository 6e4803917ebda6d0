"""How tests drive one handler: as the processor does, or alone with a job of their own."""

from collections.abc import Callable
from typing import Any

from hascheduler.model.job import JobState
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import AttemptOutcome
from hascheduler.processor import JobContext, load_handlers
from tests.unit.processor.world import staged, until


def make_job(
    payload: Any = None,
    *,
    attempt: int = 1,
    schedule: str | None = None,
    nominal_ms: int | None = None,
    cancel_requested: Callable[[], bool] = lambda: False,
) -> JobContext:
    return JobContext(
        id="j1",
        attempt=attempt,
        definition="d",
        target="t",
        payload=payload,
        tenant="default",
        labels={},
        schedule=schedule,
        nominal_ms=None if nominal_ms is None else WallMs(nominal_ms),
        submitted_at_ms=WallMs(0),
        _cancel_requested=cancel_requested,
        _stop_requested=cancel_requested,
    )


async def outcome_of(definition: str, payload: Any) -> AttemptOutcome:
    async with staged(load_handlers([f"hascheduler.handlers.{definition}"])) as stage:
        job = stage.world.dispatch("j1", definition, payload)
        await until(lambda: job.outcome is not None)
        assert job.outcome is not None
        return job.outcome


async def result_of(definition: str, payload: Any) -> Any:
    outcome = await outcome_of(definition, payload)
    assert outcome.state is JobState.SUCCEEDED, outcome.error
    return outcome.result


async def error_of(definition: str, payload: Any) -> str:
    outcome = await outcome_of(definition, payload)
    assert outcome.state is JobState.FAILED
    assert outcome.error is not None
    return outcome.error
