"""What leaders and replicas leave for others: `Journal`, `ReplicaBoard`, `FailoverStore` and `AccountStore`."""

import time
from typing import Any

import pytest

from hascheduler.dispatch.accounts import AccountsSnapshot
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
from hascheduler.errors import InvalidInput
from hascheduler.model.collection import Collection
from hascheduler.model.values.instants import LATEST_MS, WallMs
from hascheduler.model.verdict import FireCounts, Verdict, VerdictRun
from hascheduler.ports import FAILOVERS_MAX
from hascheduler.schema.failover import Cause, encode_failover
from hascheduler.schema.noun import read_document
from hascheduler.schema.replica import ReplicaStatus
from hascheduler.schema.schedule import Basis
from tests.contract.backends import Backend, on
from tests.contract.checks import a_seq_is_written_once, of_racing_inserts_at_one_seq_one_wins
from tests.factories import NOW, make_entry, make_failover, make_fire, make_replica

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


# Not mongomock: it lacks $replaceWith, which an account is made of.


async def test_a_heartbeat_replaces_the_one_before(backend: Backend) -> None:
    await backend.board.beat(make_replica("r1", stream_lag_ms=None, digest="$d"))
    await backend.board.beat(make_replica("r2"))
    await backend.board.beat(make_replica("r1", beat=2, ready=False))
    for status in (make_replica("r1", beat=2, ready=False), make_replica("r2")):
        document = await backend.behind.find(Collection.REPLICAS, status.id)
        assert document is not None
        assert read_document(ReplicaStatus, status.id, document) == status


async def test_a_heartbeat_returns_the_databases_time_or_none(backend: Backend) -> None:
    before_ms = time.time_ns() // 1_000_000
    told_ms = await backend.board.beat(make_replica("r1"))
    after_ms = time.time_ns() // 1_000_000
    # The servers of a test are on this machine, so there is one clock.
    assert told_ms is None or before_ms <= told_ms <= after_ms


async def terms(backend: Backend, limit: int = FAILOVERS_MAX, name: str = "default") -> list[int]:
    return [failover.term for failover in await backend.failovers.newest(name, limit)]


async def test_reports_are_read_back_with_the_latest_first(backend: Backend) -> None:
    bare = make_failover(9, cause=Cause.STOOD_STILL, gap_ms=None, first_decision_at_ms=None)
    saved = [make_failover(8), bare, make_failover(10)]
    for failover in saved:
        await backend.failovers.save(failover)
    assert await backend.failovers.newest("default", 9) == saved[::-1]
    assert await terms(backend, limit=2) == [10, 9]
    assert await terms(backend, name="other") == []


async def test_the_newest_reports_of_each_name_are_kept(backend: Backend) -> None:
    await backend.failovers.save(make_failover(1, shard="a"))
    for term in (*range(2, FAILOVERS_MAX + 4), 1):
        await backend.failovers.save(make_failover(term))
    assert await terms(backend, 1_000) == list(range(FAILOVERS_MAX + 3, 3, -1))
    assert await terms(backend, name="a") == [1]


@pytest.mark.parametrize(
    "broken",
    [
        {"cause": "fate"}, {"cause": None}, {"holder": ""}, {"deciding_at_ms": "now"}, {"v": 2}, {"gap_ms": -1},
        {"first_decision_at_ms": 1.5},
    ],
)  # fmt: skip
async def test_a_malformed_report_is_left_out(backend: Backend, broken: dict[str, Any]) -> None:
    await backend.failovers.save(make_failover(7))
    await backend.behind.insert(Collection.FAILOVERS, {**encode_failover(make_failover(8)), **broken})
    assert await terms(backend) == [7]


ACCOUNTS = AccountsSnapshot(
    (("acme", "a", 2**40, 1_893_456_000_000), ("acme", "", 0, 5), ("globex", "a", 3, 6)),
    (("log", "$target", 12, 7),),
    1_893_456_000_001,
    (("acme", 2**40, 1_893_456_000_000), ("globex", 3, 6)),
)


async def test_the_accounts_saved_last_are_loaded(backend: Backend) -> None:
    assert await backend.accounts.load("default") == AccountsSnapshot()
    assert await backend.accounts.save("default", 1, ACCOUNTS)
    assert await backend.accounts.load("default") == ACCOUNTS
    assert await backend.accounts.load("other") == AccountsSnapshot()
    assert await backend.accounts.save("default", 1, AccountsSnapshot(as_of_ms=9))
    assert await backend.accounts.load("default") == AccountsSnapshot(as_of_ms=9)


async def test_a_leader_of_an_earlier_term_does_not_overwrite_those_of_a_later_one(backend: Backend) -> None:
    assert await backend.accounts.save("default", 5, ACCOUNTS)
    assert not await backend.accounts.save("default", 4, AccountsSnapshot())
    assert await backend.accounts.load("default") == ACCOUNTS
    assert await backend.accounts.save("default", 6, AccountsSnapshot())


@pytest.mark.parametrize(
    "broken",
    [
        {"accumulated": "none"},
        {"accumulated": [["a", 1]]},
        {"accumulated": [["a", "1", 2]]},
        {"by_tenant": [["acme", 1, 2]]},
        {"tenants": [["acme", "1", 2]]},
        {"learned": [["log", "t", 1.5, 2]]},
        {"learned": [None]},
        {"as_of_ms": "now"},
    ],
)
async def test_malformed_accounts_are_refused(backend: Backend, broken: dict[str, object]) -> None:
    await backend.behind.insert(Collection.ACCOUNTS, {"_id": "default", "term": 1, **broken})
    with pytest.raises(InvalidInput):
        await backend.accounts.load("default")


async def test_costs_that_an_earlier_version_stored_by_key_alone_count_for_each_tenant_that_has_the_key(
    backend: Backend,
) -> None:
    by_key = [["acme", 7_000, 50], ["default", 2_000, 60]]
    await backend.behind.insert(
        Collection.ACCOUNTS, {"_id": "default", "term": 1, "accumulated": by_key, "learned": [], "as_of_ms": 60}
    )
    assert await backend.accounts.load("default") == AccountsSnapshot(
        accumulated=(("default", "acme", 7_000, 50), ("acme", "acme", 7_000, 50), ("default", "default", 2_000, 60)),
        as_of_ms=60,
        tenants=(("acme", 7_000, 50), ("default", 2_000, 60)),
    )
