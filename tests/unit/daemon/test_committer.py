"""From decisions to the journal, to the database, to the publisher; and which entries are settled."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from hascheduler.daemon.leadership.fence import Deposed, Fence
from hascheduler.daemon.loop.committer import Committer
from hascheduler.daemon.loop.cost_checkpoint import CostCheckpoint
from hascheduler.daemon.loop.inbox import Inbox
from hascheduler.dispatch.accounts import AccountsSnapshot
from hascheduler.dispatch.decisions import Decision, Dispatch, Fire, Publish, Requeue, Settlement
from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.dispatch.inputs import AccountsRestored, Settled, TermBegan
from hascheduler.mirror.changes import JobSeen, ProcessorSeen
from hascheduler.model.collection import Collection
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import JournalEntry
from hascheduler.schema.schedule import Basis
from hascheduler.testing.memory.database import MemoryConnection, MemoryDatabase
from hascheduler.testing.memory.leadership import MemoryAccountStore, MemoryJournal
from tests.unit.daemon.doubles import AnsweringClaims, HandClock, RecordingPublisher, running
from tests.unit.dispatch.nouns import make_job, make_processor, wall

A, B, C = (Dispatch(id, 1, "p") for id in "abc")


class GatedJournal(MemoryJournal):
    """Writes an entry only when it is let through."""

    def __init__(self, connection: MemoryConnection) -> None:
        super().__init__(connection)
        self.gate = asyncio.Semaphore(0)

    async def insert(self, entry: JournalEntry) -> bool:
        await self.gate.acquire()
        return await super().insert(entry)


@dataclass(frozen=True)
class Pipeline:
    """One term's committer, running, with everything around it in memory."""

    committer: Committer
    journal: GatedJournal
    inbox: Inbox
    claims: AnsweringClaims
    publisher: RecordingPublisher

    async def commit(self, *decisions: Decision, majority: bool = False) -> None:
        assert await self.committer.ready()
        self.committer.submit(decisions, majority=majority)
        self.journal.gate.release()
        assert await self.committer.drained(5)

    async def entries(self) -> Sequence[JournalEntry]:
        return await self.journal.read("default", 1, 9)


async def begun(journal: MemoryJournal, term: int) -> Fence:
    fence = await Fence.begin(
        journal, name="default", term=term, holder=f"r{term}", now=WallMs(0), trusted=lambda: True
    )
    assert isinstance(fence, Fence)
    return fence


@asynccontextmanager
async def pipeline(answer: Callable[[Decision], Settlement] = lambda _: Settlement.DONE) -> AsyncIterator[Pipeline]:
    journal, inbox = GatedJournal(MemoryConnection(MemoryDatabase())), Inbox()
    journal.gate.release()
    claims, publisher = AnsweringClaims(answer), RecordingPublisher()
    committer = Committer(
        await begun(journal, 3),
        claims=claims,
        publisher=publisher,
        inbox=inbox,
        clock=HandClock(),
        trusted=lambda: True,
    )
    async with running(committer.run()):
        yield Pipeline(committer, journal, inbox, claims, publisher)


async def test_decisions_are_journaled_then_applied_then_published_and_reported_to_the_core() -> None:
    fire = Fire("s", WallMs(1_000), Basis(WallMs(0), WallMs(0)))
    async with pipeline() as one:
        await one.commit(fire, A)
        await one.commit(Requeue("b", 1, "lost"), majority=True)
        assert one.claims.applied == [((fire, A), False), ((Requeue("b", 1, "lost"),), True)]
        assert one.publisher.offered == [Publish("a", 1, "p")]
        inputs = one.inbox.take()
        assert inputs == [Settled(decision, Settlement.DONE) for decision in (fire, A, Requeue("b", 1, "lost"))]
        assert [entry.decisions for entry in await one.entries()] == [(fire, A), (Requeue("b", 1, "lost"),)]


async def test_decisions_without_an_answer_are_applied_again_and_end_as_unknown() -> None:
    async with pipeline(lambda _: Settlement.UNKNOWN) as one:
        await one.commit(A)
        assert len(one.claims.applied) == 5
        assert one.inbox.take() == [Settled(A, Settlement.UNKNOWN)]
        assert one.publisher.offered == []


async def test_a_batch_waits_in_front_of_the_journal_and_the_next_has_no_room() -> None:
    async with pipeline() as one:
        one.committer.submit((A,), majority=False)
        assert await one.committer.ready()  # the first is on its way into the journal
        one.committer.submit((B,), majority=False)
        waiting = asyncio.create_task(one.committer.ready())
        await asyncio.wait({waiting}, timeout=0.01)
        assert not waiting.done()
        one.journal.gate.release()
        assert await waiting
        one.journal.gate.release()
        assert await one.committer.drained(5)
        assert [decisions for decisions, _ in one.claims.applied] == [(A,), (B,)]


async def test_a_term_ends_when_another_leaders_entry_is_met() -> None:
    database = MemoryDatabase()
    journal = MemoryJournal(MemoryConnection(database))
    old = await begun(journal, 1)
    await begun(journal, 2)
    claims = AnsweringClaims()
    committer = Committer(
        old, claims=claims, publisher=RecordingPublisher(), inbox=Inbox(), clock=HandClock(), trusted=lambda: True
    )
    committer.submit((A,), majority=False)
    assert await committer.run() == Deposed(2)
    assert claims.applied == []


# The account


async def test_applied_through_stops_before_the_first_entry_that_is_not_settled() -> None:
    async with pipeline() as one:
        assert one.committer.applied_through == 1  # its own beginning
        await one.commit(A, B)
        await one.commit(C)
        assert one.committer.applied_through == 1
        one.committer.settled([C])
        assert one.committer.applied_through == 1
        one.committer.settled([A])
        assert one.committer.applied_through == 1
        one.committer.settled([B])
        assert one.committer.applied_through == 3


def bookkeeper(core: Dispatcher, connection: MemoryConnection, term: int | None) -> CostCheckpoint:
    return CostCheckpoint(core, MemoryAccountStore(connection), HandClock(), name="default", term=lambda: term)


async def test_the_accounts_of_a_leader_are_those_that_the_next_start_begins_with() -> None:
    connection = MemoryConnection(MemoryDatabase())
    core = Dispatcher()
    core.step(wall(0), [TermBegan(1), ProcessorSeen(make_processor("p")), JobSeen(make_job("a", fairness_key="k"))])
    assert core.accumulated_cost_ms("default", "k") == 1_000
    await bookkeeper(core, connection, term=1).save()

    restarted = Dispatcher()
    accounts = await bookkeeper(restarted, connection, term=None).load()
    restarted.step(wall(0), [AccountsRestored(accounts)])
    assert restarted.accumulated_cost_ms("default", "k") == 1_000
    assert restarted.accumulated_cost_ms("default") == 1_000


async def test_a_follower_saves_nothing_and_a_broken_record_counts_as_none() -> None:
    connection = MemoryConnection(MemoryDatabase())
    keeper = bookkeeper(Dispatcher(), connection, term=None)
    await keeper.save()
    assert connection.database.find(Collection.ACCOUNTS, "default") is None
    connection.database.insert(Collection.ACCOUNTS, {"_id": "default", "accumulated": 7})
    assert await keeper.load() == AccountsSnapshot()
