"""What becomes of an attempt that fails, takes too long, or has something to say on the way."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hascheduler.errors import InvalidInput
from hascheduler.model.job import JobState
from hascheduler.model.message import MessageKind
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import AttemptOutcome
from hascheduler.processor import Handlers, JobContext, PermanentError, RetryLater, attempts, invocation
from hascheduler.processor.attempts import StopReason
from hascheduler.schema.definition import Definition
from hascheduler.schema.retry import RetryPolicy
from tests.unit.processor.world import Job, Stage, at_work, handling, staged, until

NOW = 1_000_000
TRIES = RetryPolicy(attempts_max=3, backoff_ms=1_000, backoff_factor=2_000, backoff_max_ms=60_000)


def raising(error: Exception) -> Handlers:
    async def handler(job: JobContext) -> None:
        raise error

    return handling(**{"raise": handler})


async def outcome_of(handlers: Handlers, **job: Any) -> AttemptOutcome:
    async with staged(handlers) as stage:
        dispatched = stage.world.dispatch("a", "raise", rules=Definition(name="raise", retry=TRIES), **job)
        return await dispatched.ended()


@pytest.mark.parametrize("failures", [0, 1, 2])
async def test_an_error_is_tried_again_after_the_pause_of_the_definition_but_for_the_last(failures: int) -> None:
    outcome = await outcome_of(raising(ValueError("no luck")), failures=failures)
    retry_at_ms = None if failures == 2 else WallMs(NOW + TRIES.pause_ms("a", failures + 1))
    assert outcome == AttemptOutcome(JobState.FAILED, error="ValueError: no luck", retry_at_ms=retry_at_ms)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (PermanentError("never"), "PermanentError: never"),
        (InvalidInput(("payload", "url"), "missing"), "InvalidInput: payload.url: missing"),
    ],
)
async def test_what_can_never_succeed_is_not_tried_again(error: Exception, text: str) -> None:
    assert await outcome_of(raising(error)) == AttemptOutcome(JobState.FAILED, error=text)


async def test_an_attempt_that_failed_keeps_the_handler_s_own_traceback_without_secrets() -> None:
    outcome = await outcome_of(raising(ValueError("no answer of mongodb://me:secret@there/")))
    lines = (outcome.traceback or "").splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert "test_tries.py" in lines[1], "the frames of the code that calls handlers are left out"
    assert lines[-1] == "ValueError: no answer of mongodb://***@there/"


async def test_a_handler_may_choose_the_pause_but_not_the_number_of_tries() -> None:
    error = RetryLater("90s", "come later")
    outcome = await outcome_of(raising(error))
    assert outcome == AttemptOutcome(JobState.FAILED, error="RetryLater: come later", retry_at_ms=WallMs(NOW + 90_000))
    assert (await outcome_of(raising(error), failures=2)).retry_at_ms is None


async def test_no_try_begins_after_the_total_timeout() -> None:
    rules = Definition(name="raise", retry=TRIES, total_timeout_ms=10_000)
    async with staged(raising(ValueError("no luck"))) as stage:
        job = stage.world.dispatch("a", "raise", rules=rules, first_started_at_ms=WallMs(NOW - 9_500))
        outcome = await job.ended()
        assert outcome.retry_at_ms is None


# Timeouts


async def test_an_attempt_that_takes_too_long_is_stopped_and_tried_again() -> None:
    async with at_work() as (work, stage):
        job = stage.world.dispatch("a", "hold", rules=Definition(name="hold", timeout_ms=30))
        outcome = await job.ended()
        assert (outcome.error, outcome.retry_at_ms is None) == ("timed out after 30ms", False)
        assert work.contexts["a"].deadline_ms == NOW + 30


@pytest.mark.parametrize(("failures", "tries"), [(0, "1 try"), (1, "2 tries")])
async def test_the_end_of_all_attempts_is_the_end_of_the_job_and_says_how_many_there_were(
    failures: int, tries: str
) -> None:
    rules = Definition(name="hold", timeout_ms=60_000, total_timeout_ms=10_000)
    async with at_work() as (_, stage):
        job = stage.world.dispatch("a", "hold", rules=rules, first_started_at_ms=WallMs(NOW - 9_980), failures=failures)
        assert await job.ended() == AttemptOutcome(JobState.FAILED, error=f"timed out after 10s in all ({tries})")


@pytest.mark.parametrize("how", ["thread", "coroutine"])
@pytest.mark.parametrize("failures", [0, 2])
async def test_a_result_that_comes_after_the_timeout_is_late_and_the_job_is_tried_again_by_its_rule(
    how: str, failures: int
) -> None:
    def thread(job: JobContext) -> str:
        while not job.stop_requested:
            threading.Event().wait(0.001)
        return "too late"

    async def coroutine(job: JobContext) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "too late"
        raise AssertionError("nobody sets it")

    async with staged(handling(slow=thread if how == "thread" else coroutine)) as stage:
        rules = Definition(name="slow", timeout_ms=20, retry=TRIES)
        job = stage.world.dispatch("a", "slow", rules=rules, failures=failures)
        await job.ended()
        again_ms = None if failures else WallMs(NOW + TRIES.pause_ms("a", 1))
        assert job.outcome == AttemptOutcome(JobState.FAILED, error="timed out after 20ms", retry_at_ms=again_ms)


async def test_a_handler_that_heeds_nothing_is_let_go_and_its_slot_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(invocation, "CANCEL_AGAIN_S", 0.02)
    monkeypatch.setattr(attempts, "_LAST_MOMENT_S", 0.02)
    over = asyncio.Event()

    async def deaf(job: JobContext) -> None:
        while not over.is_set():
            try:
                await over.wait()
            except asyncio.CancelledError:
                continue

    async with staged(handling(deaf=deaf), slots=1, deadline_ms=60_000) as stage:
        rules = Definition(name="deaf", timeout_ms=20)
        first, second = (stage.world.dispatch(id, "deaf", rules=rules) for id in "ab")
        try:
            await until(lambda: first.outcome is not None and second.outcome is not None)
        finally:
            over.set()
        assert {first.outcome and first.outcome.error, second.outcome and second.outcome.error} == {
            "timed out after 20ms"
        }


@asynccontextmanager
async def overdue(rules: Definition, **more: Any) -> AsyncIterator[tuple[Stage, Job, threading.Event]]:
    """A job whose thread goes on after its timeout, as it has reported, until the event is set."""
    async with at_work(slots=1, deadline_ms=60_000, **more) as (work, stage):
        job = stage.world.dispatch("a", "deaf", rules=rules)
        await until(lambda: job.overdue_since_ms is not None)
        yield stage, job, work.thread_release


async def test_a_thread_that_outlives_its_timeout_keeps_its_slot_and_fails_when_it_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(invocation, "CANCEL_AGAIN_S", 0.02)
    monkeypatch.setattr(attempts, "_LAST_MOMENT_S", 0.02)
    async with overdue(Definition(name="deaf", timeout_ms=20, retry=TRIES)) as (stage, job, over):
        assert job.overdue_since_ms == NOW + 20
        second = stage.world.dispatch("b", "deaf")
        beats = stage.world.beats
        await until(lambda: stage.world.beats > beats + 10)
        assert (job.state, second.state) == (JobState.RUNNING, JobState.DISPATCHED)
        assert stage.world.calls["report_overdue"] == 1, "it is told once"
        over.set()
        await second.ended()
        again_ms = WallMs(NOW + TRIES.pause_ms("a", 1))
        assert job.outcome == AttemptOutcome(JobState.FAILED, error="timed out after 20ms", retry_at_ms=again_ms)
        assert second.outcome == AttemptOutcome(JobState.SUCCEEDED, result="late"), "it has no timeout"


async def test_a_drain_ends_although_an_overdue_thread_never_does_and_says_nothing_about_its_attempt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is lost with its process: until that has ended nothing else may have what it holds."""
    for limit in ("_STOP_LIMIT_S", "_SETTLE_LIMIT_S"):
        monkeypatch.setattr(f"hascheduler.processor.processor.{limit}", 0.05)
    async with overdue(Definition(name="deaf", timeout_ms=20), drain_grace_ms=20) as (stage, job, _):
        await stage.drained()
        assert (job.state, job.outcome, job.reasons) == (JobState.RUNNING, None, [])
        assert stage.world.registered is None


