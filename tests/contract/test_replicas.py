"""What replicas leave for others: `ReplicaBoard`, `FailoverStore` and `AccountStore`."""

import time
from typing import Any

import pytest

from hascheduler.dispatch.accounts import AccountsSnapshot
from hascheduler.errors import InvalidInput
from hascheduler.model.collection import Collection
from hascheduler.ports import FAILOVERS_MAX
from hascheduler.schema.failover import Cause, encode_failover
from hascheduler.schema.noun import read_document
from hascheduler.schema.replica import ReplicaStatus
from tests.contract.backends import Backend, on
from tests.factories import make_failover, make_replica

# Not mongomock: it lacks $replaceWith, which an account is made of.
pytestmark = on("memory", "pymongo", "motor")


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
