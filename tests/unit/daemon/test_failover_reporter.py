"""A takeover that is over is reported, whatever cannot be reached, and nothing waits for the report."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from hascheduler.daemon.leadership import failover_reporter
from hascheduler.daemon.leadership.failover_reporter import FailoverReporter
from hascheduler.model.collection import Collection
from hascheduler.model.failover import Backlog, Cause, Failover
from hascheduler.model.journal import EntryKind, JournalHead
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import JournalEntry
from hascheduler.telemetry.metrics_replica import ReplicaMetrics
from hascheduler.testing.memory.connection import MemoryConnection
from hascheduler.testing.memory.database import MemoryDatabase
from hascheduler.testing.memory.leadership import MemoryFailoverStore, MemoryJournal
from tests.factories import NOW, make_entry, make_failover
from tests.system.processes import eventually
from tests.unit.telemetry.scraping import scrape

UNFILLED = make_failover(last_decision_at_ms=None)


class Room:
    """Reports on a database, and what they told the log and the metrics."""

    def __init__(self, database: MemoryDatabase | None = None) -> None:
        self.connection = MemoryConnection(database or MemoryDatabase())
        self.store = MemoryFailoverStore(self.connection)
        self.metrics = ReplicaMetrics()
        self.looks = 0
        self.reports = FailoverReporter(
            "default",
            journal=MemoryJournal(self.connection),
            store=self.store,
            metrics=self.metrics,
        )

    def look(self) -> None:
        self.looks += 1

    async def wrote(self, *kinds: EntryKind) -> None:
        """Journal entries up to the one before the `UNFILLED` began, one a second, the last of them now."""
        journal = MemoryJournal(self.connection)
        for number, kind in enumerate(kinds):
            seq = UNFILLED.began_seq - len(kinds) + number
            at_ms = WallMs(NOW - 1_000 * (len(kinds) - 1 - number))
            await journal.insert(JournalEntry(replace(make_entry(seq).head, kind=kind), at_ms))

    async def kept(self) -> list[Failover]:
        return list(await MemoryFailoverStore(MemoryConnection(self.connection.database)).newest("default", 9))


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> Room:
    monkeypatch.setattr(failover_reporter, "_LOOK_EVERY_S", 0.001)
    return Room()


@asynccontextmanager
async def running(*rooms: Room) -> AsyncIterator[list[Any]]:
    """The log meanwhile."""
    with capture_logs() as logs:
        tasks = [asyncio.create_task(room.reports.run(room.look)) for room in rooms]
        try:
            yield logs
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)


async def until(holds: Callable[[], bool]) -> None:
    async def look() -> bool:
        return holds()

    await eventually(look, "it is so")


def of_failovers(room: Room) -> int:
    return len(list(room.connection.database.documents(Collection.FAILOVERS)))


async def test_it_is_logged_counted_and_kept_whole(room: Room) -> None:
    await room.wrote(EntryKind.DECISIONS, EntryKind.DECISIONS)
    async with running(room) as logs:
        room.reports.report(UNFILLED)
        await until(lambda: of_failovers(room) == 1)
    whole = replace(UNFILLED, last_decision_at_ms=NOW)
    assert await room.kept() == [whole]
    assert room.reports.newest == whole
    [line] = [line for line in logs if line["event"] == "failover"]
    assert line["log_level"] == "info"
    assert (line["term"], line["cause"], line["ended"]) == (8, "died", "caught_up")
    assert (line["detection_ms"], line["takeover_ms"], line["first_decision_ms"], line["gap_ms"]) == (40, 80, 10, 150)
    assert (line["fires_late"], line["worst_lag_ms"], line["reapplied_entries"]) == (3, 132, 2)
    scraped = scrape(room.metrics.registry)
    assert scraped.by("hascheduler_failovers_total", "cause") == {
        "first": 0, "released": 0, "died": 1, "stood_still": 0, "lapsed": 0, "deleted": 0,
    }  # fmt: skip
    assert scraped.by("hascheduler_failover_seconds", "phase") == {
        "detection": 0.04, "takeover": 0.08, "first_decision": 0.01,
    }  # fmt: skip
    assert scraped["hascheduler_failover_fires_late"] == 3


async def test_a_phase_that_did_not_come_is_not_shown_as_the_last_one_was(room: Room) -> None:
    async with running(room):
        room.reports.report(make_failover())
        nothing_due = {"first_decision_at_ms": None, "first_dispatch_at_ms": None, "backlog": Backlog()}
        room.reports.report(make_failover(9, cause=Cause.RELEASED, last_sign_at_ms=None, **nothing_due))
        await until(lambda: of_failovers(room) == 2)
    scraped = scrape(room.metrics.registry)
    assert set(scraped.by("hascheduler_failover_seconds", "phase")) == {"detection", "takeover"}
    assert scraped["hascheduler_failover_fires_late"] == 0


@pytest.mark.parametrize(
    ("kinds", "ago_s"),
    [
        ([EntryKind.DECISIONS], 0),
        ([EntryKind.DECISIONS, EntryKind.TERM_BEGAN, EntryKind.TERM_BEGAN], 2),
        ([EntryKind.TERM_BEGAN], None),
        ([], None),
        ([EntryKind.DECISIONS, *[EntryKind.TERM_BEGAN] * 20], None),
    ],
    ids=["one", "before terms that decided nothing", "none", "an empty journal", "too many such terms"],
)
async def test_the_last_decision_is_looked_for_in_the_journal(
    room: Room, kinds: list[EntryKind], ago_s: int | None
) -> None:
    await room.wrote(*kinds)
    async with running(room):
        room.reports.report(UNFILLED)
        await until(lambda: of_failovers(room) == 1)
    [kept] = await room.kept()
    assert kept.last_decision_at_ms == (None if ago_s is None else NOW - 1_000 * ago_s)


async def test_while_the_database_is_away_the_log_has_it_and_later_the_list(room: Room) -> None:
    await room.wrote(EntryKind.DECISIONS)
    room.connection.cut()
    async with running(room) as logs:
        room.reports.report(UNFILLED)
        await until(lambda: any(line["event"] == "failover" for line in logs))
        assert room.reports.newest == UNFILLED
        room.connection.mend()
        await until(lambda: of_failovers(room) == 1)
    assert await room.kept() == [replace(UNFILLED, last_decision_at_ms=NOW)]
    assert [line["event"] for line in logs].count("failover") == 1
    assert scrape(room.metrics.registry).of("hascheduler_failovers_total", cause="died") == 1


async def test_a_database_that_is_away_delays_no_line_of_the_log(room: Room) -> None:
    room.connection.cut()
    async with running(room) as logs:
        for term in (8, 9, 10):
            room.reports.report(make_failover(term))
        await until(lambda: [line["term"] for line in logs if line["event"] == "failover"] == [8, 9, 10])


async def test_what_can_never_be_kept_is_given_up_and_the_next_is_not(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failover_reporter, "_SAVE_FOR_S", 0)
    room.connection.fail_next(of="failovers.save")
    async with running(room) as logs:
        room.reports.report(make_failover(8))
        room.reports.report(make_failover(9))
        await until(lambda: of_failovers(room) == 1)
    assert [failover.term for failover in await room.kept()] == [9]
    assert [line["term"] for line in logs if line["event"] == "failover_not_kept"] == [8]


async def test_a_broken_journal_ends_nothing(room: Room) -> None:
    head = {"_id": {"shard": "default", "seq": 41}, "v": 1, "term": 7, "kind": "decisions", "holder": "r1"}
    broken = {**head, "applied_through": 1, "at_ms": 1, "decisions": [["of a newer release"]]}
    room.connection.database.insert(Collection.JOURNAL, broken)
    async with running(room):
        room.reports.report(UNFILLED)
        await until(lambda: of_failovers(room) == 1)
    assert await room.kept() == [UNFILLED]


async def test_the_others_know_it_once_they_have_seen_the_term(room: Room) -> None:
    other = Room(room.connection.database)
    began = JournalHead("default", 42, 8, EntryKind.TERM_BEGAN, "r2", 41)
    async with running(room, other):
        other.reports.journal_seen(began)
        other.connection.fail_next(of="failovers.newest")
        room.reports.report(make_failover(7))
        room.reports.report(make_failover(8))
        await until(lambda: other.reports.newest == make_failover(8))


async def test_an_open_takeover_is_looked_at_regularly_and_a_late_one_does_not_hide_a_newer(room: Room) -> None:
    async with running(room):
        await until(lambda: room.looks > 2)
        room.reports.report(make_failover(8))
        room.reports.report(make_failover(7))
        await until(lambda: of_failovers(room) == 2)
    assert room.reports.newest == make_failover(8)
