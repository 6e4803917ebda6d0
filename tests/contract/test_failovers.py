"""`FailoverStore`: one report a term, the latest first, and a bounded number of them."""

from typing import Any

import pytest

from hascheduler.model.collection import Collection
from hascheduler.ports import FAILOVERS_MAX
from hascheduler.schema.failover import Cause, encode_failover
from tests.contract.backends import Backend, on
from tests.factories import NOW, make_failover

pytestmark = on("memory", "pymongo", "motor")


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


async def test_a_report_of_0_2_0_is_read_without_its_gap(backend: Backend) -> None:
    theirs = {
        "_id": {"shard": "default", "term": 8}, "v": 1, "holder": "r2", "cause": "died", "detected_at_ms": NOW,
        "deciding_at_ms": NOW + 140, "first_decision_at_ms": NOW + 150, "ended": "caught_up", "fires_late": 3,
    }  # fmt: skip
    await backend.behind.insert(Collection.FAILOVERS, theirs)
    assert await backend.failovers.newest("default", 1) == [make_failover(gap_ms=None)]


async def test_a_report_repeated_after_a_lost_answer_is_stored_once(backend: Backend) -> None:
    await backend.failovers.save(make_failover(first_decision_at_ms=None))
    await backend.failovers.save(make_failover())
    assert await backend.failovers.newest("default", 9) == [make_failover()]


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