async def test_an_overdue_thread_whose_job_was_to_be_cancelled_or_was_given_to_another_ends_so() -> None:
    async with overdue(Definition(name="deaf", timeout_ms=20)) as (stage, job, over):
        job.cancel_requested = True
        stage.world.tell(MessageKind.CANCEL, "a")
        await until(lambda: any(held.cancel_requested for held in stage.processor.attempts.held))
        over.set()
        assert await job.ended() == AttemptOutcome(JobState.CANCELLED)
    async with overdue(Definition(name="deaf", timeout_ms=20)) as (stage, job, over):
        job.attempt, job.processor = 2, "another"
        await until(lambda: any(held.stop_reason is StopReason.REVOKED for held in stage.processor.attempts.held))
        over.set()
        await until(lambda: not stage.processor.attempts.held)
        assert job.outcome is None


# Progress


async def test_the_newest_progress_is_stored_once_an_interval() -> None:
    said, again, go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def work(job: JobContext) -> None:
        for percent in (10, 20, 30):
            job.progress(percent, f"{percent}\nof 100")
        said.set()
        await again.wait()
        job.progress(30, "30 of 100")
        await go_on.wait()

    async with staged(handling(work=work)) as stage:
        job = stage.world.dispatch("a", "work")
        await said.wait()
        await until(lambda: bool(job.progress))
        told = stage.world.calls["report"]
        await until(lambda: stage.world.calls["stop_requests"] > 5)
        assert [(each.percent, each.text) for each in job.progress] == [(30.0, "30 of 100")]
        assert stage.world.calls["report"] == told
        again.set()
        beats = stage.world.calls["stop_requests"]
        await until(lambda: stage.world.calls["stop_requests"] > beats + 3)
        assert stage.world.calls["report"] == told
        go_on.set()
        await job.ended()


