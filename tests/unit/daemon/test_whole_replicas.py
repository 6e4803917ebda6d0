"""Whole replicas in virtual time: under a pause, beside a worker that takes nothing up, and with a lone job."""

from collections.abc import Iterator
from typing import Any

import pytest

from hascheduler.dispatch.decisions import NOT_STARTED
from hascheduler.testing import VirtualScheduler


@pytest.fixture
def scheduler() -> Iterator[VirtualScheduler]:
    with VirtualScheduler() as scheduler:
        scheduler.handle("report", lambda job: None)
        yield scheduler


def rest(scheduler: VirtualScheduler) -> dict[str, Any] | None:
    [worker] = [one for one in scheduler.request("GET", "/v1/processors")["items"] if one["name"] == "deaf"]
    shown: dict[str, Any] | None = worker["rest"]
    return shown


def test_the_job_of_a_worker_that_takes_nothing_up_runs_elsewhere_and_it_rests(scheduler: VirtualScheduler) -> None:
    scheduler.advance("1s")
    scheduler.request("POST", "/v1/work/processors", {"name": "deaf", "definitions": ["report"], "slots": 3})
    jobs = [scheduler.submit("report") for _ in range(3)]
    scheduler.advance("1m")
    assert [scheduler.job(job.id).state for job in jobs] == ["succeeded"] * 3
    resting = rest(scheduler)
    assert resting is not None
    assert resting["missed"] >= 1
    ended = [attempt for job in jobs for attempt in scheduler.request("GET", f"/v1/jobs/{job.id}")["attempts"]]
    lost = [attempt for attempt in ended if attempt["processor"].startswith("http:")]
    assert {attempt["error"] for attempt in lost} == {NOT_STARTED}
    assert len(lost) == resting["missed"]
