"""`BucketStore`: one bucket a tenant, which starts full, refills by the database's clock, and gives each token once."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hascheduler.model.collection import Collection
from hascheduler.schema.definition import RateLimit
from tests.contract.backends import Backend, on

pytestmark = on("memory", "pymongo", "motor")

DAY_MS = 86_400_000
THREE_A_DAY = RateLimit(count=3, per_ms=DAY_MS)
LONG_AGO = datetime(1960, 1, 1, tzinfo=UTC)
FAR_AHEAD = datetime.now(UTC) + timedelta(days=365)


async def put(backend: Backend, level: int, at: datetime, limit: RateLimit = THREE_A_DAY, tenant: str = "acme") -> None:
    document: dict[str, Any] = {"level": level, "count": limit.count, "per_ms": limit.per_ms, "at": at, "taken": True}
    await backend.behind.insert(Collection.BUCKETS, {"_id": tenant, **document})


async def stored(backend: Backend) -> dict[str, Any]:
    # A write that waits for the majority: what was written before it can be read then.
    await backend.behind.insert(Collection.DEFINITIONS, {"_id": "a later write"})
    document = await backend.behind.find(Collection.BUCKETS, "acme")
    assert document is not None
    return dict(document)


async def test_a_bucket_begins_full_and_gives_all_tokens_or_none(backend: Backend) -> None:
    assert await backend.buckets.take("acme", THREE_A_DAY, 2) == 0
    assert await backend.buckets.take("acme", THREE_A_DAY, 2) > 0
    assert await backend.buckets.take("acme", THREE_A_DAY, 1) == 0
    assert await backend.buckets.take("acme", THREE_A_DAY, 1) > 0
    assert await backend.buckets.take("other", THREE_A_DAY, 3) == 0, "each tenant has its own"


async def test_an_empty_bucket_returns_the_wait_until_it_holds_enough(backend: Backend) -> None:
    assert await backend.buckets.take("acme", THREE_A_DAY, 3) == 0
    one_in_ms = await backend.buckets.take("acme", THREE_A_DAY, 1)
    assert DAY_MS // 3 - 600_000 < one_in_ms <= DAY_MS // 3
    all_in_ms = await backend.buckets.take("acme", THREE_A_DAY, 3)
    assert DAY_MS - 600_000 < all_in_ms <= DAY_MS


async def test_concurrent_takes_get_as_many_tokens_as_there_are(backend: Backend) -> None:
    answers = await asyncio.gather(*(backend.buckets.take("acme", THREE_A_DAY, 1) for _ in range(20)))
    assert answers.count(0) == 3


async def test_a_bucket_refills_with_time_but_never_beyond_full(backend: Backend) -> None:
    await put(backend, 0, LONG_AGO)
    assert await backend.buckets.take("acme", THREE_A_DAY, 3) == 0
    assert await backend.buckets.take("acme", THREE_A_DAY, 1) > 0


async def test_the_largest_limit_fills_without_overflow(backend: Backend) -> None:
    largest = RateLimit(count=1_000_000, per_ms=7 * DAY_MS)
    await put(backend, 0, LONG_AGO, largest)
    assert await backend.buckets.take("acme", largest, 1_000_000) == 0
    assert await backend.buckets.take("acme", largest, 1_000_000) > 0


async def test_a_clock_that_went_back_adds_nothing_and_refilling_continues_from_there(backend: Backend) -> None:
    await put(backend, DAY_MS, FAR_AHEAD)
    assert await backend.buckets.take("acme", THREE_A_DAY, 1) == 0
    assert await backend.buckets.take("acme", THREE_A_DAY, 1) > 0
    assert (await stored(backend))["at"].replace(tzinfo=UTC) < FAR_AHEAD


@pytest.mark.parametrize("other", [RateLimit(count=5, per_ms=DAY_MS), RateLimit(count=3, per_ms=2 * DAY_MS)])
async def test_with_another_limit_a_bucket_starts_full(backend: Backend, other: RateLimit) -> None:
    assert await backend.buckets.take("acme", THREE_A_DAY, 3) == 0
    assert await backend.buckets.take("acme", other, other.count) == 0
    assert await backend.buckets.take("acme", other, 1) > 0
