"""A follower learns of every version of a lease that no stream tells of, and of none that is older than its own."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from hascheduler.daemon.leadership.lease_poller import LeasePoller
from hascheduler.model.leadership import LeaseRecord
from tests.factories import make_lease


class Watched:
    """What a `LeasePoller` reads of a `LeaseStore`, and what its `Leader` knows: both set by hand."""

    def __init__(self) -> None:
        self.stored: LeaseRecord | None = None
        self.lease: LeaseRecord | None = None
        self.passed_on: list[LeaseRecord | None] = []
        self.news = asyncio.Event()
        self.meanwhile: Callable[[], None] = lambda: None
        self.leads = False
        self._asked = asyncio.Event()
        itself: Any = self
        self.watch = LeasePoller(itself, itself, name="default", retry_period_ms=1, seen=self._seen)

    @property
    def in_term(self) -> bool:
        self._asked.set()
        return self.leads

    async def turns(self, count: int) -> None:
        """Until the loop has asked so many times more whether this replica leads."""
        for _ in range(count):
            self._asked.clear()
            await self._asked.wait()

    async def get(self, shard: str) -> LeaseRecord | None:
        assert shard == "default"
        stored = self.stored
        self.meanwhile()
        return stored

    def _seen(self, lease: LeaseRecord | None) -> None:
        self.passed_on.append(lease)
        self.lease = lease
        self.news.set()


@pytest.fixture
def watched() -> Watched:
    return Watched()


async def test_every_version_is_passed_on_once(watched: Watched) -> None:
    versions = [None, make_lease("r1"), make_lease("r1", renewals=1), make_lease("", renewals=2), None]
    for watched.stored in versions:
        for _ in range(3):
            await watched.watch.look()
    assert watched.passed_on == versions


async def test_an_answer_that_a_write_of_our_own_has_overtaken_is_dropped(watched: Watched) -> None:
    mine = make_lease("me", term=2)
    watched.meanwhile = lambda: setattr(watched, "lease", mine)
    await watched.watch.look()
    assert watched.passed_on == []
    watched.stored = mine
    await watched.watch.look()
    assert watched.passed_on == [mine]


async def test_a_leader_does_not_poll_and_starts_over_after_its_term(watched: Watched) -> None:
    watched.stored = make_lease("r1")
    running = asyncio.create_task(watched.watch.run())
    async with asyncio.timeout(10):
        await watched.news.wait()
        watched.leads = True
        watched.stored = make_lease("r2", term=2)
        await watched.turns(3)
        assert watched.passed_on == [make_lease("r1")]
        watched.stored = make_lease("r1")
        watched.leads = False
        watched.news.clear()
        await watched.news.wait()
    running.cancel()
    assert watched.passed_on == [make_lease("r1"), make_lease("r1")]
