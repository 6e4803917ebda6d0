"""Process 1 of a container: the kernel has no default action for it, so a signal that nobody waits for is lost."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.system.local_pods.container import REPOSITORY

pytestmark = pytest.mark.usefixtures("able")

LEAVING = "from hascheduler.cli.run.early_sigterm import exit_on_sigterm; exit_on_sigterm();"


async def _started(code: str) -> tuple[asyncio.subprocess.Process, int]:
    """A Python that is process 1 of a namespace, once it has printed something; its pid outside."""
    process = await asyncio.create_subprocess_exec(
        *("unshare", "--pid", "--fork", "--kill-child=KILL", "--", sys.executable, "-c"),
        f"{code}print('on', flush=True); import time; time.sleep(600)",
        stdout=asyncio.subprocess.PIPE,
        cwd=REPOSITORY,
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"on\n"
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()  # noqa: ASYNC240  # of the kernel
    return process, int(children)


async def test_sigterm_ends_it_before_anything_is_there_that_takes_care_of_signals() -> None:
    process, pid = await _started(LEAVING)
    os.kill(pid, signal.SIGTERM)
    assert await asyncio.wait_for(process.wait(), 30) == 128 + signal.SIGTERM


async def test_without_that_it_would_not_hear_it() -> None:
    process, pid = await _started("")
    os.kill(pid, signal.SIGTERM)
    # It is not even pending: the kernel has thrown it away.
    status = dict(line.split(":\t") for line in Path(f"/proc/{pid}/status").read_text().splitlines())  # noqa: ASYNC240
    assert int(status["SigPnd"], 16) == int(status["ShdPnd"], 16) == 0
    assert process.returncode is None
    process.kill()
    await process.wait()
