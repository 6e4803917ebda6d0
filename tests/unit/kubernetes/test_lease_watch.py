"""A follower learns of every version of a lease that no stream tells of, and of none that is older than its own."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from hascheduler.daemon.leadership.leader import Leader
from hascheduler.daemon.leadership.lease_poller import LeasePoller
from hascheduler.model.leadership import LeaseRecord
from tests.factories import make_lease


class LeaseInHand:
    """Of a `LeaseStore` the reading, of a `Leader` what it knows: both set by hand."""

    def __init__(self) -> None:
        self.stored: LeaseRecord | None = None
        self.lease: LeaseRecord | None = None
        self._in_term = False
        self._asked = asyncio.Event()
        self.meanwhile: Callable[[], Awaitable[None]] | None = None

    @property
    def in_term(self) -> bool:
        self._asked.set()
        return self._in_term

    @in_term.setter
    def in_term(self, in_term: bool) -> None:
        self._in_term = in_term

    async def turns(self, count: int) -> None:
        """Until the loop has asked so many times more whether this replica leads."""
        for _ in range(count):
            self._asked.clear()
            await self._asked.wait()

    async def get(self, shard: str) -> LeaseRecord | None:
        assert shard == "default"
        stored = self.stored
        if self.meanwhile is not None:
            await self.meanwhile()
        return stored


class Watching:
    def __init__(self) -> None:
        self.hand = LeaseInHand()
        self.told: list[LeaseRecord | None] = []
        self.watch = LeasePoller(
            cast(Any, self.hand),
            cast(Leader, self.hand),
            name="default",
            retry_period_ms=1,
            seen=self._tell,
        )
        self.news = asyncio.Event()

    def _tell(self, lease: LeaseRecord | None) -> None:
        self.told.append(lease)
        self.hand.lease = lease
        self.news.set()


@pytest.fixture
def watching() -> Watching:
    return Watching()


async def test_every_version_is_passed_on_once(watching: Watching) -> None:
    versions = [None, make_lease("r1"), make_lease("r1", renewals=1), make_lease("", renewals=2), None]
    for version in versions:
        watching.hand.stored = version
        for _ in range(3):
            await watching.watch.poll()
    assert watching.told == versions


async def test_an_answer_that_a_write_of_our_own_has_overtaken_is_dropped(watching: Watching) -> None:
    async def won() -> None:
        watching.hand.lease = make_lease("me", term=2)

    watching.hand.stored, watching.hand.meanwhile = None, won
    await watching.watch.poll()
    assert watching.told == []
    watching.hand.stored, watching.hand.meanwhile = make_lease("me", term=2), None
    await watching.watch.poll()
    assert watching.told == [make_lease("me", term=2)]


async def test_a_leader_does_not_poll_and_starts_over_after_its_term(watching: Watching) -> None:
    watching.hand.stored = make_lease("r1")
    running = asyncio.create_task(watching.watch.run())
    async with asyncio.timeout(10):
        await watching.news.wait()
        watching.hand.in_term = True
        watching.hand.stored = make_lease("r2", term=2)
        await watching.hand.turns(3)
        assert watching.told == [make_lease("r1")]
        watching.hand.stored = make_lease("r1")
        watching.hand.in_term = False
        watching.news.clear()
        await watching.news.wait()
    running.cancel()
    assert watching.told == [make_lease("r1"), make_lease("r1")]
