"""The readiness probe of MongoDB's pods where there is no mongod."""

import asyncio
import socket

from hascheduler.embedded.children import free_port
from tests.manifests.rendering import ROOT

_PROBE = ROOT / "k8s/base/mongodb/member-ready"


async def _probe(port: int) -> int:
    child = await asyncio.create_subprocess_exec(
        "bash", str(_PROBE), str(port), stderr=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL
    )
    return await asyncio.wait_for(child.wait(), 20)


async def test_a_port_where_nobody_listens_is_not_ready() -> None:
    assert await _probe(free_port()) != 0


async def test_a_server_that_answers_with_something_else_is_not_ready() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(20)
        probe = asyncio.create_task(_probe(server.getsockname()[1]))
        connection, _ = await asyncio.to_thread(server.accept)
        with connection:
            connection.sendall(b"\x14\0\0\0HTTP/1.1 400 Bad")
        assert await probe != 0
