"""The processors that come with the package, run as anybody's would be."""

import json
from typing import Any

import pytest

from hascheduler.model.job import JobState
from hascheduler.ports import AttemptOutcome
from hascheduler.processor import load_handlers
from tests.unit.processor.world import staged, until


async def test_log_writes_one_whole_line_for_each_attempt(capfd: pytest.CaptureFixture[str]) -> None:
    async with staged(load_handlers(["processors.log"]), slots=8, deadline_ms=60_000) as stage:
        jobs = [stage.world.dispatch(f"j{n}", "log", {"n": n, "text": "ü" * 5_000}) for n in range(20)]
        await until(lambda: all(job.state is JobState.SUCCEEDED for job in jobs))
    # What is logged goes to the same output in tests, and may end without its own line's end when one of these begins.
    written = [line.partition('{"effect"') for line in capfd.readouterr().out.splitlines()]
    lines = [json.loads(effect + rest) for _, effect, rest in written if effect]
    assert sorted(line["payload"]["n"] for line in lines) == list(range(20))
    assert {"effect", "job", "attempt", "target", "schedule", "nominal_ms", "at_ms", "payload"} == set(lines[0])


async def test_sleep_returns_how_long_it_slept() -> None:
    async with staged(load_handlers(["processors.sleep"])) as stage:
        job = stage.world.dispatch("a", "sleep", {"seconds": 0})
        assert await job.ended() == AttemptOutcome(JobState.SUCCEEDED, result={"slept": 0})


@pytest.mark.parametrize(
    "payload", [None, {}, [], {"seconds": "1"}, {"seconds": -1}, {"seconds": True}, {"seconds": 1e9}]
)
async def test_sleep_refuses_a_payload_that_makes_no_sense(payload: Any) -> None:
    async with staged(load_handlers(["processors.sleep"])) as stage:
        job = stage.world.dispatch("a", "sleep", payload)
        outcome = await job.ended()
        assert outcome.state is JobState.FAILED
        assert (outcome.error or "").startswith("PermanentError: the payload must be")
