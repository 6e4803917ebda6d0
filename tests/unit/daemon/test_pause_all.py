"""A whole replica under a pause: what its API stores reaches its core and its view through the stream."""

from collections.abc import Iterator

import pytest

from hascheduler.testing import VirtualScheduler

HOURLY = {"trigger": {"type": "interval", "every": "1h"}, "job": {"definition": "report"}}


@pytest.fixture
def scheduler() -> Iterator[VirtualScheduler]:
    with VirtualScheduler() as scheduler:
        scheduler.handle("report", lambda job: None)
        yield scheduler


def test_nothing_begins_until_it_is_resumed_and_then_the_misfire_policy_decides(scheduler: VirtualScheduler) -> None:
    scheduler.add_schedule("all", **HOURLY, misfire={"catch_up": "all", "grace": "1d"})
    scheduler.add_schedule("none", **HOURLY, misfire={"catch_up": "none", "grace": "1m"})
    scheduler.advance("61m")
    assert len(scheduler.calls()) == 2
    scheduler.request("POST", "/v1/cluster/pause", {"because": "it burns"})
    job = scheduler.submit("report")
    scheduler.advance("3h")
    assert len(scheduler.calls()) == 2
    assert "everything is paused since" in scheduler.why(job)
    assert scheduler.request("GET", "/v1/cluster")["paused"]["because"] == "it burns"
    scheduler.request("POST", "/v1/cluster/resume")
    scheduler.advance("1m")
    assert scheduler.job(job.id).state == "succeeded"
    assert scheduler.request("GET", "/v1/cluster")["paused"] is None
    assert [one["verdict"] for one in scheduler.verdicts("all")] == ["fired"] * 4
    assert {one["verdict"] for one in scheduler.verdicts("none")} == {"fired", "missed"}
    assert len(scheduler.calls()) == 2 + 3 + 1


def test_a_drained_processor_gets_no_job_until_it_is_undrained(scheduler: VirtualScheduler) -> None:
    scheduler.advance("1m")
    names = {one["name"] for one in scheduler.request("GET", "/v1/processors")["items"]}
    for name in names:
        scheduler.request("POST", f"/v1/processors/{name}/drain", {"because": "its node goes"})
    job = scheduler.submit("report")
    scheduler.advance("1m")
    assert scheduler.calls() == []
    assert "is drained since" in scheduler.why(job)
    for name in names:
        scheduler.request("POST", f"/v1/processors/{name}/undrain")
    assert scheduler.wait(job).state == "succeeded"
