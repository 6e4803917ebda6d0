"""The guard of the unit tests notices a server that is none of the test's own."""

import socket
import subprocess
import sys

from tests.unit.conftest import Guard

_LISTEN = """
import os, socket, sys
if os.fork():
    os._exit(0)
with socket.create_server(("127.0.0.1", 0)) as server:
    print(os.getpid(), server.getsockname()[1], flush=True)
    sys.stdin.read()
"""


def _seen(event: str, *arguments: object) -> list[str]:
    guard = Guard()
    guard.watching = True
    guard.look(event, arguments)
    return guard.seen


def test_a_listener_of_this_process_and_a_port_where_nobody_listens_are_no_servers() -> None:
    with socket.socket() as client:
        with socket.create_server(("127.0.0.1", 0)) as server:
            address = server.getsockname()
            assert _seen("socket.connect", client, address) == []
        assert _seen("socket.connect", client, address) == []


def test_a_listener_of_a_foreign_process_is_noticed() -> None:
    """Its parent has ended, so it is nobody's child here."""
    with (
        subprocess.Popen(
            [sys.executable, "-c", _LISTEN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as parent,
        socket.socket() as client,
    ):
        assert parent.stdout is not None
        process, port = map(int, parent.stdout.readline().split())
        assert process != parent.pid
        parent.wait()
        assert _seen("socket.connect", client, ("127.0.0.1", port)) == [f"connects to ('127.0.0.1', {port})"]


def test_another_machine_is_noticed() -> None:
    with socket.socket() as client:
        assert _seen("socket.connect", client, ("192.0.2.1", 80)) == ["connects to ('192.0.2.1', 80)"]


def test_the_start_of_a_server_is_noticed() -> None:
    assert _seen("subprocess.Popen", "/opt/mongodb/bin/mongod", [], None, None) == ["starts /opt/mongodb/bin/mongod"]
    assert _seen("subprocess.Popen", sys.executable, [], None, None) == []
