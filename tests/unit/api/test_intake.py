"""Intake control, on virtual time, and what each replica knows of the leader whose lag it goes by.

The modelled cluster has one budget of CPU. Requests come first, as an event loop that is full of them leaves the rest
to dispatch; so without control a flood leaves next to nothing. The leader's decisions are late by what intake takes of
a budget that is used up, and the replicas learn of that once a second.
"""

from collections import deque
from dataclasses import dataclass, field, fields, replace
from heapq import heappop, heappush
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hascheduler.api.admission.intake import (
    QUEUE_JOBS,
    QUEUE_S,
    RETRY_MAX_S,
    RETRY_MIN_S,
    IntakeControl,
    IntakeSight,
)
from hascheduler.daemon.outbound.event_log import EventLog
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
from hascheduler.simulate.report import percentile
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
    parts |= {"leader": leader, "core": core, "clock": clock or StandingClock(), "events": EventLog()}
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


STEP_MS = 20
SUBMIT_MS = 2.0
REFUSAL_MS = 0.1
BATCHED_MS = 0.3
JOB_MS = 3.0
BEST_PER_S = 1_000 / (SUBMIT_MS + JOB_MS)
INTAKE_AT_MOST = 0.95
SEEN_AFTER_MS = 100
JOB_BYTES = 60
TRIES_MAX = 3
LATE = LeaderLag(9_000, 20)


@dataclass
class Client:
    """``per_s`` jobs, ``batch`` a request, from ``from_s`` until ``until_s``. Who *heeds* comes again as told."""

    per_s: float
    batch: int = 1
    tenant: str | None = None
    heeds: bool = False
    from_s: float = 0.0
    until_s: float = 1e9
    due: float = 0.0
    accepted: int = 0
    refused: int = 0
    retry_after_s: list[int] = field(default_factory=list)
    again: list[tuple[int, int]] = field(default_factory=list)


@dataclass
class Cluster:
    """``slots_per_s``: what the processors can do, and ``busy``: the part of their slots that run jobs;
    ``database_lag_ms``: what the leader is late by at best, and ``crowded_lag_ms``: by how much more where intake takes
    all."""

    clients: list[Client]
    slots_per_s: float = 1e9
    busy: float = 1.0
    database_lag_ms: int = 40
    crowded_lag_ms: int = 1_000
    now_ms: int = 0

    def __post_init__(self) -> None:
        self.control = IntakeControl()
        self.lag_ms = self.database_lag_ms
        self.told = LeaderLag(self.lag_ms, self.lag_ms, self.busy)
        self.queue: deque[int] = deque()
        self.unseen: deque[tuple[int, int]] = deque()
        self.unseen_jobs = 0
        self.waits_ms: list[int] = []
        self.done = 0
        self.done_part = self.asked_ms = 0.0

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds * 1_000 / STEP_MS)):
            self._step()

    def done_in(self, seconds: float) -> float:
        """Jobs a second over the next ``seconds``."""
        before = self.done
        self.run(seconds)
        return (self.done - before) / seconds

    def _step(self) -> None:
        self.now_ms += STEP_MS
        if self.now_ms % 1_000 == 0:
            self.told = LeaderLag(self.lag_ms, min(self.told.least_ms, self.lag_ms), self.busy)
        while self.unseen and self.unseen[0][0] <= self.now_ms:
            jobs = self.unseen.popleft()[1]
            self.unseen_jobs -= jobs
            for _ in range(jobs):
                self.queue.append(self.now_ms - SEEN_AFTER_MS)
                self.control.arrived(own=True)
        for client in self.clients:
            self._serve(client)
        intake_ms = min(self.asked_ms, INTAKE_AT_MOST * STEP_MS)
        self.asked_ms -= intake_ms
        budget_ms = STEP_MS - intake_ms
        self.done_part = min(self.done_part + min(budget_ms / JOB_MS, self.slots_per_s * STEP_MS / 1_000), 10)
        dispatch_ms = 0.0
        while self.done_part >= 1 and self.queue:
            self.done_part -= 1
            self.done += 1
            dispatch_ms += JOB_MS
            self.waits_ms.append(self.now_ms - self.queue.popleft())
        is_used_up = intake_ms + dispatch_ms >= STEP_MS - JOB_MS
        late_ms = self.crowded_lag_ms * intake_ms / STEP_MS if is_used_up else 0
        self.lag_ms = round(0.9 * self.lag_ms + 0.1 * (self.database_lag_ms + late_ms))

    def _serve(self, client: Client) -> None:
        """Where there is no CPU for a request, its client gives up."""
        while client.again and client.again[0][0] <= self.now_ms:
            self._request(client, heappop(client.again)[1])
        if client.from_s * 1_000 <= self.now_ms < client.until_s * 1_000:
            client.due += client.per_s * STEP_MS / 1_000
        while client.due >= client.batch:
            client.due -= client.batch
            self._request(client, 0)

    def _request(self, client: Client, tries: int) -> None:
        if self.asked_ms >= INTAKE_AT_MOST * STEP_MS:
            return
        waiting = len(self.queue) + self.unseen_jobs
        sight = IntakeSight(waiting, waiting, self.told, self.now_ms)
        retry_after_s = self.control.retry_after_s(client.tenant, 1, sight, client.batch * JOB_BYTES)
        self.asked_ms += REFUSAL_MS
        if retry_after_s is None:
            self.asked_ms += client.batch * (SUBMIT_MS if client.batch == 1 else BATCHED_MS) - REFUSAL_MS
            retry_after_s = self.control.retry_after_s(client.tenant or "default", client.batch, sight)
        if retry_after_s is None:
            self.control.admitted(client.tenant or "default", client.batch, self.now_ms)
            client.accepted += client.batch
            self.unseen.append((self.now_ms + SEEN_AFTER_MS, client.batch))
            self.unseen_jobs += client.batch
            return
        client.refused += client.batch
        client.retry_after_s.append(retry_after_s)
        if client.heeds and tries + 1 < TRIES_MAX:
            heappush(client.again, (self.now_ms + 1_000 * retry_after_s, tries + 1))


