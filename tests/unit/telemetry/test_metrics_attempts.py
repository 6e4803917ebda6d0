"""How attempts begin and end, as the stream shows it: each is counted once, under the right outcome."""

from dataclasses import replace
from typing import Any

import pytest

from hascheduler.daemon.loop.attempt_metrics import AttemptMetrics
from hascheduler.dispatch.decisions import Decision, Dispatch, Fail, Requeue
from hascheduler.dispatch.inputs import Input, Resynced
from hascheduler.mirror.changes import JobGone, JobSeen
from hascheduler.model.documents.job import decode_job, new_job_document
from hascheduler.model.job import JobRef, JobState
from hascheduler.model.values.instants import WallMs
from hascheduler.telemetry.metrics_replica import OUTCOMES, ReplicaMetrics
from tests.factories import NOW, make_job
from tests.unit.telemetry.scraping import Scrape, scrape


def job(state: JobState, attempt: int = 1, **fields: Any) -> JobSeen:
    document = new_job_document(make_job("a", definition="resize"))
    plain: JobRef = decode_job("a", document)
    held = {"processor": "p", "dispatched_at_ms": WallMs(NOW + 100)} if state is not JobState.PENDING else {}
    return JobSeen(replace(plain, state=state, attempt=attempt, **{**held, **fields}))


def running(attempt: int = 1, at_ms: int = NOW + 250, first_ms: int | None = None, **fields: Any) -> JobSeen:
    started = {"started_at_ms": WallMs(at_ms), "first_started_at_ms": WallMs(at_ms if first_ms is None else first_ms)}
    return job(JobState.RUNNING, attempt, **{**started, **fields})


PENDING, DISPATCHED, RUNNING = job(JobState.PENDING, 0), job(JobState.DISPATCHED), running()


def told(*steps: Input | Decision, counting: bool = True) -> Scrape:
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
        ((DISPATCHED, JobGone("a", JobState.CANCELLED)), "cancelled"),
        ((RUNNING, job(JobState.PENDING, failures=1, retry_at_ms=WallMs(NOW + 9_000))), "failed"),
        ((RUNNING, job(JobState.PENDING)), "given_back"),
        ((DISPATCHED, job(JobState.PENDING)), "given_back"),
        ((DISPATCHED, Requeue("a", 1, "not started in time"), job(JobState.PENDING)), "lost"),
        ((RUNNING, Requeue("a", 1, "processor lost"), job(JobState.PENDING, losses=1)), "lost"),
        ((RUNNING, Fail("a", 1, "attempts used up"), JobGone("a", JobState.FAILED)), "lost"),
        ((RUNNING, Fail("a", 1, "timed out in all (1 try)"), JobGone("a", JobState.FAILED)), "failed"),
        ((RUNNING, Requeue("a", 1, "timed out"), job(JobState.PENDING, failures=1)), "failed"),
        ((RUNNING, job(JobState.PENDING, losses=1)), "lost"),
        ((RUNNING, job(JobState.PENDING, losses=1, retry_at_ms=WallMs(NOW + 9_000))), "lost"),
        ((RUNNING, JobGone("a", None)), None),
        ((PENDING, JobGone("a", JobState.CANCELLED)), None),
        ((JobGone("a", JobState.SUCCEEDED),), None),
        ((RUNNING, Resynced(), JobGone("a", JobState.SUCCEEDED)), None),
    ],
)
def test_how_an_attempt_ends(steps: tuple[Input | Decision, ...], outcome: str | None) -> None:
    of = told(*steps)
    ends = {each: of.of("hascheduler_attempts_total", definition="resize", outcome=each) for each in OUTCOMES}
    assert ends == {each: float(each == outcome) for each in OUTCOMES}
    assert of["hascheduler_attempts_lost_total"] == (outcome == "lost")


def test_a_requeue_that_came_too_late_is_no_lost_attempt() -> None:
    of = told(RUNNING, Requeue("a", 1, "processor lost"), running(2, first_ms=NOW), JobGone("a", JobState.SUCCEEDED))
    assert of.of("hascheduler_attempts_total", definition="resize", outcome="succeeded") == 1


def test_a_job_is_late_from_when_it_was_due_to_its_first_start() -> None:
    of = told(PENDING, DISPATCHED, RUNNING, running(cancel_requested_at_ms=WallMs(NOW + 300)))
    assert of.of("hascheduler_schedule_to_start_seconds_count", definition="resize") == 1
    assert of.of("hascheduler_schedule_to_start_seconds_sum", definition="resize") == 0.25


def test_a_job_that_was_not_to_run_before_is_due_only_then() -> None:
    of = told(DISPATCHED, running(not_before_ms=WallMs(NOW + 200)))
    assert of.of("hascheduler_schedule_to_start_seconds_sum", definition="resize") == pytest.approx(0.05)


def test_a_second_attempt_is_no_first_start() -> None:
    of = told(RUNNING, job(JobState.PENDING), job(JobState.DISPATCHED, 2), running(2, NOW + 900, NOW + 250))
    assert of.of("hascheduler_schedule_to_start_seconds_count", definition="resize") == 1


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
