"""Children end when they are told to, and when they do not listen."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hascheduler.embedded.children import Daemon, free_port, start_child, start_daemon
from hascheduler.errors import StoreUnavailable


async def test_a_child_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    script = "trap '' TERM; echo ready; while :; do sleep 0.05; done"
    child = await start_child("deaf", ["/bin/sh", "-c", script], tmp_path / "log", environment=os.environ)
    async with asyncio.timeout(10):
        while not child.last_lines(1):  # noqa: ASYNC110  # a log sets no event
            await asyncio.sleep(0.01)
    await child.stop(grace_s=0.1)
    assert await child.wait() == -signal.SIGKILL


def test_no_two_processes_choose_the_same_port_and_none_that_linux_gives_to_an_outgoing_connection() -> None:
    choose = "from hascheduler.embedded.children import free_port; print(*(free_port() for _ in range(50)), flush=True)"
    living = [
        subprocess.Popen([sys.executable, "-c", f"{choose}; input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    chosen = [free_port() for _ in range(50)]
    for process in living:
        assert process.stdout is not None
        chosen += map(int, process.stdout.readline().split())
    for process in living:
        process.communicate(b"\n")
    assert len(set(chosen)) == len(chosen) == 150
    assert max(chosen) < 32_768


ANSWERS = """
import http.server, sys
class Answer(http.server.BaseHTTPRequestHandler):
    asked = 0
    def do_GET(self):
        Answer.asked += 1
        self.send_response(200 if self.path == "/readyz" and Answer.asked > 2 else 503)
        self.end_headers()
    def log_message(self, *_):
        pass
print("it serves", flush=True)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
"""


async def started(folder: Path, program: str, *arguments: str, url: str = "") -> Daemon:
    return await start_daemon(
        "one",
        arguments,
        folder / "one.err",
        environment=os.environ,
        url=url,
        program=[sys.executable, "-c", program],
        output=folder / "one.out",
        folder=folder,
    )


async def test_it_is_ready_when_it_answers_so(tmp_path: Path) -> None:
    port = free_port()
    daemon = await started(tmp_path, ANSWERS, str(port), url=f"http://127.0.0.1:{port}")
    try:
        await daemon.ready()
        assert daemon.running
        assert daemon.output.read_text() == "it serves\n"
    finally:
        await daemon.kill()
    assert not daemon.running


async def test_one_that_ends_is_shown_with_its_last_words(tmp_path: Path) -> None:
    ends = "import os, sys; print('here', os.getcwd()); sys.exit('it can not go on')"
    daemon = await started(tmp_path, ends, url=f"http://127.0.0.1:{free_port()}")
    with pytest.raises(StoreUnavailable, match=r"(?s)one is not ready; its log ends with:.*it can not go on"):
        await daemon.ready()
    assert daemon.output.read_text() == f"here {tmp_path}\n"


async def test_one_that_does_not_answer_in_time_is_not_ready(tmp_path: Path) -> None:
    daemon = await started(tmp_path, "import time; time.sleep(600)", url=f"http://127.0.0.1:{free_port()}")
    with pytest.raises(StoreUnavailable, match="one is not ready"):
        await daemon.ready(0.1)
    assert daemon.running
    assert await daemon.terminate() == -15
    with pytest.raises(ProcessLookupError):
        os.kill(daemon.pid, 0)
    await asyncio.wait_for(daemon.stop(), 10)
