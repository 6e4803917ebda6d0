"""`FailoverStore`: one report a term, the latest first, and a bounded number of them."""

from typing import Any

import pytest

from hascheduler.model.collection import Collection
from hascheduler.model.documents.failover import decode_failover, encode_failover
from hascheduler.model.failover import Cause, FailoverEnd
from hascheduler.ports import FAILOVERS_MAX
from tests.contract.backends import Backend, on
from tests.factories import make_failover

pytestmark = on("memory", "pymongo", "motor")


async def terms(backend: Backend, limit: int = FAILOVERS_MAX, shard: str = "default") -> list[int]:
    return [failover.term for failover in await backend.failovers.newest(shard, limit)]


async def test_reports_are_read_back_with_the_latest_first(backend: Backend) -> None:
    bare = make_failover(
        9, previous_term=None, previous_holder=None, last_sign_at_ms=None, last_decision_at_ms=None,
        deciding_at_ms=None, first_decision_at_ms=None, first_dispatch_at_ms=None, ended=FailoverEnd.TERM_ENDED,
    )  # fmt: skip
    saved = [make_failover(8), bare, make_failover(10)]
    for failover in saved:
        await backend.failovers.save(failover)
    assert await backend.failovers.newest("default", 9) == saved[::-1]
    assert await terms(backend, limit=2) == [10, 9]
    assert await terms(backend, shard="other") == []


async def test_a_leader_that_stood_still_is_a_lapsed_one_to_replicas_that_do_not_know_the_word(
    backend: Backend,
) -> None:
    still = make_failover(cause=Cause.STOOD_STILL)
    await backend.failovers.save(still)
    assert await backend.failovers.newest("default", 1) == [still]
    stored = encode_failover(still)
    assert stored["cause"] == "lapsed"
    assert decode_failover({name: value for name, value in stored.items() if name != "stood_still"}) == make_failover(
        cause=Cause.LAPSED
    )


async def test_a_report_repeated_after_a_lost_answer_is_stored_once(backend: Backend) -> None:
    await backend.failovers.save(make_failover(last_decision_at_ms=None))
    await backend.failovers.save(make_failover())
    assert await backend.failovers.newest("default", 9) == [make_failover()]


async def test_the_newest_reports_of_each_shard_are_kept(backend: Backend) -> None:
    await backend.failovers.save(make_failover(1, shard="a"))
    for term in (*range(2, FAILOVERS_MAX + 4), 1):
        await backend.failovers.save(make_failover(term))
    assert await terms(backend, 1_000) == list(range(FAILOVERS_MAX + 3, 3, -1))
    assert await terms(backend, shard="a") == [1]


@pytest.mark.parametrize(
    "broken",
    [
        {"cause": "fate"}, {"cause": None}, {"ended": 7}, {"holder": ""}, {"detected_at_ms": "now"}, {"v": 2},
        {"fires_late": -1}, {"previous_term": "one"}, {"first_decision_at_ms": 1.5},
    ],
)  # fmt: skip
async def test_a_malformed_report_is_left_out(backend: Backend, broken: dict[str, Any]) -> None:
    await backend.failovers.save(make_failover(7))
    await backend.behind.insert(Collection.FAILOVERS, {**encode_failover(make_failover(8)), **broken})
    assert await terms(backend) == [7]
