"""What a person sees who types commands: what one has printed at its end, or one that goes on has so far."""

import asyncio
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path


async def typed(*command: str, folder: Path, environment: Mapping[str, str], limit_s: float) -> tuple[int | None, str]:
    """The status and the output of a command that finds ours on its path."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    process = await asyncio.create_subprocess_exec(
        *command, cwd=folder, env={**os.environ, **environment, "PATH": path, "COLUMNS": "120"},
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    async with asyncio.timeout(limit_s):
        read, _ = await process.communicate()
    return process.returncode, read.decode()


class Printing:
    """A process that goes on; its standard output is a pipe."""

    def __init__(self, process: asyncio.subprocess.Process, limit_s: float) -> None:
        self.process = process
        self.limit_s = limit_s
        self.text = ""

    async def prints(self, pattern: str) -> re.Match[str]:
        """Wait for a text after the last one that was waited for."""
        assert self.process.stdout is not None
        async with asyncio.timeout(self.limit_s):
            while not (found := re.search(pattern, self.text)):
                read = await self.process.stdout.read(65_536)
                assert read, self.text
                self.text += read.decode()
        self.text = self.text[found.end() :]
        return found
