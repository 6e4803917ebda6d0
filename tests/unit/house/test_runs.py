"""A run is the same wherever it is started; its guard notices foreign servers; warm programs are processes."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.unit.conftest import Guard
from tests.warm import Warm

pytestmark = pytest.mark.slow

# Wherever it is started

ROOT = Path(__file__).parents[3]
_TEST = """
import os, signal, subprocess, sys

def test_it() -> None:
    told = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    assert subprocess.run([sys.executable, "-c", told], capture_output=True, text=True).stdout == "True\\n"
    assert not {name for name in os.environ if name in ("COLUMNS", "TZ", "HASCHEDULER_URL")}
"""


def test_in_the_background_of_a_shell_and_of_a_user(tmp_path: Path) -> None:
    test = tmp_path / "test_it.py"
    test.write_text(_TEST)
    plugins = ["-p", "no:cacheprovider", "-p", "tests.surroundings", "-p", "no:asyncio", "-p", "no:schemathesis"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugins, f"--rootdir={tmp_path}", "--config-file=/dev/null", str(test)],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "20", "TZ": "Asia/Kathmandu", "HASCHEDULER_URL": "http://127.0.0.1:1"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),  # as a shell does
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr


# Servers

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


# Warm programs


@pytest.fixture(scope="module")
def warm() -> Iterator[Warm]:
    kept = Warm("colorsys")
    yield kept
    kept.close()


def test_what_is_imported_is_there_and_each_program_has_its_own(warm: Warm) -> None:
    program = "import os, sys; print('colorsys' in sys.modules, hasattr(sys, 'mine'), os.getpid()); sys.mine = 1"
    first, second = (warm.run(program).stdout.split() for _ in range(2))
    assert first[:2] == second[:2] == ["True", "False"]
    assert len({first[2], second[2], str(os.getpid())}) == 3


def test_outputs_status_and_environment_are_those_of_the_program(warm: Warm) -> None:
    said = {"SAID": "yes", "PYTHONUTF8": "1"}
    ended = warm.run(
        "import os, sys; print(dict(os.environ)); print('ä', file=sys.stderr); sys.exit(7)", environment=said
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (7, f"{said}\n", "ä\n")


def test_a_signal_ends_it_and_the_status_says_so(warm: Warm) -> None:
    told, tells = os.pipe()
    process = warm.start(
        "import os, time; os.write(1, b'x'); time.sleep(600)",
        environment=os.environ,
        descriptors=[sys.__stderr__.fileno() if sys.__stderr__ else 2, tells, tells],
    )
    os.close(tells)
    assert os.read(told, 1) == b"x"
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert os.read(told, 1) == b"", "nothing holds its output"
    os.close(told)
