"""Addresses are asked what they are while the database is used, and no connection for that is left."""

import asyncio
from typing import Any

import pytest

from hascheduler.mongo import unreachable


class _SlowToClose:
    """Stands for the driver's client: a member that answers at once, and a close that takes a turn of its own."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.closing = asyncio.Event()
        self.may_close = asyncio.Event()
        self.is_closed = False
        self.admin = self

    async def command(self, _: str) -> dict[str, Any]:
        return {"setName": "rs0", "isWritablePrimary": True}

    async def close(self) -> None:
        self.closing.set()
        await self.may_close.wait()
        self.is_closed = True


async def test_a_client_is_closed_whole_when_the_use_that_it_accompanied_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    client = _SlowToClose()
    monkeypatch.setattr(unreachable, "AsyncMongoClient", lambda *_, **__: client)
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    async def use() -> None:
        await client.closing.wait()
        asyncio.get_running_loop().call_later(0.01, client.may_close.set)

    async with server, asyncio.timeout(10):
        await unreachable.explained(use, f"mongodb://127.0.0.1:{port}/?replicaSet=rs0", {})
    assert client.is_closed
