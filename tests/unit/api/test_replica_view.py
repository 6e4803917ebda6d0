"""A replica's answers about jobs from its own core, whichever replica leads."""

from dataclasses import replace
from typing import Any, cast

import pytest

from hascheduler.daemon.view import ReplicaView
from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.dispatch.explanation import BlockReason
from hascheduler.mirror.changes import JobSeen, ProcessorSeen
from hascheduler.model.documents.job import decode_job, new_job_document
from hascheduler.model.instants import MonoMs, WallMs
from hascheduler.model.lease import LeaseRecord
from tests.factories import NOW, make_job, make_lease, make_processor
from tests.unit.api.doubles import StandingClock

LEASE = make_lease("other")
LAPSED = replace(LEASE, renewed_at_ms=WallMs(NOW - LEASE.lease_duration_ms - 1))


class MovingClock(StandingClock):
    """Its monotonic half is moved by hand as well."""

    mono = 0

    def mono_ms(self) -> MonoMs:
        return MonoMs(self.mono)


class KnownLeader:
    """All that the view asks of a `Leader`."""

    def __init__(self, lease: LeaseRecord | None, *, leading: bool = False) -> None:
        self.lease = lease
        self._leading = leading

    def leads(self) -> bool:
        return self._leading


def view_of(core: Dispatcher, leader: KnownLeader, clock: StandingClock | None = None) -> ReplicaView:
    nothing: Any = None
    return ReplicaView(
        nothing,
        feeder=nothing,
        heartbeat=nothing,
        readiness=nothing,
        publisher=nothing,
        failovers=nothing,
        invariants=nothing,
        digests=nothing,
        stopping=nothing,
        leader=cast(Any, leader),
        stepper=nothing,
        recorder=nothing,
        ended=nothing,
        dispatched=nothing,
        core=core,
        clock=clock or StandingClock(),
    )


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
        (KnownLeader(LEASE), True),
        (KnownLeader(LAPSED, leading=True), True),
        (KnownLeader(None), False),
        (KnownLeader(make_lease("")), False),
        (KnownLeader(LAPSED), False),
    ],
)
def test_a_job_waits_for_a_leader_where_there_is_none(leader: KnownLeader, somebody_leads: bool) -> None:
    explanation = view_of(told("a"), leader).explain("a")
    assert explanation is not None
    assert [block.rule for block in explanation.blocks] == ([] if somebody_leads else [BlockReason.NOT_LEADING])


def test_an_unknown_job_has_no_explanation() -> None:
    assert view_of(told("a"), KnownLeader(None)).explain("b") is None


def test_what_can_never_run_is_looked_for_once_a_second() -> None:
    clock = MovingClock()
    core = told("a", "b", runs="sleep")
    view = view_of(core, KnownLeader(LEASE), clock)
    assert view.unschedulable() == {"a", "b"}
    core.step(NOW, [ProcessorSeen(make_processor("q", ("log",)))])
    clock.mono = 999
    assert view.unschedulable() == {"a", "b"}
    clock.mono = 1_000
    assert view.unschedulable() == frozenset()