async def test_an_error_is_cut_to_four_kibibytes() -> None:
    outcome = await outcome_of(raising(ValueError("ü" * 10_000)))
    assert 4_000 < len((outcome.error or "").encode()) <= 4_096


async def test_a_result_that_is_late_is_late_even_if_a_cancel_came_before_it() -> None:
    go_on = asyncio.Event()

    async def slow(job: JobContext) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await go_on.wait()
        return "too late"

    async with staged(handling(slow=slow)) as stage:
        job = stage.world.dispatch("a", "slow", rules=Definition(name="slow", timeout_ms=20))
        await until(lambda: job.state is JobState.RUNNING)
        await until(lambda: any(held.timed_out for held in stage.processor.attempts.held))
        stage.world.tell(MessageKind.CANCEL, "a")
        await until(lambda: any(held.cancel_requested for held in stage.processor.attempts.held))
        go_on.set()
        assert await job.ended() == AttemptOutcome(JobState.CANCELLED)


async def test_that_a_thread_is_overdue_is_told_again_until_the_store_has_answered() -> None:
    async with at_work(deadline_ms=60_000) as (_, stage):
        stage.world.vague["report_overdue"] = 2
        stage.world.dispatch("a", "deaf", rules=Definition(name="deaf", timeout_ms=20))
        await until(lambda: stage.world.calls["report_overdue"] == 3)


async def test_a_thread_that_gives_a_coroutine_after_its_time_does_not_begin_it() -> None:
    begun: list[str] = []

    async def rest(job: JobContext) -> None:
        begun.append(job.id)

    def both(job: JobContext) -> Any:
        while not job.stop_requested:
            threading.Event().wait(0.001)
        return rest(job)

    async with staged(handling(both=both)) as stage:
        job = stage.world.dispatch("a", "both", rules=Definition(name="both", timeout_ms=20))
        await job.ended()
        assert (job.state, begun) == (JobState.FAILED, [])


@pytest.mark.parametrize("percent", [-1, 101, float("nan"), "50", True])
async def test_what_is_no_percentage_fails_the_job_with_a_clear_error(percent: Any) -> None:
    async def work(job: JobContext) -> None:
        job.progress(percent)

    async with staged(handling(work=work)) as stage:
        job = stage.world.dispatch("a", "work")
        outcome = await job.ended()
        assert "expected a number from 0 to 100" in (outcome.error or "")
