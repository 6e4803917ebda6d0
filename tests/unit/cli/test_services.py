"""What the services of several shards of one process share, and what each has of its own."""

from types import SimpleNamespace
from typing import Any

import pytest

from hascheduler.api.services import ApiServices
from hascheduler.assembly_api import ProcessServices, services_of
from hascheduler.model.partition import partition_in, partition_of
from hascheduler.telemetry.metrics_http import HttpMetrics
from hascheduler.telemetry.tracing import NO_TRACING
from tests.unit.cli.test_settings import read
from tests.unit.daemon.doubles import HandClock


class AnyDatabase:
    """It has every collection, and is asked for nothing."""

    def __getitem__(self, collection: str) -> "AnyDatabase":
        return self

    def with_options(self, **options: Any) -> "AnyDatabase":
        return self


class ReplicaOfShard:
    def __init__(self) -> None:
        self.events: Any = object()
        self.view: Any = SimpleNamespace(ready=True)
        self.listeners: list[Any] = []

    def on_job_arrival(self, listener: Any) -> None:
        self.listeners.append(listener)


def two(monkeypatch: pytest.MonkeyPatch, *, count: int) -> tuple[list[ReplicaOfShard], list[ApiServices]]:
    settings, database = read(monkeypatch), AnyDatabase()
    any_database: Any = database
    process = ProcessServices.of(settings, any_database, HandClock(), tracer=NO_TRACING, metrics=HttpMetrics())
    replicas = [ReplicaOfShard(), ReplicaOfShard()]
    shards: Any = zip(("default", "0001"), replicas, strict=True)
    return replicas, [
        services_of(settings, process, name, AnyDatabase(), replica, count=count)  # type: ignore[arg-type]
        for name, replica in shards
    ]


def test_shards_of_one_process_share_who_may_ask_and_how_much(monkeypatch: pytest.MonkeyPatch) -> None:
    replicas, (home, other) = two(monkeypatch, count=2)
    for shared in (
        "limits",
        "logins",
        "auth",
        "tokens",
        "audit",
        "audit_writer",
        "schedule_limits",
        "metrics",
        "new_id",
    ):
        assert getattr(home, shared) == getattr(other, shared), shared
    for own in ("view", "events", "admission", "jobs", "schedules", "work", "registrations", "load"):
        assert getattr(home, own) is not getattr(other, own), own
    assert (home.view, other.view) == (replicas[0].view, replicas[1].view)
    assert (home.work_terms.scheduler, other.work_terms.scheduler) == ("default", "0001")
    assert [len(replica.listeners) for replica in replicas] == [1, 1], "each counts its own arrivals"


@pytest.mark.parametrize("count", [1, 2])
def test_of_several_shards_the_id_of_a_job_tells_its_partition(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    _, (home, other) = two(monkeypatch, count=count)
    for services in (home, other):
        assert partition_in(services.new_job_id("acme")) == (None if count == 1 else partition_of("acme"))
    assert home.new_job_id("acme") != other.new_job_id("acme")
