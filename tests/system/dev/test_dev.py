"""`hascheduler dev` with a user's own module: what is printed, changed, broken, killed, and kept."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from hascheduler.client import AsyncScheduler
from hascheduler.embedded.children import free_port
from tests.system.terminal import Printing

LIMIT_S = 120

SHOP = """
import logging
from hascheduler.processor import Handlers
handlers = Handlers()
@handlers.handler("sell")
async def sell(job):
    logging.getLogger(__name__).info("version %s", {version})
    if job.payload == "bad":
        raise ValueError("none left\\nat all")
"""


async def test_a_newcomers_module_is_run_changed_broken_and_mended(
    tmp_path: Path, database_name: str, mongodb_uri: str
) -> None:
    (tmp_path / "shop.py").write_text(SHOP.format(version=1))
    (tmp_path / "queue.py").write_text("raise ImportError('this is no library')")
    (tmp_path / "processors").mkdir()
    (tmp_path / "processors/__init__.py").touch()
    options = ("--reload", "--folder", "run", "--port", str(free_port()), "--replicas", "1", "--processors", "1")
    dev = Printing(
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "hascheduler", "dev", "shop", *options, "--transport", "mongo"),
            cwd=tmp_path,
            env={**os.environ, "HASCHEDULER_MONGODB_URI": mongodb_uri, "HASCHEDULER_DATABASE": database_name},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        ),
        LIMIT_S,
    )
    try:
        pid = int((await dev.prints(r"replica-1 +(\d+)"))[1])
        url = (await dev.prints(r"export HASCHEDULER_URL=(\S+)\nexport HASCHEDULER_TRANSPORT=mongo"))[1]
        async with AsyncScheduler(url) as scheduler:
            await scheduler.submit("sell", "shoe")
            await dev.prints(r"(?s)processor-1 .*version 1 .*attempt_finished .*definition=sell .*state=succeeded")
            (tmp_path / "shop.py").write_text(SHOP.format(version=2))
            await dev.prints(r"shop\.py has changed")
            await scheduler.submit("sell", "bad")
            await dev.prints(r"version 2 ")
            await dev.prints(r"attempt_finished .*error='ValueError: none left' .*state=failed")
            (tmp_path / "shop.py").write_text("import nothing")
            # The processor's log and what `dev` says of it come in either order.
            broken = r"shop\.py:1: ModuleNotFoundError: No module named 'nothing'\n"
            waits = "processor-1 waits for a change"
            await dev.prints(rf"(?s){broken}.*{waits}|{waits}.*{broken}")
            os.kill(pid, signal.SIGKILL)
            await dev.prints(r"replica-1 ended with -9 and starts again in 0\.\d s; see run/logs/replica-1\.log")
            (tmp_path / "shop.py").write_text(SHOP.format(version=3))
            await scheduler.submit("sell", "boot")
            await dev.prints(r"version 3 ")
        dev.process.send_signal(signal.SIGINT)
        async with asyncio.timeout(LIMIT_S):
            assert await dev.process.wait() == 130
    finally:
        if dev.process.returncode is None:
            dev.process.kill()
