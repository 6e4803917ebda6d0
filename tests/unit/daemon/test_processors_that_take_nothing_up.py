"""A whole replica beside a worker that registers and shows life, and never asks for what it is given."""

from collections.abc import Iterator
from typing import Any

import pytest

from hascheduler.dispatch.decisions import NOT_STARTED
from hascheduler.testing import VirtualScheduler


@pytest.fixture
def scheduler() -> Iterator[VirtualScheduler]:
    with VirtualScheduler() as scheduler:
        scheduler.handle("report", lambda job: None)
        scheduler.advance("1s")
        worker = {"name": "deaf", "definitions": ["report"], "slots": 3}
        scheduler.request("POST", "/v1/work/processors", worker)
        yield scheduler


def rest(scheduler: VirtualScheduler) -> dict[str, Any] | None:
    [worker] = [one for one in scheduler.request("GET", "/v1/processors")["items"] if one["name"] == "deaf"]
    shown: dict[str, Any] | None = worker["rest"]
    return shown


def test_its_job_runs_at_another_one_and_it_rests(scheduler: VirtualScheduler) -> None:
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
