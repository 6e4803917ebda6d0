"""The journal as a fence; from decisions to the journal, the database and the publisher; the leader's accounts."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import pairwise

import pytest

from hascheduler.daemon.leadership.fence import Deposed, Fence
from hascheduler.daemon.loop.committer import Committer
from hascheduler.daemon.loop.cost_checkpoint import CostCheckpoint
from hascheduler.daemon.loop.inbox import Inbox
from hascheduler.dispatch.accounts import AccountsSnapshot
from hascheduler.dispatch.decisions import Decision, Dispatch, Fire, Publish, Requeue, Settlement
from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.dispatch.inputs import AccountsRestored, Settled, TermBegan
from hascheduler.errors import StoreUnavailable
from hascheduler.mirror.changes import JobSeen, ProcessorSeen
from hascheduler.model.collection import Collection
from hascheduler.model.leadership import JournalHead
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import Journal, JournalEntry
from hascheduler.schema.schedule import Basis
from hascheduler.testing.memory.database import MemoryConnection, MemoryDatabase
from hascheduler.testing.memory.leadership import MemoryAccountStore, MemoryJournal
from tests.unit.daemon.doubles import AnsweringClaims, HandClock, RecordingPublisher, running
from tests.unit.dispatch.nouns import make_job, make_processor, wall

NOW = WallMs(1_000)
CLAIM = (Dispatch("j", 1, "p"),)


def always() -> bool:
    return True


class Replica:
    """One replica's way to the journal that all share."""

    def __init__(self, name: str, database: MemoryDatabase) -> None:
        self.name = name
        self.connection = MemoryConnection(database)
        self.journal: Journal = MemoryJournal(self.connection)

    async def begin(self, term: int, trusted: Callable[[], bool] = always) -> Fence | Deposed:
        return await Fence.begin(self.journal, name="default", term=term, holder=self.name, now=NOW, trusted=trusted)

    async def lead(self, term: int) -> Fence:
        fence = await self.begin(term)
        assert isinstance(fence, Fence)
        return fence


async def append(
    fence: Fence, applied_through: int = 0, trusted: Callable[[], bool] = always
) -> JournalEntry | Deposed:
    return await fence.append(CLAIM, applied_through, NOW, trusted)


@pytest.fixture
def database() -> MemoryDatabase:
    return MemoryDatabase()


async def heads(database: MemoryDatabase) -> list[tuple[int, int, str]]:
    entries = await MemoryJournal(MemoryConnection(database)).read("default", 0, 10**6)
    return [(entry.head.seq, entry.head.term, entry.head.holder) for entry in entries]


def terms_fall(journaled: list[tuple[int, int, str]]) -> bool:
    """Whether an entry follows one of a higher term, or one of its own term by another holder: what must never be."""
    pairs = [(term, holder) for _, term, holder in journaled]
    return any(a[0] > b[0] or (a[0] == b[0] and a[1] != b[1]) for a, b in pairwise(pairs))


async def test_a_deposed_leader_cannot_append_and_never_can_again(database: MemoryDatabase) -> None:
    old = await Replica("old", database).lead(1)
    await append(old)
    await Replica("new", database).lead(2)
    for _ in range(2):
        assert await append(old) == Deposed(2)
    assert await heads(database) == [(1, 1, "old"), (2, 1, "old"), (3, 2, "new")]


@pytest.mark.parametrize("term", [1, 2, 3])
async def test_no_term_begins_after_its_own_or_a_higher_one(database: MemoryDatabase, term: int) -> None:
    await Replica("a", database).lead(3)
    assert await Replica("b", database).begin(term) == Deposed(3)
    assert await heads(database) == [(1, 3, "a")]


async def test_of_two_that_were_given_one_term_one_begins_it(database: MemoryDatabase) -> None:
    begun = await asyncio.gather(*(Replica(name, database).begin(7) for name in ("a", "b", "c")))
    assert len([fence for fence in begun if isinstance(fence, Fence)]) == 1
    assert len(await heads(database)) == 1


@pytest.mark.parametrize("carried_out", [True, False])
@pytest.mark.parametrize("of", ["journal.insert", "journal.get", "journal"])
async def test_an_insert_without_an_answer_is_repeated_and_ones_own_entry_recognised(
    database: MemoryDatabase, carried_out: bool, of: str
) -> None:
    replica = Replica("a", database)
    fence = await replica.lead(1)
    replica.connection.fail_next(2, of=of, carried_out=carried_out)
    written = await append(fence)
    assert isinstance(written, JournalEntry)
    assert isinstance(await append(fence), JournalEntry)
    assert await heads(database) == [(1, 1, "a"), (2, 1, "a"), (3, 1, "a")]


async def test_an_insert_is_not_repeated_once_trust_is_gone(database: MemoryDatabase) -> None:
    replica = Replica("a", database)
    fence = await replica.lead(1)
    replica.connection.cut()
    asked: list[int] = []

    def trusted() -> bool:
        asked.append(1)
        return len(asked) < 3

    with pytest.raises(StoreUnavailable):
        await append(fence, trusted=trusted)
    assert len(asked) == 3


