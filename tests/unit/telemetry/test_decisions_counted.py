"""What the leader counts: each decision and each attempt once, under the right outcome."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from hascheduler.daemon.leadership.fence import Fence
from hascheduler.daemon.loop.attempt_metrics import AttemptMetrics
from hascheduler.daemon.loop.committer import Committer
from hascheduler.daemon.loop.inbox import Inbox
from hascheduler.dispatch.decisions import Cancel, Decision, Dispatch, Fail, RecordVerdict, Requeue, Settlement
from hascheduler.dispatch.inputs import Input, Resynced
from hascheduler.mirror.changes import JobGone, JobSeen
from hascheduler.model.documents.job import decode_job, new_job_document
from hascheduler.model.job import JobRef, JobState
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import Verdict, VerdictRun
from hascheduler.telemetry.metrics_replica import OUTCOMES, ReplicaMetrics
from hascheduler.testing.memory.database import MemoryConnection, MemoryDatabase
from hascheduler.testing.memory.leadership import MemoryJournal
from tests.factories import NOW, make_fire, make_job
from tests.unit.daemon.doubles import AnsweringClaims, HandClock, RecordingPublisher
from tests.unit.telemetry.scraping import Scrape, scrape

# Decisions, however often they are applied

FIRE = make_fire(1)
MISSED = RecordVerdict(
    VerdictRun("tick", Verdict.MISSED, WallMs(NOW), WallMs(NOW + 9_000), 10), make_fire(1).basis
)  # ten times, one record


def done(_: Decision) -> Settlement:
    return Settlement.DONE


async def counted(*batches: tuple[Decision, ...], answer: Callable[[Decision], Settlement] = done) -> Scrape:
    """After the batches were carried out, one by one; the fires were due 1.5 s ago."""
    metrics, clock = ReplicaMetrics(), HandClock()
    fence = await Fence.begin(
        MemoryJournal(MemoryConnection(MemoryDatabase())),
        name="default",
        term=1,
        holder="r1",
        now=WallMs(0),
        trusted=lambda: True,
    )
    assert isinstance(fence, Fence)
    committer = Committer(
        fence,
        claims=AnsweringClaims(answer),
        publisher=RecordingPublisher(),
        inbox=Inbox(),
        clock=clock,
        trusted=lambda: True,
        metrics=metrics,
        due_ms=lambda _: clock.now - 1_500,
    )
    running = asyncio.create_task(committer.run())
    try:
        for decisions in batches:
            assert await committer.ready()
            committer.submit(decisions, majority=False)
            assert await committer.drained(30)
    finally:
        running.cancel()
        await asyncio.wait({running})
    return scrape(metrics.registry)


async def test_a_fire_is_one_verdict_and_its_lag_is_from_when_it_was_due() -> None:
    of = await counted((FIRE,))
    verdicts = {each.value: float(each is Verdict.FIRED) for each in Verdict}
    assert of.by("hascheduler_verdicts_total", "verdict") == verdicts
    assert of["hascheduler_fire_lag_seconds_count"] == 1
    assert of["hascheduler_fire_lag_seconds_sum"] == 1.5


async def test_a_decision_that_is_decided_again_is_counted_once() -> None:
    of = await counted((FIRE, Dispatch("a", 1, "p"), MISSED), (FIRE,), (Dispatch("a", 1, "p"),))
    kinds = {kind: count for kind, count in of.by("hascheduler_decisions_total", "kind").items() if count}
    assert kinds == {"fire": 1, "dispatch": 1, "pass_over": 1}
    assert of.of("hascheduler_verdicts_total", verdict="missed") == 10
    assert of.of("hascheduler_verdicts_total", verdict="fired") == 1
    assert of["hascheduler_journal_append_seconds_count"] == 3


async def test_a_verdict_counts_when_it_is_known_to_be_written() -> None:
    answers: Iterator[Settlement] = iter([Settlement.UNKNOWN] * 5 + [Settlement.DONE] * 2)  # it asks five times
    of = await counted((FIRE,), (FIRE,), (FIRE,), answer=lambda _: next(answers))
    assert of.of("hascheduler_verdicts_total", verdict="fired") == 1


async def test_a_fire_that_is_lost_is_no_verdict_and_a_dispatch_that_is_lost_is_a_lost_claim() -> None:
    lost: tuple[Decision, ...] = (FIRE, Dispatch("a", 1, "p"), Dispatch("b", 1, "p"), Cancel("c", 1, "replaced"))
    of = await counted(lost, answer=lambda _: Settlement.LOST)
    assert of.of("hascheduler_verdicts_total", verdict="fired") == 0
    assert of["hascheduler_dispatch_conflicts_total"] == 2


# Attempts, as the stream shows them


def job(state: JobState, attempt: int = 1, **fields: Any) -> JobSeen:
    document = new_job_document(make_job("a", definition="resize"))
    plain: JobRef = decode_job("a", document)
    held = {"processor": "p", "dispatched_at_ms": WallMs(NOW + 100)} if state is not JobState.PENDING else {}
    return JobSeen(replace(plain, state=state, attempt=attempt, **{**held, **fields}))


def running(attempt: int = 1, at_ms: int = NOW + 250, first_ms: int | None = None, **fields: Any) -> JobSeen:
    started = {"started_at_ms": WallMs(at_ms), "first_started_at_ms": WallMs(at_ms if first_ms is None else first_ms)}
    return job(JobState.RUNNING, attempt, **{**started, **fields})


PENDING, DISPATCHED, RUNNING = job(JobState.PENDING, 0), job(JobState.DISPATCHED), running()


def counted_steps(*steps: Input | Decision, counting: bool = True) -> Scrape:
    """Each step alone, in their order."""
    metrics = ReplicaMetrics()
    watch = AttemptMetrics(metrics, lambda: counting)
    for step in steps:
        if isinstance(step, Dispatch | Requeue | Fail):
            watch.decided([step])
        else:
            watch.seen([step])  # type: ignore[list-item]  # no other decisions are given here
    return scrape(metrics.registry)


@pytest.mark.parametrize(
    ("steps", "outcome"),
    [
        ((PENDING, DISPATCHED, RUNNING, JobGone("a", JobState.SUCCEEDED)), "succeeded"),
        ((RUNNING, JobGone("a", JobState.FAILED)), "failed"),
        ((RUNNING, JobGone("a", JobState.CANCELLED)), "cancelled"),
        ((RUNNING, job(JobState.PENDING, failures=1, retry_at_ms=WallMs(NOW + 9_000))), "failed"),
        ((RUNNING, job(JobState.PENDING)), "given_back"),
        ((DISPATCHED, Requeue("a", 1, "not started in time"), job(JobState.PENDING)), "lost"),
        ((RUNNING, Requeue("a", 1, "processor lost"), job(JobState.PENDING, losses=1)), "lost"),
        ((RUNNING, Fail("a", 1, "attempts used up"), JobGone("a", JobState.FAILED)), "lost"),
        ((RUNNING, Fail("a", 1, "timed out in all (1 try)"), JobGone("a", JobState.FAILED)), "failed"),
        ((RUNNING, Requeue("a", 1, "timed out"), job(JobState.PENDING, failures=1)), "failed"),
        ((RUNNING, job(JobState.PENDING, losses=1, retry_at_ms=WallMs(NOW + 9_000))), "lost"),
        ((RUNNING, JobGone("a", None)), None),
        ((PENDING, JobGone("a", JobState.CANCELLED)), None),
        ((JobGone("a", JobState.SUCCEEDED),), None),
        ((RUNNING, Resynced(), JobGone("a", JobState.SUCCEEDED)), None),
    ],
)
def test_how_an_attempt_ends(steps: tuple[Input | Decision, ...], outcome: str | None) -> None:
    of = counted_steps(*steps)
    ends = {each: of.of("hascheduler_attempts_total", definition="resize", outcome=each) for each in OUTCOMES}
    assert ends == {each: float(each == outcome) for each in OUTCOMES}
    assert of["hascheduler_attempts_lost_total"] == (outcome == "lost")


def test_a_job_is_late_from_when_it_was_due_to_its_first_start() -> None:
    of = counted_steps(PENDING, DISPATCHED, RUNNING, running(cancel_requested_at_ms=WallMs(NOW + 300)))
    assert of.of("hascheduler_schedule_to_start_seconds_count", definition="resize") == 1
    assert of.of("hascheduler_schedule_to_start_seconds_sum", definition="resize") == 0.25


def test_a_job_that_was_not_to_run_before_is_due_only_then() -> None:
    of = counted_steps(DISPATCHED, running(not_before_ms=WallMs(NOW + 200)))
    assert of.of("hascheduler_schedule_to_start_seconds_sum", definition="resize") == pytest.approx(0.05)


def test_who_does_not_decide_counts_nothing_and_goes_on_from_what_it_saw() -> None:
    metrics, leads = ReplicaMetrics(), False
    watch = AttemptMetrics(metrics, lambda: leads)
    watch.seen([RUNNING])
    watch.seen([JobGone("a", JobState.SUCCEEDED), RUNNING])
    assert scrape(metrics.registry).total("hascheduler_attempts_total") == 0
    leads = True
    watch.seen([RUNNING, JobGone("a", JobState.SUCCEEDED)])
    of = scrape(metrics.registry)
    assert of.total("hascheduler_schedule_to_start_seconds_count") == 0
    assert of.of("hascheduler_attempts_total", definition="resize", outcome="succeeded") == 1
