"""Intake control on virtual time: what a modelled cluster still gets done when more is submitted than it can do.

The model has one budget of CPU. Requests come first, as an event loop that is full of them leaves the rest to dispatch;
so without control a flood leaves next to nothing. The leader's decisions are late by what intake takes of a budget that
is used up, and the replicas learn of that once a second.
"""

from collections import deque
from copy import deepcopy
from dataclasses import dataclass, field
from heapq import heappop, heappush
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hascheduler.api.admission.intake import RETRY_MAX_S, IntakeControl
from hascheduler.ports import LeaderLag
from hascheduler.simulate.report import percentile

STEP_MS = 20
SUBMIT_MS = 2.0
REFUSAL_MS = 0.1
BATCHED_MS = 0.3
JOB_MS = 3.0
BEST_PER_S = 1_000 / (SUBMIT_MS + JOB_MS)
BEST_BATCHED_PER_S = 1_000 / (BATCHED_MS + JOB_MS)
INTAKE_AT_MOST = 0.95
SEEN_AFTER_MS = 100
TRIES_MAX = 3


@dataclass
class Client:
    """``per_s`` jobs, ``batch`` a request, until ``until_s``. Who *heeds* comes again as told."""

    per_s: float
    batch: int = 1
    tenant: str | None = None
    replica: int = 0
    heeds: bool = False
    until_s: float = 1e9
    due: float = 0.0
    accepted: int = 0
    refused: int = 0
    retry_after_s: list[int] = field(default_factory=list)
    again: list[tuple[int, int]] = field(default_factory=list)


@dataclass
class Cluster:
    """``slots_per_s``: what the processors can do, and ``busy``: the part of their slots that run jobs;
    ``database_lag_ms``: what the leader is late by at best, and ``crowded_lag_ms``: by how much more if intake takes
    all."""

    clients: list[Client]
    replicas: int = 1
    controlled: bool = True
    slots_per_s: float = 1e9
    busy: float = 1.0
    database_lag_ms: int = 40
    crowded_lag_ms: int = 1_000
    fires_per_s: float = 0.0
    now_ms: int = 0

    def __post_init__(self) -> None:
        self.controls = [IntakeControl() for _ in range(self.replicas)]
        self.lag_ms = self.database_lag_ms
        self.told = LeaderLag(self.lag_ms, self.lag_ms, self.busy)
        self.queue: deque[int] = deque()
        self.unseen: deque[tuple[int, int]] = deque()
        self.waits_ms: list[int] = []
        self.refusals = 0
        self.done_part = self.fires_part = self.asked_ms = 0.0

    def run(self, seconds: float) -> float:
        """Return how many jobs a second were done."""
        before = len(self.waits_ms)
        for _ in range(round(seconds * 1_000 / STEP_MS)):
            self._step()
        return (len(self.waits_ms) - before) / seconds

    def _step(self) -> None:
        self.now_ms += STEP_MS
        if self.now_ms % 1_000 == 0:
            self.told = LeaderLag(self.lag_ms, min(self.told.least_ms, self.lag_ms), self.busy)
        while self.unseen and self.unseen[0][0] <= self.now_ms:
            self.queue.extend([self.now_ms - SEEN_AFTER_MS] * self.unseen.popleft()[1])
        self.fires_part += self.fires_per_s * STEP_MS / 1_000
        self.queue.extend([self.now_ms] * int(self.fires_part))
        self.fires_part %= 1
        for client in self.clients:
            while client.again and client.again[0][0] <= self.now_ms:
                self._request(client, heappop(client.again)[1])
            client.due += client.per_s * STEP_MS / 1_000 if self.now_ms < client.until_s * 1_000 else 0
            while client.due >= client.batch:
                client.due -= client.batch
                self._request(client, 0)
        intake_ms = min(self.asked_ms, INTAKE_AT_MOST * STEP_MS)
        self.asked_ms -= intake_ms
        dispatch_max = min((STEP_MS - intake_ms) / JOB_MS, self.slots_per_s * STEP_MS / 1_000)
        self.done_part = min(self.done_part + dispatch_max, 10)
        dispatch_ms = 0.0
        while self.done_part >= 1 and self.queue:
            self.done_part -= 1
            dispatch_ms += JOB_MS
            self.waits_ms.append(self.now_ms - self.queue.popleft())
        is_used_up = intake_ms + dispatch_ms >= STEP_MS - JOB_MS
        late_ms = self.crowded_lag_ms * intake_ms / STEP_MS if is_used_up else 0
        self.lag_ms = round(0.9 * self.lag_ms + 0.1 * (self.database_lag_ms + late_ms))

    def _request(self, client: Client, tries: int) -> None:
        """Without CPU for a request, its client gives up."""
        if self.asked_ms >= INTAKE_AT_MOST * STEP_MS:
            return
        control = self.controls[client.replica]
        control.look(cast(Any, SimpleNamespace(runnable=lambda: len(self.queue), leader_lag=self.told)), self.now_ms)
        retry_after_s = control.refused_s(client.tenant, is_read=False) if self.controlled else None
        if retry_after_s is None:
            assert control.refused_s("judged already", is_read=True) is None
            self.asked_ms += client.batch * (SUBMIT_MS if client.batch == 1 else BATCHED_MS)
            control.let_in(client.tenant or "default", client.batch)
            client.accepted += client.batch
            self.unseen.append((self.now_ms + SEEN_AFTER_MS, client.batch))
            return
        self.asked_ms += REFUSAL_MS
        self.refusals += 1
        client.refused += client.batch
        client.retry_after_s.append(retry_after_s)
        if client.heeds and tries + 1 < TRIES_MAX:
            heappush(client.again, (self.now_ms + 1_000 * retry_after_s, tries + 1))