@pytest.mark.parametrize(("times", "heeds"), [(1.5, False), (3, True), (6, False)])
def test_goodput_stays_and_the_wait_of_what_is_accepted_is_bounded(times: float, heeds: bool) -> None:
    client = Client(times * BEST_PER_S, heeds=heeds)
    cluster = Cluster([client])
    cluster.run(5)
    before = client.refused
    done_per_s = cluster.done_in(30)
    left_by_refusals = 1 - (client.refused - before) / 30 * REFUSAL_MS / 1_000
    assert done_per_s >= 0.9 * BEST_PER_S * left_by_refusals
    assert heeds or times > 3 or done_per_s >= 0.9 * BEST_PER_S
    assert percentile(cluster.waits_ms, 99) < 10_000


def test_without_a_broker_submits_go_on() -> None:
    """Less is done than before, and no more comes than before."""
    client = Client(0.8 * BEST_PER_S)
    cluster = Cluster([client], busy=0.9, database_lag_ms=10)
    cluster.run(30)
    cluster.slots_per_s = 0
    cluster.run(60)
    cluster.slots_per_s = 0.4 * BEST_PER_S  # of the processors, half come back
    cluster.run(60)
    assert client.refused == 0
    assert len(cluster.queue) > 10_000


def test_after_a_flood_all_is_let_in_within_seconds() -> None:
    flood, usual = Client(5 * BEST_PER_S, tenant="flood", until_s=30), Client(0.5 * BEST_PER_S, tenant="usual")
    cluster = Cluster([flood, usual])
    cluster.run(40)
    before = usual.refused
    cluster.run(30)
    assert usual.refused == before
    assert cluster.control.limit_per_s is None


def late(runnable: int, at_ms: int) -> IntakeSight:
    return IntakeSight(runnable, runnable, LATE, at_ms)


@pytest.mark.parametrize("batch", [1, 100])
def test_a_flood_is_refused_before_another_tenant_is(batch: int) -> None:
    flood, quiet = Client(5 * BEST_PER_S, batch, tenant="flood"), Client(0.1 * BEST_PER_S, tenant="quiet")
    cluster = Cluster([flood, quiet])
    cluster.run(30)
    assert flood.refused > flood.accepted
    assert quiet.refused <= 0.01 * quiet.accepted


def test_retry_after_is_bounded_and_spread() -> None:
    heedless = Client(10 * BEST_PER_S)
    Cluster([heedless]).run(20)
    assert min(heedless.retry_after_s) >= RETRY_MIN_S
    assert max(heedless.retry_after_s) <= RETRY_MAX_S
    assert len(set(heedless.retry_after_s[-100:])) > 3


def test_a_core_that_starts_over_is_not_measured_across_it() -> None:
    """The jobs of a snapshot arrive all at once, and none of them has left."""
    control = IntakeControl()
    for at_ms in range(0, 3_000, 500):
        control.retry_after_s("acme", 1, late(100_000, at_ms))
    control.forget()
    assert control.retry_after_s("acme", 1, late(0, 3_000)) is None
    assert control.retry_after_s("acme", 1, late(100_000, 3_500)) is None


def limit(control: IntakeControl) -> None:
    """Five seconds of a queue that grows and a leader that is late."""
    for at_ms in range(500, 5_000, 100):
        for _ in range(20):
            control.arrived(own=True)
            control.admitted("acme", 1, at_ms)
        control.retry_after_s("acme", 1, late(at_ms // 5, at_ms))
    assert control.limit_per_s is not None
    assert at_ms // 5 > QUEUE_JOBS * QUEUE_S


def test_background_work_hears_that_submits_are_held_back_until_none_was_for_a_while() -> None:
    control = IntakeControl()
    assert not control.is_holding_back(0)
    limit(control)
    assert control.is_holding_back(5_000)
    # Nobody submits any more: that nothing has lifted the limit holds nothing back.
    assert not control.is_holding_back(60_000)
    assert control.limit_per_s is not None
