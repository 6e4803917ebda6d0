"""A replica's answers about jobs from its own core, whichever replica leads."""

from dataclasses import fields, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hascheduler.daemon.view import ReplicaView
from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.dispatch.explanation import BlockReason
from hascheduler.mirror.changes import Change, JobSeen, Operation, ProcessorSeen
from hascheduler.mirror.mirror import Mirror
from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import decode_job, new_job_document
from hascheduler.model.leadership import LeaseRecord
from hascheduler.model.processor import ProcessorRef
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import LeaderLag
from hascheduler.schema.noun import document_of
from hascheduler.schema.replica import ReplicaStatus
from tests.factories import NOW, make_job, make_lease, make_processor, make_replica, make_schedule
from tests.unit.api.doubles import StandingClock

LEASE = make_lease("other")
LAPSED = replace(LEASE, renewed_at_ms=WallMs(NOW - LEASE.lease_duration_ms - 1))


class KnownLeader:
    """All that the view asks of a `Leader`."""

    def __init__(self, lease: LeaseRecord | None, *, leading: bool = False) -> None:
        self.lease = lease
        self._leading = leading

    def leads(self) -> bool:
        return self._leading


def view_of(core: Dispatcher, leader: KnownLeader, clock: StandingClock | None = None) -> ReplicaView:
    parts: Any = dict.fromkeys(field.name for field in fields(ReplicaView))
    parts |= {"leader": leader, "core": core, "clock": clock or StandingClock()}
    return ReplicaView(**parts)


def told(*jobs: str, runs: str = "log") -> Dispatcher:
    """A mind that knows these pending jobs, and a processor that runs that."""
    core = Dispatcher()
    documents = [new_job_document(make_job(id)) for id in jobs]
    seen = [JobSeen(decode_job(document["_id"], document)) for document in documents]
    core.step(NOW, [ProcessorSeen(make_processor("p", (runs,))), *seen])
    return core


@pytest.mark.parametrize(
    ("leader", "somebody_leads"),
    [
        (KnownLeader(LEASE), True), (KnownLeader(LAPSED, leading=True), True), (KnownLeader(None), False),
        (KnownLeader(make_lease("")), False), (KnownLeader(LAPSED), False),
    ],
)  # fmt: skip
def test_a_job_waits_for_a_leader_where_there_is_none(leader: KnownLeader, somebody_leads: bool) -> None:
    explanation = view_of(told("a"), leader).explain("a")
    assert explanation is not None
    assert [block.rule for block in explanation.blocks] == ([] if somebody_leads else [BlockReason.NOT_LEADING])


class KnownLag:
    """All that the view asks of a `Stepper` and a `ReplicaHeartbeat` about this replica's lag."""

    def __init__(self, decision_lag_ms: int | None, stream_lag_ms: int | None) -> None:
        self.decision_lag_ms = decision_lag_ms
        self.lag_ms = stream_lag_ms


def lag_view(leader: KnownLeader, clock: StandingClock, own: KnownLag, *replicas: ReplicaStatus) -> ReplicaView:
    view, mirror = view_of(Dispatcher(), leader, clock), Mirror()
    mirror.fold([Change(Collection.REPLICAS, Operation.PUT, replica.id, document_of(replica)) for replica in replicas])
    parts: Any = view
    parts.feeder, parts.stepper, parts.heartbeat = SimpleNamespace(mirror=mirror), own, own
    return view


@pytest.mark.parametrize(
    ("leader", "lag_ms"),
    [
        (KnownLeader(make_lease("other")), 70),
        (KnownLeader(make_lease("old release")), 9),
        (KnownLeader(make_lease("unknown")), 0),
        (KnownLeader(make_lease("")), 0),
        (KnownLeader(None), 0),
        (KnownLeader(make_lease("other"), leading=True), 300),
    ],
)
def test_a_replica_knows_how_late_the_leader_is(leader: KnownLeader, lag_ms: int) -> None:
    others = make_replica("other", decision_lag_ms=70), make_replica("old release", stream_lag_ms=9)
    view = lag_view(leader, StandingClock(), KnownLag(300, 5), *others)
    assert view.leader_lag.now_ms == lag_ms


def test_the_least_lag_is_that_of_the_last_minutes() -> None:
    clock, own = StandingClock(), KnownLag(40, 0)
    view = lag_view(KnownLeader(None, leading=True), clock, own)
    view.observe_leader()
    own.decision_lag_ms = 900
    view.observe_leader()
    assert view.leader_lag == LeaderLag(900, 40)
    for _ in range(4):
        clock.mono += 60_000
        view.observe_leader()
    assert view.leader_lag == LeaderLag(900, 40)
    clock.mono += 60_000
    view.observe_leader()
    assert view.leader_lag == LeaderLag(900, 900)


def test_processors_are_as_busy_as_their_slots_run_jobs() -> None:
    core = Dispatcher()
    view = view_of(core, KnownLeader(None, leading=True), StandingClock())
    processors: dict[str, ProcessorRef] = {}
    mirror = SimpleNamespace(nouns=lambda _: processors, live_counts=SimpleNamespace(jobs={"running": 2}))
    parts: Any = view
    parts.feeder, parts.stepper, parts.heartbeat = SimpleNamespace(mirror=mirror), KnownLag(40, 0), KnownLag(40, 0)
    view.observe_leader()
    assert view.leader_lag.busy == 1  # there is no processor: it is one that jobs wait for
    processors["p1"] = make_processor("p1")
    core.step(NOW, [ProcessorSeen(processors["p1"])])
    view.observe_leader()
    assert 0.75 < view.leader_lag.busy < 0.8
    for _ in range(20):
        view.observe_leader()
    assert view.leader_lag.busy == pytest.approx(2 / 8, abs=0.01)


def test_live_jobs_and_schedules_are_those_of_the_mirror() -> None:
    mirror = Mirror()
    jobs = [
        make_job("a", tenant="acme"),
        make_job("b", tenant="acme", definition="sleep"),
        make_job("c", tenant="other", definition="sleep"),
    ]
    changes = [Change(Collection.JOBS, Operation.PUT, job.id, new_job_document(job)) for job in jobs]
    mirror.fold([*changes, Change(Collection.SCHEDULES, Operation.PUT, "tick", make_schedule())])
    view = view_of(Dispatcher(), KnownLeader(LEASE))
    view.feeder = cast(Any, SimpleNamespace(mirror=mirror))
    assert view.live_jobs() == {"pending": 3}
    assert view.live_jobs(tenant="acme") == {"pending": 2}
    assert view.live_jobs(definition="sleep") == {"pending": 2}
    assert view.live_jobs(tenant="nobody") == {}
    assert list(view.schedules()) == ["tick"]
