"""What is under `tests.unit` needs no server: a test that asks for one, starts one or connects to one fails."""

import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import wraps
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from weakref import WeakSet

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
    """Sees what Python itself starts and connects to; what uvloop and child processes connect to goes unseen.

    No audit hook, which costs each `id()` of the process a call.
    """

    def __init__(self) -> None:
        self.seen: list[str] = []
        self._bound: WeakSet[socket.socket] = WeakSet()

    def starts(self, command: Any) -> None:
        program, *words = map(os.fsdecode, [command] if isinstance(command, str | bytes | os.PathLike) else command)
        if Path(program).name in _SERVERS and "--version" not in words:
            self.seen.append(f"starts {program}")

    def binds(self, server: socket.socket) -> None:
        self._bound.add(server)

    def connects(self, client: socket.socket, address: Any) -> None:
        if client.family in _FAMILIES and not self._listens(*address[:2]) and _is_foreign(*address[:2]):
            self.seen.append(f"connects to {address!r}")

    def _listens(self, host: str, port: int) -> bool:
        """Whether a socket that this process bound listens there: known without the kernel's table of all sockets."""
        return any(_is_listening(each) and each.getsockname()[:2] == (host, port) for each in list(self._bound))


@pytest.fixture(scope="session")
def guard() -> Iterator[Guard]:
    guard = Guard()
    with pytest.MonkeyPatch.context() as patch:
        _call_first(patch, subprocess.Popen, "__init__", lambda _, command, *rest, **options: guard.starts(command))
        _call_first(patch, socket.socket, "bind", lambda server, _: guard.binds(server))
        for name in ("connect", "connect_ex"):
            _call_first(patch, socket.socket, name, guard.connects)
        yield guard


@pytest.fixture(autouse=True)
def no_server(guard: Guard) -> Iterator[None]:
    guard.seen.clear()
    yield
    assert not guard.seen, f"a unit test needs no server, but this one {', '.join(guard.seen)}"


def _call_first(patch: pytest.MonkeyPatch, owner: type, name: str, look: Callable[..., None]) -> None:
    original = getattr(owner, name)

    @wraps(original)
    def watched(*arguments: Any, **options: Any) -> Any:
        look(*arguments, **options)
        return original(*arguments, **options)

    patch.setattr(owner, name, watched)


def _is_listening(bound: socket.socket) -> bool:
    return bound.fileno() >= 0 and bound.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) != 0


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