def test_the_model_drowns_without_control() -> None:
    drowned = Cluster([Client(3 * BEST_PER_S)], controlled=False)
    drowned.run(5)
    assert drowned.run(20) < 0.5 * BEST_PER_S
    assert percentile(drowned.waits_ms, 50) > 5_000


FLOODS: dict[str, tuple[list[Client], dict[str, Any]]] = {
    "half as much again": ([Client(1.5 * BEST_PER_S)], {}),
    "three times": ([Client(3 * BEST_PER_S)], {}),
    "six times": ([Client(6 * BEST_PER_S)], {}),
    "clients that come again": ([Client(3 * BEST_PER_S, heeds=True)], {}),
    "a leader that is quick though crowded": (
        [Client(3 * BEST_PER_S)],
        {"busy": 0.2, "database_lag_ms": 10, "crowded_lag_ms": 130},
    ),
    "small batches": ([Client(3 * BEST_BATCHED_PER_S, 10, heeds=True)], {}),
    "batches": ([Client(3 * BEST_BATCHED_PER_S, 100, heeds=True)], {}),
    "large batches": ([Client(3 * BEST_BATCHED_PER_S, 1_000, heeds=True)], {}),
    "two replicas": ([Client(3 * BEST_PER_S), Client(1.5 * BEST_PER_S, replica=1)], {"replicas": 2}),
    "fires besides": ([Client(3 * BEST_PER_S)], {"fires_per_s": 0.6 * BEST_PER_S}),
}


@pytest.mark.parametrize("case", FLOODS)
def test_goodput_stays_and_the_wait_of_what_is_accepted_is_bounded(case: str) -> None:
    clients, fields = FLOODS[case]
    cluster = Cluster(deepcopy(clients), **fields)
    cluster.run(10)
    refusals = cluster.refusals
    done_per_s = cluster.run(60)
    left_by_refusals = 1 - (cluster.refusals - refusals) / 60 * REFUSAL_MS / 1_000
    assert done_per_s >= 0.9 * (BEST_PER_S if clients[0].batch == 1 else BEST_BATCHED_PER_S) * left_by_refusals
    assert percentile(cluster.waits_ms, 99) < 1_000 * (30 if clients[0].batch == 1_000 else 10)
    assert all(client.accepted > 0.1 * cluster.clients[0].accepted for client in cluster.clients)
    retry_after_s = [each for client in cluster.clients for each in client.retry_after_s]
    assert 1 <= min(retry_after_s) <= max(retry_after_s) <= RETRY_MAX_S
    assert len(set(retry_after_s[-100:])) > 3


NO_FLOODS: dict[str, tuple[float, dict[str, Any]]] = {
    "a tenth of what can be done": (0.1, {}),
    "nine tenths": (0.9, {}),
    "full processors": (0.8, {"slots_per_s": 5}),
    "full processors and a leader that is a little late": (0.8, {"slots_per_s": 5, "busy": 0.9, "then_lag_ms": 120}),
    "a slow database": (0.8, {"slots_per_s": 5, "busy": 0.1, "database_lag_ms": 600}),
    "a slow database and busy processors": (0.8, {"slots_per_s": 5, "busy": 0.9, "database_lag_ms": 600}),
    "no broker": (0.8, {"slots_per_s": 0, "busy": 0.0, "database_lag_ms": 10}),
    "a leader that falls behind without a queue": (0.3, {"then_lag_ms": 600}),
}


@pytest.mark.parametrize("case", NO_FLOODS)
def test_what_is_no_overload_is_not_refused(case: str) -> None:
    part, fields = NO_FLOODS[case]
    fields = dict(fields)
    then_lag_ms = fields.pop("then_lag_ms", None)
    client = Client(part * BEST_PER_S)
    cluster = Cluster([client], **fields)
    cluster.run(60)
    cluster.database_lag_ms = then_lag_ms or cluster.database_lag_ms
    cluster.run(60)
    assert client.refused == 0


def test_after_a_flood_all_is_let_in_within_seconds() -> None:
    flood, usual = Client(5 * BEST_PER_S, until_s=30), Client(0.5 * BEST_PER_S)
    cluster = Cluster([flood, usual])
    cluster.run(40)
    assert flood.refused
    before = usual.refused
    cluster.run(30)
    assert usual.refused == before
    assert cluster.controls[0].fraction == 1


@pytest.mark.parametrize("batch", [1, 100])
def test_a_flood_is_refused_before_another_tenant_is(batch: int) -> None:
    flood, quiet = Client(5 * BEST_PER_S, batch, tenant="flood"), Client(0.1 * BEST_PER_S, tenant="quiet")
    Cluster([flood, quiet]).run(60)
    assert flood.refused > flood.accepted
    assert quiet.refused <= 0.01 * quiet.accepted
