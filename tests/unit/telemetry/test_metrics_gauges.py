"""The figures of the moment: what they say, and that a broken one costs the others nothing."""

from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from hascheduler.ports import Gauges
from hascheduler.telemetry.metrics_replica import ReplicaGauges
from hascheduler.telemetry.registry import OTHER, new_registry
from tests.unit.api.doubles import StandingView, World
from tests.unit.telemetry.scraping import Scrape, scrape


def told(now: Gauges) -> Scrape:
    registry = new_registry()
    registry.register(ReplicaGauges(lambda: now))
    return scrape(registry)


def test_jobs_are_shown_by_definition_lane_and_tenant_with_zeros_for_idle_names() -> None:
    of = told(StandingView().gauges())
    assert of.get("hascheduler_definition_jobs", definition="log", state="pending") == 3
    assert of.get("hascheduler_definition_jobs", definition="sleep", state="pending") == 0
    assert of.get("hascheduler_lane_jobs", lane="default", state="running") == 1
    assert of.get("hascheduler_lane_jobs", lane="slow", state="running") == 0
    assert of.get("hascheduler_tenant_jobs", tenant="umbrella", state="running") == 1
    assert of.get("hascheduler_wait_oldest_seconds", lane="default") == 90
    assert of.get("hascheduler_wait_oldest_seconds", lane="slow") == 0


@pytest.mark.parametrize(
    ("changed", "missing"),
    [
        ({"wait_bound_ms": None}, "hascheduler_wait_bound_seconds"),
        ({"stream_lag_ms": None}, "hascheduler_stream_lag_seconds"),
        ({"decision_lag_ms": None}, "hascheduler_decision_lag_seconds"),
        ({"term": None}, "hascheduler_term"),
    ],
)
def test_what_there_is_not_has_no_sample(changed: dict[str, None], missing: str) -> None:
    now = StandingView().gauges()
    assert told(now).get(missing) is not None
    assert told(replace(now, **changed)).get(missing) is None  # type: ignore[arg-type]  # whichever it is, it takes None


def test_of_too_many_lanes_the_one_that_waits_longest_is_shown_by_name() -> None:
    waits = {f"lane-{number}": number * 1_000 for number in range(150)}
    oldest = told(replace(StandingView().gauges(), waited_ms=waits)).by("hascheduler_wait_oldest_seconds", "lane")
    assert len(oldest) == 101
    assert oldest["lane-149"] == 149
    assert oldest[OTHER] == 49


def test_gauges_that_can_not_be_read_are_missing_and_counted_and_all_others_are_there() -> None:
    world = World()
    world.view.broken = True
    with capture_logs() as logs:
        of = scrape(world.metrics.registry)
    assert of.get("hascheduler_jobs", state="pending") is None
    assert of.get("hascheduler_scrape_failures_total") == 1
    assert of.get("hascheduler_admission_refusals_total", reason="rate") == 0
    assert [line["event"] for line in logs if line["log_level"] == "error"] == ["gauges_unreadable"]
    world.view.broken = False
    assert scrape(world.metrics.registry).get("hascheduler_jobs", state="pending") == 3
