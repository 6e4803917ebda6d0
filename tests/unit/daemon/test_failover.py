"""Why a change of leadership came, how long its gap was, and how its report gets into the database."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from structlog.testing import capture_logs
from tenacity import stop_after_attempt, wait_none

from hascheduler.daemon.leadership import failover
from hascheduler.daemon.leadership.failover import FailoverReporter
from hascheduler.model.leadership import EntryKind, JournalHead
from hascheduler.schema.failover import Cause, Failover
from hascheduler.telemetry.metrics_replica import ReplicaMetrics
from hascheduler.testing.memory.database import MemoryConnection, MemoryDatabase
from hascheduler.testing.memory.leadership import MemoryFailoverStore
from tests.factories import make_failover, make_lease
from tests.system.processes import eventually
from tests.unit.daemon.doubles import HandClock, running
from tests.unit.telemetry.scraping import scrape

ME = "r2"
HELD = make_lease("r1", term=1)
RENEWED = replace(HELD, renewals=1)
FREE = replace(RENEWED, holder="", renewals=2)
OTHERS = replace(HELD, holder="r3", term=2, renewals=3)
MINE = replace(HELD, holder=ME, term=2)


class Room:
    """A reporter whose clock stands at ``at(…)`` ms; another replica leads in term 1 and renewed at -200 ms."""

    def __init__(self, *, first: bool = False) -> None:
        self.clock, self.metrics = HandClock(), ReplicaMetrics()
        self.connection = MemoryConnection(MemoryDatabase())
        self.reporter = FailoverReporter("default", ME, self.clock, self.metrics, MemoryFailoverStore(self.connection))
        self.t0 = self.clock.now
        if not first:
            self.at(-500).lease_known(HELD, live=True)
            self.at(-200).lease_known(RENEWED, live=True)

    def at(self, ms: int) -> FailoverReporter:
        self.clock.now = self.t0 + ms
        return self.reporter

    def decides(self, ms: int, term: int = 2) -> None:
        self.at(ms).deciding(term)
        self.at(ms + 10).journaled(term)
        self.at(ms + 20).journaled(term)

    @property
    def reported(self) -> list[Failover]:
        queue = self.reporter._to_store
        return [queue.get_nowait() for _ in range(queue.qsize())]


@pytest.fixture
def room() -> Room:
    return Room()


def head(seq: int, holder: str = "r1", term: int = 1) -> JournalHead:
    return JournalHead("default", seq, term, EntryKind.DECISIONS, holder, seq - 1)


def entries(room: Room) -> None:
    room.at(-150).journal_seen(head(8), live=True)
    room.at(-100).journal_seen(head(9), live=True)
    room.at(-50).journal_seen(head(9), live=True)
    room.at(-40).journal_seen(head(10), live=False)
    room.at(-30).journal_seen(head(11, ME, 2), live=True)
    room.at(0).challenged(RENEWED)


def died(room: Room) -> None:
    room.at(0).holder_died("r1")
    room.at(10).challenged(RENEWED)


def released(room: Room) -> None:
    room.at(-10).lease_known(FREE, live=True)
    room.at(5).lease_known(FREE, live=True)
    room.at(10).challenged(FREE)


def stood_still(room: Room) -> None:
    room.at(0).holder_stalled("r1")
    room.at(10).challenged(RENEWED)


def renewed_after_all(room: Room) -> None:
    room.at(0).holder_stalled("r1")
    room.at(20).lease_known(replace(RENEWED, renewals=2), live=True)
    room.at(30).challenged(replace(RENEWED, renewals=2))


def lost_to_another(room: Room) -> None:
    died(room)
    room.at(20).lease_known(OTHERS, live=True)
    room.at(30).challenged(OTHERS)


def won_without_an_answer(room: Room) -> None:
    died(room)
    room.at(20).lease_known(MINE, live=True)
    room.at(30).challenged(MINE)


def deleted(room: Room) -> None:
    room.at(0).lease_known(None, live=True)
    room.at(10).challenged(None)


@pytest.mark.parametrize(
    ("happens", "cause", "sign_ms"),
    [
        (entries, Cause.LAPSED, -100),
        (died, Cause.DIED, 0),
        (released, Cause.RELEASED, -10),
        (stood_still, Cause.STOOD_STILL, -200),
        (renewed_after_all, Cause.LAPSED, 20),
        (lost_to_another, Cause.LAPSED, 20),
        (won_without_an_answer, Cause.DIED, 0),
        (deleted, Cause.DELETED, -200),
    ],
)
def test_the_gap_begins_with_the_last_sign_of_the_leader_before(
    room: Room, happens: Callable[[Room], None], cause: Cause, sign_ms: int
) -> None:
    happens(room)
    room.decides(60)
    undecided = make_failover(
        2, holder=ME, cause=cause, deciding_at_ms=room.t0 + 60, gap_ms=60 - sign_ms, first_decision_at_ms=None
    )
    assert room.reported == [undecided, undecided.model_copy(update={"first_decision_at_ms": room.t0 + 70})]


async def test_it_is_logged_counted_and_stored_however_often_the_store_is_away(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failover, "_patiently", failover._patiently.copy(wait=wait_none()))
    room.connection.fail_next(of="failovers.save")
    store = MemoryFailoverStore(MemoryConnection(room.connection.database))
    with capture_logs() as logs:
        async with running(room.reporter.run()):
            died(room)
            room.decides(60)
            await eventually(lambda: _is_whole(store), "it is stored")
    [line] = [line for line in logs if line["event"] == "failover"]
    assert (line["term"], line["cause"], line["gap_ms"]) == (2, "died", 60)
    assert [line["deciding_for_ms"] for line in logs if line["event"] == "first_decision"] == [10]
    scraped = scrape(room.metrics.registry)
    assert scraped.by("hascheduler_failovers_total", "cause") == {
        "first": 0, "released": 0, "died": 1, "stood_still": 0, "lapsed": 0, "deleted": 0,
    }  # fmt: skip
    assert scraped["hascheduler_failover_seconds"] == 0.06


async def _is_whole(store: MemoryFailoverStore) -> bool:
    return [one.first_decision_at_ms is not None for one in await store.newest("default", 9)] == [True]


async def test_one_that_can_not_be_stored_does_not_hold_up_the_next(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failover, "_patiently", failover._patiently.copy(stop=stop_after_attempt(1)))
    room.connection.fail_next(of="failovers.save")
    store = MemoryFailoverStore(MemoryConnection(room.connection.database))
    with capture_logs() as logs:
        async with running(room.reporter.run()):
            for term in (2, 3):
                room.at(60).deciding(term)
            await eventually(lambda: store.newest("default", 9), "the second is stored")
    assert [line["term"] for line in logs if line["event"] == "failover_write_failed"] == [2]
    assert [one.term for one in await store.newest("default", 9)] == [3]


def test_the_gap_after_a_term_of_its_own_begins_with_the_end_of_that_one(room: Room) -> None:
    room.at(0).challenged(RENEWED)
    room.at(10).deciding(2)
    room.at(20).ended(2)
    room.at(25).challenged(MINE)
    room.at(35).ended(3)
    room.at(40).deciding(4)
    room.at(45).journaled(2)
    assert [(one.term, one.cause, one.gap_ms, one.first_decision_at_ms) for one in room.reported] == [
        (2, Cause.LAPSED, 210, None),
        (4, Cause.LAPSED, 20, None),
    ]
