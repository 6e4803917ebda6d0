"""Every promised metric is there, gauges say what the view says, and names that callers make up are bounded."""

import re
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from hascheduler.ports import Gauges
from hascheduler.telemetry.metrics_http import HttpMetrics
from hascheduler.telemetry.metrics_processor import ProcessorGauges, ProcessorMetrics
from hascheduler.telemetry.metrics_replica import ReplicaGauges, ReplicaMetrics
from hascheduler.telemetry.registry import OTHER, BoundedRows, new_registry
from tests.factories import make_failover
from tests.unit.api.doubles import StandingView, World
from tests.unit.telemetry.scraping import Scrape, scrape

OF_REPLICAS = """
    gauge     hascheduler_is_leader
    gauge     hascheduler_shards
    gauge     hascheduler_shards_led
    gauge     hascheduler_shards_hosted
    gauge     hascheduler_ready
    gauge     hascheduler_term
    gauge     hascheduler_stream_lag_seconds
    gauge     hascheduler_decision_lag_seconds
    gauge     hascheduler_quarantined_documents
    gauge     hascheduler_dispatch_loop_age_seconds
    gauge     hascheduler_jobs state
    gauge     hascheduler_unschedulable_jobs
    gauge     hascheduler_job_dependencies
    gauge     hascheduler_definition_jobs definition state
    gauge     hascheduler_lane_jobs lane state
    gauge     hascheduler_tenant_jobs state tenant
    gauge     hascheduler_oldest_wait_seconds lane
    gauge     hascheduler_wait_bound_seconds
    gauge     hascheduler_paused what
    gauge     hascheduler_schedules state
    gauge     hascheduler_definitions
    gauge     hascheduler_processors state
    gauge     hascheduler_unavailable_processors reason
    gauge     hascheduler_processor_slots state
    gauge     hascheduler_build_info version
    gauge     hascheduler_zone_data_info version
    gauge     hascheduler_broker_accepting
    gauge     hascheduler_mirror_mismatches
    gauge     hascheduler_check_findings kind
    gauge     hascheduler_takeover_seconds
    gauge     hascheduler_failover_seconds
    counter   hascheduler_verdicts_total verdict
    counter   hascheduler_decisions_total kind
    counter   hascheduler_dispatch_conflicts_total
    counter   hascheduler_attempts_total definition outcome
    counter   hascheduler_jobs_failed_total definition
    counter   hascheduler_attempts_lost_total
    counter   hascheduler_leader_suspicions_total outcome
    counter   hascheduler_publishes_total outcome
    counter   hascheduler_failovers_total cause
    counter   hascheduler_http_requests_total method route status
    counter   hascheduler_submit_rejections_total reason
    counter   hascheduler_http_rejections_total pool reason
    counter   hascheduler_connections_closed_total reason
    counter   hascheduler_audit_records_lost_total reason
    counter   hascheduler_scrape_failures_total
    histogram hascheduler_fire_lag_seconds
    histogram hascheduler_schedule_to_start_seconds definition
    histogram hascheduler_core_step_seconds
    histogram hascheduler_journal_append_seconds
    histogram hascheduler_journal_apply_seconds
    histogram hascheduler_publish_confirm_seconds
    histogram hascheduler_http_request_duration_seconds method route
"""
OF_PROCESSORS = """
    gauge     hascheduler_build_info version
    gauge     hascheduler_processor_running
    gauge     hascheduler_processor_slots_max
    gauge     hascheduler_processor_fence_open
    gauge     hascheduler_processor_heartbeat_age_seconds
    counter   hascheduler_processor_attempts_total definition outcome
    counter   hascheduler_processor_messages_parked_total
    counter   hascheduler_scrape_failures_total
    histogram hascheduler_handler_duration_seconds definition
"""


def replica() -> Scrape:
    registry = new_registry()
    metrics, http = ReplicaMetrics(registry), HttpMetrics(registry)
    registry.register(ReplicaGauges(lambda: {"": StandingView().gauges()}))
    metrics.started("log", 5)
    metrics.ended("log", "lost")
    metrics.failed_for_good("log")
    metrics.failed_over(make_failover())
    http.answered("GET", None, None, 0.001)
    return scrape(registry)


def processor() -> Scrape:
    metrics = ProcessorMetrics()
    metrics.watch(lambda: ProcessorGauges(1, 8, 2, fence_open=True, heartbeat_age_ms=300))
    metrics.ended("log", "succeeded")
    with metrics.handling("log"):
        pass
    return scrape(metrics.registry)


