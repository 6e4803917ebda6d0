"""Children end when they are told to, and when they do not listen."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from hascheduler.embedded.children import free_port, start_child


async def test_output_goes_to_the_log_and_its_end_can_be_read(tmp_path: Path) -> None:
    child = await start_child("echo", ["/bin/sh", "-c", "echo one; echo two >&2"], tmp_path / "x/log", environment={})
    assert await child.wait() == 0
    assert child.last_lines(1) == "two"
    assert not child.running


async def test_a_child_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    script = "trap '' TERM; echo ready; while :; do sleep 0.05; done"
    child = await start_child("deaf", ["/bin/sh", "-c", script], tmp_path / "log", environment=os.environ)
    async with asyncio.timeout(10):
        while not child.last_lines(1):  # noqa: ASYNC110  # a log sets no event
            await asyncio.sleep(0.01)
    await child.stop(grace_s=0.1)
    assert await child.wait() == -signal.SIGKILL


async def test_a_child_has_a_session_of_its_own(tmp_path: Path) -> None:
    child = await start_child("sleep", ["sleep", "60"], tmp_path / "log", environment=os.environ)
    assert os.getsid(child.pid) == child.pid
    await child.stop()
    await child.stop()  # again is harmless


def test_a_free_port_is_none_that_linux_gives_to_an_outgoing_connection() -> None:
    for _ in range(250):
        port = free_port()
        assert port < 32_768
        with socket.create_server(("127.0.0.1", port)):
            assert free_port() != port


def test_no_two_processes_choose_the_same_port() -> None:
    choose = "from hascheduler.embedded.children import free_port; print(*(free_port() for _ in range(50)), flush=True)"
    living = [
        subprocess.Popen([sys.executable, "-c", f"{choose}; input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(5)
    ]
    chosen = [free_port() for _ in range(50)]
    for process in living:
        assert process.stdout is not None
        chosen += map(int, process.stdout.readline().split())
    for process in living:
        process.communicate(b"\n")
    assert len(set(chosen)) == len(chosen) == 300
