"""One processor in a world of doubles: what it does with messages, jobs, outages and its end."""

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest
import structlog

from hascheduler.model.job import JobState
from hascheduler.model.message import MessageKind
from hascheduler.model.processor import NOT_CONSUMING
from hascheduler.ports import AttemptOutcome, StartedJob
from hascheduler.processor import JobContext
from hascheduler.processor.heartbeat import AWAY_MS, SelfFence
from hascheduler.schema.definition import Definition
from hascheduler.schema.retry import RetryPolicy
from tests.unit.processor.world import HandClock, Work, World, at_work, handling, running, staged, until

BUSH: list[Any] = []
for _ in range(100):
    BUSH = [BUSH, BUSH]
"""Small in memory, and without end as JSON."""


async def test_a_job_is_started_acknowledged_run_and_finished_with_its_result() -> None:
    async with at_work() as (_, stage):
        job = stage.world.dispatch("a", "echo", {"n": (1, 2)})
        assert await job.ended() == AttemptOutcome(JobState.SUCCEEDED, result={"n": [1, 2]})
        assert len(stage.world.acknowledged) == 1


async def test_the_end_of_an_attempt_is_one_line_with_the_first_line_of_its_error() -> None:
    async def raise_two_lines(job: JobContext) -> None:
        stage.clock.now_ms += 40
        raise ValueError("no good\nat all")

    work = Work()
    work.handlers.handler("two")(raise_two_lines)
    rules = Definition(name="two", retry=RetryPolicy(attempts_max=2))
    with structlog.testing.capture_logs() as logged:
        async with staged(work.handlers) as stage:
            for name, definition in (("a", "echo"), ("b", "two")):
                await stage.world.dispatch(name, definition, rules=rules).ended()
    [echo, two] = [line for line in logged if line["event"] == "attempt_finished"]
    assert echo == {
        "event": "attempt_finished",
        "log_level": "info",
        "definition": "echo",
        "job": "a",
        "attempt": 1,
        "state": "succeeded",
        "duration_ms": 0,
    }
    assert (two["state"], two["duration_ms"], two["error"]) == ("failed", 40, "ValueError: no good")
    assert two["retry_at"].endswith("Z")


async def test_registration_names_the_handlers_and_comes_back_when_it_is_gone() -> None:
    async with at_work(slots=3) as (_, stage):
        first = stage.world.registered
        assert first is not None
        assert first.definitions == {"hold", "echo", "fail", "stubborn", "thread", "deaf"}
        assert first.slots == 3
        stage.world.registered = None
        await until(lambda: stage.world.registered is not None)
        assert stage.world.registered is not None
        assert stage.world.registered.beat > first.beat


@pytest.mark.parametrize(
    ("payload", "definition", "error"),
    [
        (None, "fail", "ValueError: no good"),
        ({"rows": [1, {"at": {1, 2}}]}, "echo", "InvalidInput: result.rows.1.at: not JSON: set; expected"),
        (["\ud800"], "echo", "InvalidInput: result.0: not JSON: an unpaired surrogate"),
        ([2**63], "echo", "InvalidInput: result.0: an integer that does not fit into 64 bits"),
        ("x" * 300_000, "echo", "InvalidInput: result: 300002 bytes"),
        (BUSH, "echo", "InvalidInput: result: more than 262144 values"),
    ],
)
async def test_what_a_handler_raises_or_may_not_return_fails_the_job(payload: Any, definition: str, error: str) -> None:
    async with at_work() as (_, stage):
        job = stage.world.dispatch("a", definition, payload)
        outcome = await job.ended()
        assert outcome.state is JobState.FAILED
        assert (outcome.error or "").startswith(error)
        assert (outcome.traceback is None) == (definition == "echo"), "no frames of ours where no handler raised"


class Unusual(BaseException):
    """What ``except Exception`` lets through."""


