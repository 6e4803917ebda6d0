"""`Journal`: one entry per (name, seq), written once, never changed."""

from hascheduler.dispatch.decisions import (
    Cancel,
    CountFailures,
    Dispatch,
    Fail,
    RecordVerdict,
    ReleaseHold,
    Requeue,
    ResetCursor,
)
from hascheduler.model.values.instants import LATEST_MS, WallMs
from hascheduler.model.verdict import FireCounts, Verdict, VerdictRun
from hascheduler.schema.schedule import Basis
from tests.contract.backends import Backend, on
from tests.contract.checks import a_seq_is_written_once, of_racing_inserts_at_one_seq_one_wins
from tests.factories import NOW, make_entry, make_fire

# Not mongomock: it can't compare ids that are objects, nor knows the ends of a range of them.
pytestmark = on("memory", "pymongo", "motor")


async def test_an_entry_is_read_back_whole(backend: Backend) -> None:
    run = VerdictRun("tick", Verdict.SKIPPED, NOW, LATEST_MS, 7, because_of="fire:tick:1")
    paused = Basis(NOW, NOW, paused_at_ms=LATEST_MS)
    decisions = (
        make_fire(1, tally=FireCounts(fired=5)), RecordVerdict(run, paused, FireCounts(1, 2, 3, 4, 5, 6)),
        Dispatch("a", 1, "p1"),
        Requeue("b", 2, "lost: $p"), Fail("c", 3, "used up"), Cancel("d", 0, "replaced"), CountFailures("tick", 3, 2),
        CountFailures("tick", 3, 2, pause_at_ms=NOW), ReleaseHold("cap/tier/3", 7), ResetCursor("tick", NOW, NOW),
    )  # fmt: skip
    entry = make_entry(1, *decisions, term=7, holder="r2")
    assert await backend.journal.insert(entry) is True
    assert await backend.journal.get("default", 1) == entry
    assert await backend.journal.read("default", 0, 2) == [entry]
    assert await backend.journal.tail("default") == entry.head


async def test_a_seq_is_written_once(backend: Backend) -> None:
    await a_seq_is_written_once(backend.journal)


async def test_the_tail_is_the_highest_seq_as_a_number_and_not_the_last_insert(backend: Backend) -> None:
    for seq in (9, 100, 10, 99):
        await backend.journal.insert(make_entry(seq))
    assert await backend.journal.tail("default") == make_entry(100).head


async def test_names_do_not_meet(backend: Backend) -> None:
    for name, seq in (("a", 3), ("ab", 9), ("b", 1)):
        assert await backend.journal.insert(make_entry(seq, name=name)) is True
    assert await backend.journal.tail("a") == make_entry(3, name="a").head
    assert [entry.head.seq for entry in await backend.journal.read("ab", 0, 100)] == [9]
    assert await backend.journal.trim("a", 100, WallMs(NOW + 1)) == 1
    assert await backend.journal.tail("ab") == make_entry(9, name="ab").head


async def test_entries_are_read_strictly_between_and_in_order(backend: Backend) -> None:
    for seq in (4, 2, 3, 1, 5):
        await backend.journal.insert(make_entry(seq))
    assert await backend.journal.read("default", 1, 5) == [make_entry(2), make_entry(3), make_entry(4)]
    assert await backend.journal.read("default", 4, 5) == []
    assert await backend.journal.read("default", 5, 1) == []


async def test_trimming_deletes_entries_that_are_below_and_old(backend: Backend) -> None:
    for seq in range(1, 6):
        await backend.journal.insert(make_entry(seq, at_ms=NOW + seq))
    # By seq 4 would go too, by age 3 would not.
    assert await backend.journal.trim("default", 4, WallMs(NOW + 3)) == 2
    assert [entry.head.seq for entry in await backend.journal.read("default", 0, 9)] == [3, 4, 5]
    assert await backend.journal.trim("default", 3, WallMs(NOW + 99)) == 1
    assert await backend.journal.trim("default", 3, WallMs(NOW + 99)) == 0
    assert await backend.journal.tail("default") == make_entry(5).head


async def test_of_fifty_racing_inserts_at_one_seq_one_wins(backend: Backend) -> None:
    await of_racing_inserts_at_one_seq_one_wins(backend.journal)
