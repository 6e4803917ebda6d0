"""Every metric that is promised is there, of its kind and with its labels, and named as Prometheus has it."""

import re

import pytest

from hascheduler.telemetry.metrics_http import HttpMetrics
from hascheduler.telemetry.metrics_processor import ProcessorMetrics
from hascheduler.telemetry.metrics_replica import ReplicaGauges, ReplicaMetrics
from hascheduler.telemetry.registry import new_registry
from tests.factories import make_failover
from tests.unit.api.doubles import StandingView
from tests.unit.telemetry.scraping import Scrape, scrape

OF_REPLICAS = """
    gauge     hascheduler_leading
    gauge     hascheduler_shards
    gauge     hascheduler_shards_led
    gauge     hascheduler_shards_followed
    gauge     hascheduler_ready
    gauge     hascheduler_term
    gauge     hascheduler_stream_lag_seconds
    gauge     hascheduler_decision_lag_seconds
    gauge     hascheduler_quarantined
    gauge     hascheduler_loop_age_seconds
    gauge     hascheduler_jobs state
    gauge     hascheduler_jobs_unschedulable
    gauge     hascheduler_job_dependencies
    gauge     hascheduler_definition_jobs definition state
    gauge     hascheduler_lane_jobs lane state
    gauge     hascheduler_tenant_jobs state tenant
    gauge     hascheduler_wait_oldest_seconds lane
    gauge     hascheduler_wait_bound_seconds
    gauge     hascheduler_paused what
    gauge     hascheduler_schedules state
    gauge     hascheduler_definitions
    gauge     hascheduler_processors state
    gauge     hascheduler_processors_unable reason
    gauge     hascheduler_processor_slots state
    gauge     hascheduler_build_info version
    gauge     hascheduler_zone_data_info version
    gauge     hascheduler_broker_accepting
    gauge     hascheduler_mirrors_differ
    gauge     hascheduler_audit_findings kind
    gauge     hascheduler_takeover_seconds
    gauge     hascheduler_failover_seconds
    counter   hascheduler_verdicts_total verdict
    counter   hascheduler_decisions_total kind
    counter   hascheduler_claims_lost_total
    counter   hascheduler_attempts_total definition outcome
    counter   hascheduler_attempts_lost_total
    counter   hascheduler_leader_suspicions_total outcome
    counter   hascheduler_publishes_total outcome
    counter   hascheduler_takeovers_total
    counter   hascheduler_failovers_total cause
    counter   hascheduler_http_requests_total method route status
    counter   hascheduler_admission_refusals_total reason
    counter   hascheduler_share_refusals_total pool reason
    counter   hascheduler_connections_cut_total reason
    counter   hascheduler_audit_left_out_total reason
    counter   hascheduler_scrape_failures_total
    histogram hascheduler_fire_lag_seconds
    histogram hascheduler_schedule_to_start_seconds definition
    histogram hascheduler_step_seconds
    histogram hascheduler_journal_append_seconds
    histogram hascheduler_journal_apply_seconds
    histogram hascheduler_publish_confirm_seconds
    histogram hascheduler_http_request_seconds method route
"""
OF_PROCESSORS = """
    gauge     hascheduler_build_info version
    gauge     hascheduler_processor_running
    gauge     hascheduler_processor_slots_max
    gauge     hascheduler_processor_fence_open
    gauge     hascheduler_processor_heartbeat_age_seconds
    counter   hascheduler_processor_attempts_total definition outcome
    counter   hascheduler_processor_parked_total
    counter   hascheduler_scrape_failures_total
    histogram hascheduler_handler_seconds definition
"""
UNITS = {"seconds", "bytes"}
UNITLESS = re.compile(r"_(age|lag|duration|time|ms|milliseconds|size)$")


class BusyProcessor:
    running, slots, parked, fence_open, heartbeat_age_ms = 1, 8, 2, True, 300


def replica() -> Scrape:
    registry = new_registry()
    metrics, http = ReplicaMetrics(registry), HttpMetrics(registry)
    registry.register(ReplicaGauges(StandingView().gauges))
    metrics.started("log", 5)
    metrics.ended("log", "lost")
    metrics.failed_over(make_failover())
    http.answered("GET", None, None, 0.001)
    return scrape(registry)


def processor() -> Scrape:
    metrics = ProcessorMetrics()
    metrics.watch(BusyProcessor())
    metrics.ended("log", "succeeded")
    with metrics.handling("log"):
        pass
    return scrape(metrics.registry)


def told(of: Scrape) -> list[str]:
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
    assert told(of()) == sorted(" ".join(line.split()) for line in promised.strip().splitlines())


@pytest.mark.parametrize("of", [replica, processor])
def test_every_process_shows_its_use_of_the_machine(of: object) -> None:
    assert callable(of)
    names = {name for name, _ in of().samples}
    assert {"process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds", "python_info"} <= names


@pytest.mark.parametrize("of", [replica, processor])
def test_names_end_in_their_units_and_only_counters_in_total(of: object) -> None:
    assert callable(of)
    for name, kind in of().kinds.items():
        assert re.fullmatch(r"[a-z][a-z0-9_]*", name), name
        assert name.endswith("_total") == (kind == "counter"), f"{name} is a {kind}"
        bare = name.removesuffix("_total")
        assert not UNITLESS.search(bare), f"{name} has no unit"
        assert not UNITS & set(bare.split("_")[:-1]), f"the unit of {name} is not its last word"