@pytest.mark.parametrize("how", ["coroutine", "thread", "awaitable of a thread"])
@pytest.mark.parametrize("raised", [SystemExit, KeyboardInterrupt, StopIteration, asyncio.CancelledError, Unusual])
async def test_a_handler_that_would_end_its_process_ends_its_own_job_only(
    how: str, raised: type[BaseException]
) -> None:
    async def leave(job: JobContext) -> None:
        raise raised

    def leave_thread(job: JobContext) -> None:
        raise raised

    def leave_later(job: JobContext) -> Awaitable[None]:
        return leave(job)

    functions = {"coroutine": leave, "thread": leave_thread, "awaitable of a thread": leave_later}
    async with staged(handling(leave=functions[how], stay=lambda job: "stayed")) as stage:
        job = stage.world.dispatch("a", "leave")
        outcome = await job.ended()
        assert outcome.state is JobState.FAILED
        assert raised.__name__ in (outcome.error or "")
        other = stage.world.dispatch("b", "stay")
        assert await other.ended() == AttemptOutcome(JobState.SUCCEEDED, result="stayed")


async def test_duplicate_messages_start_an_attempt_once_and_are_acknowledged() -> None:
    async with at_work() as (work, stage):
        job = stage.world.dispatch("a", "hold")
        for _ in range(3):
            stage.world.tell(MessageKind.RUN, "a")
        await until(lambda: len(stage.world.acknowledged) == 4)
        work.release.set()
        await job.ended()
        stage.world.tell(MessageKind.RUN, "a")
        await until(lambda: len(stage.world.acknowledged) == 5)
        assert work.began == [("a", 1)]


async def test_a_promise_that_is_no_longer_ours_is_forgotten() -> None:
    async with at_work() as (work, stage):
        stage.world.dispatch("a", "echo").processor = "somebody else"
        stage.world.dispatch("b", "echo").attempt = 2
        await until(lambda: len(stage.world.acknowledged) == 2)
        assert work.began == []


async def test_garbage_is_parked_and_the_others_go_on() -> None:
    async with at_work() as (_, stage):
        stage.world.queue.put_nowait(b"\xff")
        stage.world.queue.put_nowait(b'{"v": 9}')
        job = stage.world.dispatch("a", "echo")
        await until(lambda: job.outcome is not None and len(stage.world.parked) == 2)
        assert "not JSON" in stage.world.parked[0][1]


async def test_a_store_that_breaks_over_one_job_does_not_stop_the_others() -> None:
    class BrokenWorld(World):
        async def start(self, job_id: str, *rest: Any) -> StartedJob | None:
            if job_id == "bad":
                raise KeyError("tenant")
            return await super().start(job_id, *rest)

    async with at_work() as (_, stage):
        stage.world.__class__ = BrokenWorld
        bad, good = stage.world.dispatch("bad", "echo"), stage.world.dispatch("good", "echo")
        await until(lambda: good.outcome is not None and bad.outcome is not None)
        assert bad.state is JobState.FAILED
        assert good.state is JobState.SUCCEEDED


async def test_a_job_without_a_handler_is_given_back_with_the_reason() -> None:
    async with at_work() as (_, stage):
        job = stage.world.dispatch("a", "unheard-of")
        await until(lambda: bool(job.reasons))
        assert job.reasons == ["this processor has no handler for 'unheard-of'"]


async def test_no_more_run_at_once_than_there_are_slots() -> None:
    async with at_work(slots=2, deadline_ms=60_000) as (work, stage):
        jobs = [stage.world.dispatch(f"j{n}", "hold") for n in range(5)]
        await until(lambda: len(work.began) == 2)
        await until(stage.world.queue.empty)
        assert sum(job.state is JobState.RUNNING for job in jobs) == 2
        work.release.set()
        await until(lambda: all(job.state is JobState.SUCCEEDED for job in jobs))


async def test_a_job_that_finds_no_slot_in_time_is_given_back() -> None:
    async with at_work(slots=1, deadline_ms=60) as (work, stage):
        stage.world.dispatch("a", "hold")
        await until(lambda: len(work.began) == 1)
        job = stage.world.dispatch("b", "hold")
        await until(lambda: bool(job.reasons))
        assert job.reasons == ["no slot became free"]


# Cancelling


@pytest.mark.parametrize("by_notice", [True, False])
@pytest.mark.parametrize("definition", ["hold", "thread"])
async def test_a_cancel_request_stops_the_handler_by_notice_or_by_the_review(by_notice: bool, definition: str) -> None:
    async with running(definition) as (work, stage, job):
        if by_notice:
            stage.world.tell(MessageKind.CANCEL, "a")
        else:
            job.cancel_requested = True
        assert await job.ended() == AttemptOutcome(JobState.CANCELLED)
        assert work.contexts["a"].cancel_requested


