"""The journal as a fence."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest

from hascheduler.daemon.leadership.fence import Deposed, Fence
from hascheduler.dispatch.decisions import Dispatch
from hascheduler.errors import StoreUnavailable
from hascheduler.model.leadership import JournalHead
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import Journal, JournalEntry
from hascheduler.testing.memory.database import MemoryConnection, MemoryDatabase
from hascheduler.testing.memory.leadership import MemoryJournal

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


# Answers that do not come


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


# Any interleaving


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
