"""A daemon is waited for until it answers that it is ready, and its last words say why it is not."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from hascheduler.embedded.children import free_port
from hascheduler.embedded.daemons import Daemon, start_daemon
from hascheduler.errors import StoreUnavailable

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
