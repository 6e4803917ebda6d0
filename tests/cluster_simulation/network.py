"""What lies between processes: calls take time, may be cut off, and their answers may get lost.

A call is a message to the server, which carries it out whole even if the caller has given up or died by then, and an
answer back. So a caller that hears nothing knows nothing: the call may have been carried out, may never be, or may be
carried out a minute later.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from random import Random
from typing import Any, TypeVar

from hascheduler.dispatch.decisions import Decision, Settlement
from hascheduler.errors import StoreUnavailable
from hascheduler.mirror.changes import Change
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import Batch
from hascheduler.testing.memory.claims import MemoryClaimStore
from hascheduler.testing.memory.stream import MemoryChangeSource, MemoryChangeStream
from tests.cluster_simulation.database import Server
from tests.cluster_simulation.loop import THE_WORLD, SimLoop, current_process

T = TypeVar("T")

CALL_LIMIT_S = 5.0
"""As `hascheduler.mongo.faults.EXCHANGE_LIMIT_S`."""
_LATE_S = 30.0


class Network:
    """Owner of who can't reach whom. Names are those of processes, and ``db`` and ``broker``."""

    def __init__(self, loop: SimLoop, chance: Random) -> None:
        self.loop = loop
        self.chance = chance
        self.is_lossy = False
        """Whether calls and answers get lost or late now and then."""
        self.hung: set[tuple[str, str]] = set()
        """(process, store): whatever it asks of that one store is never answered, while all else works."""
        self._cut: set[tuple[str, str]] = set()
        self._changed = asyncio.Event()

    def cut(self, one: str, other: str) -> None:
        """Nothing gets from ``one`` to ``other``; the other direction is cut by itself."""
        self._cut.add((one, other))
        self._told()

    def mend(self) -> None:
        self._cut.clear()
        self._told()

    def gets_through(self, one: str, other: str) -> bool:
        return (one, other) not in self._cut

    def both_ways(self, one: str, other: str) -> bool:
        return self.gets_through(one, other) and self.gets_through(other, one)

    async def changed(self) -> None:
        await self._changed.wait()

    def delay_s(self, one: str, other: str) -> float | None:
        """How long a message takes; None: it never arrives."""
        if not self.gets_through(one, other):
            return None
        if self.is_lossy and self.chance.random() < 0.03:
            return None if self.chance.random() < 0.5 else self.chance.uniform(0.2, _LATE_S)
        return self.chance.uniform(0.0002, 0.003)

    def _told(self) -> None:
        news, self._changed = self._changed, asyncio.Event()
        news.set()


class Link:
    """One process' way to the database."""

    def __init__(self, network: Network, server: Server, name: str) -> None:
        self.network = network
        self.name = name
        self._server = server

    async def call(self, what: str, operation: Callable[[], Awaitable[T]], *, majority: bool = True) -> T:
        loop, network = self.network.loop, self.network
        answer: asyncio.Future[T] = loop.create_future()
        caller = current_process()
        there_s = network.delay_s(self.name, "db")
        if (self.name, what.partition(".")[0]) in network.hung:
            there_s = None

        async def carried_out() -> None:
            result: Any = None
            error: BaseException | None = None
            try:
                result = await self._server.carry_out(operation, majority=majority)
            except Exception as raised:  # it belongs to the caller
                error = raised
            back_s = network.delay_s("db", self.name)
            if back_s is not None:
                loop.call_in(caller, back_s, _arrive, answer, result, error)

        if there_s is not None:
            loop.call_in(THE_WORLD, there_s, lambda: loop.create_task_in(THE_WORLD, carried_out()))
        try:
            async with asyncio.timeout(CALL_LIMIT_S):
                return await answer
        except TimeoutError:
            raise StoreUnavailable(f"{what}: no answer in time") from None


def _arrive(answer: "asyncio.Future[Any]", result: Any, error: BaseException | None) -> None:
    if answer.done():
        return  # nobody waits any more
    if error is not None:
        answer.set_exception(error)
    else:
        answer.set_result(result)


class Remote:
    """A store as its client sees it: each of its coroutine methods is a call."""

    def __init__(self, store: Any, link: Link, *, w1: Sequence[str] = ()) -> None:
        self._store = store
        self._link = link
        self._w1 = frozenset(w1)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        async def call(*arguments: Any, **options: Any) -> Any:
            what = f"{type(self._store).__name__}.{name}"
            return await self._link.call(what, lambda: method(*arguments, **options), majority=name not in self._w1)

        return call


class RemoteClaims:
    """`hascheduler.ports.ClaimStore`: several calls an entry, so that a part of it may be carried out, and ``w: 1``."""

    def __init__(self, claims: MemoryClaimStore, link: Link) -> None:
        self._claims = claims
        self._link = link

    async def apply(self, decisions: Sequence[Decision], at_ms: WallMs, *, majority: bool) -> list[Settlement]:
        settlements: list[Settlement] = []
        while len(settlements) < len(decisions):
            part = decisions[len(settlements) :][: self._link.network.chance.choice((1, 3, 10, 1000))]
            try:
                settlements += await self._link.call("claims", self._part(part, at_ms, majority), majority=majority)
            except StoreUnavailable:
                return settlements + [Settlement.UNKNOWN] * (len(decisions) - len(settlements))
        return settlements

    def _part(
        self, part: Sequence[Decision], at_ms: WallMs, majority: bool
    ) -> Callable[[], Awaitable[list[Settlement]]]:
        return lambda: self._claims.apply(part, at_ms, majority=majority)


class RemoteSource:
    """`hascheduler.ports.ChangeSource`. While it is not ``flowing`` the stream is open and tells nothing."""

    def __init__(self, source: MemoryChangeSource, link: Link) -> None:
        self._source = source
        self._link = link
        self.flowing = asyncio.Event()
        self.flowing.set()

    async def open(self, resume: Any | None) -> "_RemoteStream":
        return _RemoteStream(await self._link.call("stream.open", lambda: self._source.open(resume)), self)

    async def fetch(self, collection: Any, ids: Sequence[str]) -> Sequence[Change]:
        return await self._link.call("stream.fetch", lambda: self._source.fetch(collection, ids))

    @property
    def link(self) -> Link:
        return self._link


class _RemoteStream:
    def __init__(self, stream: MemoryChangeStream, source: RemoteSource) -> None:
        self._stream = stream
        self._source = source
        self._network = source.link.network
        self._name = source.link.name

    async def next_batch(self, wait_ms: int) -> Batch:
        await self._source.flowing.wait()
        await asyncio.sleep(self._network.chance.uniform(0.0002, 0.004))
        if not self._network.both_ways("db", self._name):
            await asyncio.sleep(self._network.chance.choice((0.05, CALL_LIMIT_S, 20.0)))
            raise StoreUnavailable("the change stream: no answer in time")
        return await self._stream.next_batch(min(wait_ms, 250))

    async def snapshot(self) -> AsyncIterator[Sequence[Change]]:
        # Part by part, each of which a majority has: what may be taken back yet is in no snapshot.
        parts = self._stream.snapshot()
        while changes := await self._source.link.call("stream.snapshot", lambda: anext(parts, None)):
            yield changes

    async def close(self) -> None:
        await self._stream.close()