def rows_of(of: Scrape) -> list[str]:
    """As the lists above have it."""
    rows = set()
    for name, labels in of.samples:
        base = re.sub(r"_(bucket|sum|count)$", "", name)
        base = base if base in of.kinds else name
        if base.startswith("hascheduler_"):
            shown = [label for label, _ in labels if label != "le"]
            rows.add(" ".join([of.kinds[base], base, *shown]))
    return sorted(rows)


@pytest.mark.parametrize(("of", "promised"), [(replica, OF_REPLICAS), (processor, OF_PROCESSORS)])
def test_promised_metrics_are_there_and_no_others(of: object, promised: str) -> None:
    assert callable(of)
    assert rows_of(of()) == sorted(" ".join(line.split()) for line in promised.strip().splitlines())


def at_once(now: Gauges) -> Scrape:
    registry = new_registry()
    registry.register(ReplicaGauges(lambda: {"": now}))
    return scrape(registry)


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
    assert at_once(now).get(missing) is not None
    assert at_once(replace(now, **changed)).get(missing) is None  # type: ignore[arg-type]  # whichever it is, it takes None


def test_gauges_that_can_not_be_read_are_missing_and_counted_and_all_others_are_there() -> None:
    world = World()
    world.view.broken = True
    with capture_logs() as logs:
        of = scrape(world.metrics.registry)
    assert of.get("hascheduler_jobs", state="pending") is None
    assert of.get("hascheduler_scrape_failures_total") == 1
    assert of.get("hascheduler_submit_rejections_total", reason="rate") == 0
    assert [line["event"] for line in logs if line["log_level"] == "error"] == ["gauges_read_failed"]
    world.view.broken = False
    assert scrape(world.metrics.registry).get("hascheduler_jobs", state="pending") == 3


def test_a_flood_of_definitions_makes_a_hundred_and_one_series_and_loses_no_count() -> None:
    replica, processor = ReplicaMetrics(), ProcessorMetrics()
    for number in range(250):
        replica.ended(f"d{number}", "succeeded")
        replica.started(f"d{number}", 10)
        processor.ended(f"d{number}", "failed")
    by_replica, by_processor = scrape(replica.registry), scrape(processor.registry)
    for of, name in (
        (by_replica, "hascheduler_attempts_total"),
        (by_replica, "hascheduler_schedule_to_start_seconds_count"),
        (by_processor, "hascheduler_processor_attempts_total"),
    ):
        series = of.by(name, "definition")
        assert (len(series), series[OTHER], sum(series.values())) == (101, 150, 250)


ROW = {"pending": 1}


@pytest.mark.parametrize(
    ("table", "idle", "shown"),
    [
        ({}, (), {}),
        ({"a": ROW}, ("b",), {"a": 1, "b": 0}),
        ({"a": ROW, "b": ROW}, ("c", "d"), {"a": 1, "b": 1, "c": 0}),
        ({"a": ROW, "b": ROW, "c": ROW, "d": ROW, "e": ROW}, ("f",), {"a": 1, "b": 1, "c": 1, OTHER: 2}),
    ],
)
def test_rows_with_something_to_show_go_before_idle_ones(
    table: dict[str, dict[str, int]], idle: tuple[str, ...], shown: dict[str, int]
) -> None:
    rows = BoundedRows(3).of(table, {"pending": len(table)}, idle)
    assert {name: row.get("pending", 0) for name, row in rows} == shown


def test_a_million_names_are_not_read() -> None:
    class Endless(dict[str, dict[str, int]]):
        def __iter__(self):  # type: ignore[no-untyped-def]
            for number in range(10**6):
                assert number < 10, "far more than there is room for"
                yield f"d{number}"

        def __contains__(self, name: object) -> bool:
            return True

    assert len(BoundedRows(5).of(Endless(), {"pending": 10**6})) == 6


def test_of_several_shards_each_has_its_own_gauges_and_the_process_says_how_many_it_leads() -> None:
    now = StandingView().gauges()
    views = {"default": replace(now, leading=True), "0001": replace(now, leading=False, jobs={"pending": 7})}
    registry = new_registry()
    registry.register(ReplicaGauges(lambda: views, 4))
    of = scrape(registry)
    assert of.get("hascheduler_is_leader", shard="default") == 1
    assert of.get("hascheduler_is_leader", shard="0001") == 0
    assert of.get("hascheduler_jobs", shard="0001", state="pending") == 7
    assert of.get("hascheduler_definition_jobs", shard="default", definition="log", state="pending") == 3
    assert [of.get(f"hascheduler_shards{suffix}") for suffix in ("", "_led", "_hosted")] == [4, 1, 2]
    of_one = {name for name, _ in at_once(now).samples if name.startswith("hascheduler_")}
    assert {name for name, _ in of.samples if name.startswith("hascheduler_")} == of_one
    del views["default"]
    assert ("hascheduler_is_leader", (("shard", "default"),)) not in scrape(registry).samples
