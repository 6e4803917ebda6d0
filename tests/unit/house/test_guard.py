"""The guard of the unit tests notices a server that is none of the test's own."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.unit.conftest import Guard

_LISTEN = """
import os, socket, sys
if os.fork():
    os._exit(0)
with socket.create_server(("127.0.0.1", 0)) as server:
    print(os.getpid(), server.getsockname()[1], flush=True)
    sys.stdin.read()
"""


@contextmanager
def _foreign_listener() -> Iterator[int]:
    """Its port. Its parent has ended, so it is nobody's child here."""
    with subprocess.Popen(
        [sys.executable, "-c", _LISTEN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        process, port = map(int, parent.stdout.readline().split())
        assert process != parent.pid
        parent.wait()
        yield port


def _connecting(host: str, port: int) -> list[str]:
    guard = Guard()
    with socket.socket() as client:
        guard.connects(client, (host, port))
    return guard.seen


def test_a_listener_of_this_process_and_a_port_where_nobody_listens_are_no_servers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        assert _connecting(*address) == []
    assert _connecting(*address) == []


async def test_each_way_to_connect_is_watched(guard: Guard) -> None:
    with _foreign_listener() as port:
        address = ("127.0.0.1", port)
        socket.create_connection(address).close()
        with socket.socket() as client:
            client.connect_ex(address)
        _, writer = await asyncio.open_connection(*address)
        writer.close()
        await writer.wait_closed()
    assert guard.seen == [f"connects to {address!r}"] * 3
    guard.seen.clear()


def test_the_start_of_a_server_is_noticed(guard: Guard) -> None:
    with pytest.raises(FileNotFoundError):
        subprocess.Popen(["/nowhere/mongod", "--port", "1"])
    subprocess.run([sys.executable, "-c", ""], check=True)
    assert guard.seen == ["starts /nowhere/mongod"]
    guard.seen.clear()