async def test_a_cancel_notice_for_another_attempt_changes_nothing() -> None:
    async with running() as (work, stage, job):
        stage.world.tell(MessageKind.CANCEL, "a", attempt=2)
        await until(lambda: len(stage.world.acknowledged) == 2)
        work.release.set()
        assert await job.ended() == AttemptOutcome(JobState.SUCCEEDED, result="held")


async def test_a_revoked_attempt_is_stopped_and_nothing_is_said_about_it() -> None:
    async with running() as (work, stage, job):
        job.attempt, job.processor = 2, "somebody else"
        await until(lambda: work.stopped == ["a"])
        other = stage.world.dispatch("b", "echo")
        await other.ended()
        assert stage.world.calls["finish"] == 1
        assert stage.world.calls["give_back"] == 0


# Unknown answers


@pytest.mark.parametrize("write", ["start", "finish"])
async def test_an_unknown_answer_is_asked_for_again_and_runs_the_handler_once(write: str) -> None:
    async with at_work() as (work, stage):
        stage.world.vague[write] = 2
        job = stage.world.dispatch("a", "echo", 7)
        await until(lambda: job.outcome is not None and stage.world.calls[write] == 3)
        assert job.outcome == AttemptOutcome(JobState.SUCCEEDED, result=7)
        assert work.began == [("a", 1)]


async def test_a_start_that_stays_unknown_is_given_back_once_the_store_answers() -> None:
    async with at_work() as (work, stage):
        stage.world.vague["start"] = 1_000
        job = stage.world.dispatch("a", "echo")
        await until(lambda: job.state is JobState.RUNNING)
        stage.world.down = True
        stage.clock.now_ms += 10_000
        await until(lambda: stage.world.calls["give_back"] >= 1)
        stage.world.down = False
        await until(lambda: bool(job.reasons))
        assert job.reasons == ["unknown whether it started"]
        assert work.began == []


async def test_a_finish_outlives_an_outage_and_its_result_is_kept_if_the_attempt_still_is() -> None:
    async with running() as (work, stage, job):
        stage.world.down = True
        work.release.set()
        await until(lambda: stage.world.calls["finish"] >= 2)
        stage.clock.now_ms += 10_000
        await until(lambda: stage.world.calls["finish"] >= 3)
        stage.world.down = False
        assert await job.ended() == AttemptOutcome(JobState.SUCCEEDED, result="held")


# Self-fencing


async def test_without_a_heartbeat_until_the_deadline_all_handlers_are_stopped_and_given_back_later() -> None:
    async with at_work() as (work, stage):
        jobs = [stage.world.dispatch(f"j{n}", definition) for n, definition in enumerate(["hold", "thread", "hold"])]
        await until(lambda: len(work.began) == 3)
        stage.world.down = True
        stage.clock.now_ms += 399
        await until(lambda: stage.world.calls["beat"] > 3)
        assert work.stopped == []
        stage.clock.now_ms += 401
        await until(lambda: sorted(work.stopped) == ["j0", "j2"])
        assert work.contexts["j1"].stop_requested
        stage.world.down = False
        await until(lambda: all(job.reasons for job in jobs))
        assert all(job.outcome is None for job in jobs)
        assert [job.losses for job in jobs] == [1, 1, 1]
        assert stage.world.calls["finish"] == 0


async def test_a_job_whose_processors_never_show_life_in_time_fails_when_it_was_lost_too_often() -> None:
    async with at_work() as (work, stage):
        rules = Definition(name="hold", retry=RetryPolicy(lost_attempts_max=3))
        job = stage.world.dispatch("a", "hold", rules=rules, losses=2)
        await until(lambda: work.began == [("a", 1)])
        stage.clock.now_ms += 801
        await job.ended()
        text = "no heartbeat was written in time; 3 attempts lost, as many as lost_attempts allows"
        assert job.outcome == AttemptOutcome(JobState.FAILED, error=text, lost=True)


async def test_after_a_fence_the_processor_goes_on_and_never_runs_the_same_attempt_again() -> None:
    async with running() as (work, stage, job):
        stage.world.down = True
        stage.clock.now_ms += 10_000
        await until(lambda: work.stopped == ["a"])
        stage.world.tell(MessageKind.RUN, "a")
        await until(stage.world.queue.empty)
        stage.world.registered = None
        stage.world.down = False
        await until(lambda: stage.world.registered is not None and bool(job.reasons))
        again = stage.world.dispatch("b", "echo", 1)
        await again.ended()
        assert work.began == [("a", 1), ("b", 1)]


