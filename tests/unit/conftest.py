"""What is under `tests.unit` needs no server: a test that asks for one, starts one or connects to one fails."""

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import psutil
import pytest

_SERVERS = {"mongod", "rabbitmq-server", "beam.smp"}
_FAMILIES = {socket.AF_INET, socket.AF_INET6}


@pytest.fixture(scope="session")
def mongodb_uri() -> str:
    pytest.fail("a unit test has no mongod: put the test into tests/integration or tests/system")


@pytest.fixture(scope="session")
def amqp_url() -> str:
    pytest.fail("a unit test has no RabbitMQ: put the test into tests/integration or tests/system")


class Guard:
    """Sees what Python itself starts and connects to; what uvloop and child processes connect to goes unseen."""

    def __init__(self) -> None:
        self.watching = False
        self.seen: list[str] = []

    def look(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.watching:
            return
        if event == "subprocess.Popen":
            program, words = os.fsdecode(arguments[0]), map(os.fsdecode, arguments[1])
            if Path(program).name in _SERVERS and "--version" not in words:
                self.seen.append(f"starts {program}")
        elif event == "socket.connect" and arguments[0].family in _FAMILIES and _is_foreign(*arguments[1][:2]):
            self.seen.append(f"connects to {arguments[1]!r}")


_guard = Guard()
sys.addaudithook(_guard.look)


@pytest.fixture(autouse=True)
def no_server() -> Iterator[None]:
    _guard.seen.clear()
    _guard.watching = True
    yield
    _guard.watching = False
    assert not _guard.seen, f"a unit test needs no server, but this one {', '.join(_guard.seen)}"


def _is_foreign(host: str, port: int) -> bool:
    """Whether it is another machine's address, or another process listens there that is none of our children."""
    try:
        address = ip_address(host)
    except ValueError:
        return host != "localhost"
    if not (getattr(address, "ipv4_mapped", None) or address).is_loopback:
        return True
    others = _listening(port) - _sockets_of("self")
    return bool(others) and not others <= _sockets_of(*(child.pid for child in psutil.Process().children(True)))


def _listening(port: int) -> set[str]:
    """The inodes of the sockets that listen on that port; none where there is no Linux to ask."""
    tables = [Path(f"/proc/self/net/{name}") for name in ("tcp", "tcp6")]
    rows = [line.split() for table in tables if table.exists() for line in table.read_text().splitlines()[1:]]
    return {row[9] for row in rows if row[3] == "0A" and int(row[1].rpartition(":")[2], 16) == port}


def _sockets_of(*processes: int | str) -> set[str]:
    found = set()
    for process in processes:
        with suppress(OSError):
            for descriptor in Path(f"/proc/{process}/fd").iterdir():
                with suppress(OSError):
                    found.add(os.readlink(descriptor).removeprefix("socket:[").removesuffix("]"))
    return found
