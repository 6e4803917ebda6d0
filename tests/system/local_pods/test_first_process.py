"""Process 1 of a container: the kernel has no default action for it, so a signal that nobody waits for is lost."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.system.local_pods.container import REPOSITORY

pytestmark = pytest.mark.usefixtures("able")


async def test_sigterm_ends_it_before_anything_is_there_that_takes_care_of_signals() -> None:
    process = await asyncio.create_subprocess_exec(
        *("unshare", "--pid", "--fork", "--kill-child=KILL", "--", sys.executable, "-c"),
        "from hascheduler.cli.run.early_sigterm import exit_on_sigterm; exit_on_sigterm();"
        "print('on', flush=True); import time; time.sleep(600)",
        stdout=asyncio.subprocess.PIPE,
        cwd=REPOSITORY,
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"on\n"
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()  # noqa: ASYNC240  # of the kernel
    os.kill(int(children), signal.SIGTERM)
    assert await asyncio.wait_for(process.wait(), 30) == 128 + signal.SIGTERM