async def test_after_a_fence_nothing_starts_before_the_second_beat() -> None:
    """The first may cross with the verdict that the processor is lost."""
    lost: list[str] = []
    clock = HandClock()
    fence = SelfFence(clock, 800, lambda: lost.append("lost"))
    fence.renewed(clock.mono_ms())
    assert await opens(fence)
    clock.now_ms += 800
    assert not fence.check()
    assert lost == ["lost"]
    for waited_ms, opened in ((0, False), (900, False), (300, True), (300, True)):
        clock.now_ms += waited_ms
        fence.renewed(clock.mono_ms())
        assert await opens(fence) == opened


async def opens(fence: SelfFence) -> bool:
    try:
        async with asyncio.timeout(0.01):
            await fence.wait_until_open()
    except TimeoutError:
        return False
    return True


async def test_a_pause_is_noticed_before_the_results_from_before_it_count() -> None:
    async with running(interval_ms=5_000, deadline_ms=8_000) as (work, stage, job):
        # The process was stopped: the first to run afterwards is the handler, which comes to its end.
        stage.clock.now_ms += 60_000
        assert work.contexts["a"].stop_requested
        work.release.set()
        await until(lambda: stage.world.calls["give_back"] == 1)
        assert job.outcome is None


# Consuming


async def test_a_processor_registers_once_it_consumes() -> None:
    async with staged(Work().handlers, consuming=False, waits=False) as stage:
        world = stage.world
        await until(lambda: world.turned is not None)
        assert world.registered is None
        world.turn(consuming=True)
        await until(lambda: world.registered is not None)
        assert (world.draining, world.able) == (False, True)


async def test_what_a_processor_runs_goes_on_while_it_does_not_consume() -> None:
    async with running(interval_ms=5_000, deadline_ms=8_000) as (work, stage, job):
        stage.world.turn(consuming=False)
        beats = stage.world.beats
        await until(lambda: stage.world.beats > beats)
        assert stage.world.able  # most connections are made again in a moment
        assert stage.processor.health.not_ready() == NOT_CONSUMING
        stage.clock.now_ms += AWAY_MS
        stage.world.turn(consuming=False)
        await until(lambda: (stage.world.draining, stage.world.able) == (True, False))
        work.release.set()
        await until(lambda: job.state is JobState.SUCCEEDED)
        stage.world.turn(consuming=True)
        await until(lambda: (stage.world.draining, stage.world.able) == (False, True))


# Draining


async def test_a_drain_lets_running_jobs_finish_and_leaves_in_good_order() -> None:
    async with running() as (work, stage, job):
        stage.processor.drain()
        await until(lambda: stage.world.draining)
        late = stage.world.dispatch("b", "echo")
        await until(lambda: late.reasons == ["the processor is draining"])
        work.release.set()
        await stage.drained()
        assert job.outcome == AttemptOutcome(JobState.SUCCEEDED, result="held")
        assert stage.world.queue_deleted
        assert stage.world.registered is None


async def test_a_drain_gives_back_what_waits_for_a_slot_at_once() -> None:
    async with running(slots=1, deadline_ms=60_000) as (work, stage, first):
        waiting = stage.world.dispatch("b", "hold")
        await until(stage.world.queue.empty)
        stage.processor.drain()
        await until(lambda: waiting.reasons == ["the processor is draining"])
        assert first.state is JobState.RUNNING
        work.release.set()
        await stage.drained()


@pytest.mark.parametrize("definition", ["hold", "thread"])
async def test_what_does_not_finish_within_the_grace_is_stopped_and_given_back(definition: str) -> None:
    async with running(definition, drain_grace_ms=20) as (_, stage, job):
        await stage.drained()
        assert (job.reasons, job.losses) == (["the processor is draining"], 0)
        assert stage.world.registered is None


async def test_a_drain_ends_although_the_store_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hascheduler.processor.processor._STOP_LIMIT_S", 0.05)
    monkeypatch.setattr("hascheduler.processor.processor._SETTLE_LIMIT_S", 0.05)
    async with running(drain_grace_ms=20) as (work, stage, _):
        stage.world.down = True
        await stage.drained()
        assert work.stopped == ["a"]
