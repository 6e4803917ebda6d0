"""What the liveness endpoint of a processor proves that goes by several ids, on real sockets."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hascheduler.daemon.leadership import liveness as liveness_room
from hascheduler.daemon.leadership.liveness import LivenessServer, greets_in_time, wait_for_death_by_connection

HOST, LIMIT_S = "127.0.0.1", 20


@pytest.fixture(autouse=True)
def briskly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness_room, "_PAUSE_MAX_S", 0.01)


class Watched(LivenessServer):
    """Counts those who were greeted, and can lose all its connections."""

    def __init__(self, *ids: str) -> None:
        super().__init__(HOST, 0, *ids)
        self.greeted = asyncio.Semaphore(0)

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.greeted.release()
        await super()._greet(reader, writer)

    def lose_all(self) -> None:
        for connection in list(self._connections):
            connection.transport.abort()


@asynccontextmanager
async def watched(*ids: str) -> AsyncIterator[Watched]:
    server = Watched(*ids)
    await server.bind()
    running = asyncio.create_task(server.run())
    try:
        async with asyncio.timeout(LIMIT_S):
            yield server
    finally:
        running.cancel()
        await asyncio.wait([running])


async def test_all_its_ids_are_greeted_and_no_other() -> None:
    async with watched("p.2", "p.1") as server:
        where = f"{HOST}:{server.port}"
        assert [await greets_in_time(id, where, LIMIT_S) for id in ("p.1", "p.2")] == [True, True]
        assert [await greets_in_time(id, where, LIMIT_S) for id in ("p", "1", "p.", "p.3", "p.2 p")] == [False] * 5


async def test_a_lost_connection_proves_nothing_of_an_id_that_it_still_has() -> None:
    async with watched("p.1") as server:
        death = asyncio.create_task(wait_for_death_by_connection("p.1", f"{HOST}:{server.port}"))
        await server.greeted.acquire()
        server.greet_as("p.2", "p.1")
        for _ in range(3):
            await asyncio.sleep(0)
            server.lose_all()
            await server.greeted.acquire()
        assert not death.done()
        death.cancel()


async def test_an_id_that_it_gave_up_is_dead_to_one_that_has_to_connect_again(monkeypatch: pytest.MonkeyPatch) -> None:
    heard, names = asyncio.Event(), liveness_room._names

    def hearing(greeting: bytes, holder: str) -> bool:
        heard.set()
        return names(greeting, holder)

    monkeypatch.setattr(liveness_room, "_names", hearing)
    async with watched("p.1") as server:
        death = asyncio.create_task(wait_for_death_by_connection("p.1", f"{HOST}:{server.port}"))
        await heard.wait()
        server.greet_as("p.2")
        server.lose_all()
        await death