async def test_an_entry_of_the_same_term_by_another_holder_is_not_ones_own(database: MemoryDatabase) -> None:
    """A lease that was deleted by hand twice over may give a term out twice."""
    fence = await Replica("a", database).lead(4)
    forged = JournalEntry(replace(fence.began, seq=2, holder="b"), NOW)
    assert await MemoryJournal(MemoryConnection(database)).insert(forged)
    assert await append(fence) == Deposed(4)


async def test_a_term_begins_behind_what_the_old_leader_squeezes_in(database: MemoryDatabase) -> None:
    old = await Replica("old", database).lead(1)
    new = Replica("new", database)
    squeezed = 0

    class Slow(MemoryJournal):
        async def tail(self, shard: str) -> JournalHead | None:
            nonlocal squeezed
            head = await super().tail(shard)
            if squeezed < 3:
                squeezed += 1
                assert isinstance(await append(old, applied_through=squeezed), JournalEntry)
            return head

    new.journal = Slow(new.connection)
    fence = await new.lead(2)
    assert (fence.began.seq, fence.began.applied_through) == (5, 3)
    assert await append(old) == Deposed(2)


async def test_however_leaders_interleave_terms_never_fall_in_the_journal(database: MemoryDatabase) -> None:
    async def reign(term: int, replica: Replica) -> None:
        fence = await replica.begin(term)
        for _ in range(5):
            if isinstance(fence, Deposed) or isinstance(await append(fence), Deposed):
                return

    await asyncio.gather(*(reign(term, Replica(f"r{term}", database)) for term in (3, 1, 4, 2, 5)))
    journaled = await heads(database)
    assert [seq for seq, _, _ in journaled] == list(range(1, len(journaled) + 1))
    assert not terms_fall(journaled)


async def test_planted_a_fence_that_does_not_look_at_the_term_lets_terms_fall(database: MemoryDatabase) -> None:
    class Blind(MemoryJournal):
        async def tail(self, shard: str) -> JournalHead | None:
            head = await super().tail(shard)
            return None if head is None else replace(head, term=0)

    await Replica("new", database).lead(2)
    late = Replica("late", database)
    late.journal = Blind(late.connection)
    await late.lead(1)
    assert terms_fall(await heads(database))


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


@asynccontextmanager
async def pipeline(answer: Callable[[Decision], Settlement] = lambda _: Settlement.DONE) -> AsyncIterator[Pipeline]:
    replica, inbox = Replica("r3", MemoryDatabase()), Inbox()
    replica.journal = journal = GatedJournal(replica.connection)
    journal.gate.release()
    claims, publisher = AnsweringClaims(answer), RecordingPublisher()
    committer = Committer(
        await replica.lead(3),
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


async def test_a_term_ends_when_another_leaders_entry_is_met(database: MemoryDatabase) -> None:
    old = await Replica("old", database).lead(1)
    await Replica("new", database).lead(2)
    claims = AnsweringClaims()
    committer = Committer(
        old, claims=claims, publisher=RecordingPublisher(), inbox=Inbox(), clock=HandClock(), trusted=lambda: True
    )
    committer.submit((A,), majority=False)
    assert await committer.run() == Deposed(2)
    assert claims.applied == []


async def test_applied_through_stops_before_the_first_entry_that_is_not_settled() -> None:
    async with pipeline() as one:
        assert one.committer.account.applied_through == 1  # its own beginning
        await one.commit(A, B)
        await one.commit(C)
        assert one.committer.account.applied_through == 1
        one.committer.account.settle([C])
        assert one.committer.account.applied_through == 1
        one.committer.account.settle([A])
        assert one.committer.account.applied_through == 1
        one.committer.account.settle([B])
        assert one.committer.account.applied_through == 3


def bookkeeper(core: Dispatcher, connection: MemoryConnection, term: int | None) -> CostCheckpoint:
    return CostCheckpoint(core, MemoryAccountStore(connection), HandClock(), name="default", term=lambda: term)


async def test_the_accounts_of_a_leader_are_those_that_the_next_start_begins_with() -> None:
    connection = MemoryConnection(MemoryDatabase())
    core = Dispatcher()
    core.step(wall(0), [TermBegan(1), ProcessorSeen(make_processor("p")), JobSeen(make_job("a", fairness_key="k"))])
    assert core.state.accounts.cost("default", "k") == 1_000
    await bookkeeper(core, connection, term=1).save()

    restarted = Dispatcher()
    accounts = await bookkeeper(restarted, connection, term=None).load()
    restarted.step(wall(0), [AccountsRestored(accounts)])
    assert restarted.state.accounts.cost("default", "k") == 1_000
    assert restarted.state.accounts.tenant_cost("default") == 1_000


async def test_a_follower_saves_nothing_and_a_broken_record_counts_as_none() -> None:
    connection = MemoryConnection(MemoryDatabase())
    keeper = bookkeeper(Dispatcher(), connection, term=None)
    await keeper.save()
    assert connection.database.find(Collection.ACCOUNTS, "default") is None
    connection.database.insert(Collection.ACCOUNTS, {"_id": "default", "accumulated": 7})
    assert await keeper.load() == AccountsSnapshot()
