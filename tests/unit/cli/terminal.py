"""Runs the command line on a terminal, as a user sits before it: what is typed, and what is shown."""

import asyncio
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
_PATIENCE_S = 60


class Terminal:
    """One process on a terminal of 80 columns. Everything that it shows is in ``shown``, with its colours."""

    def __init__(self, *arguments: str, **variables: str) -> None:
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("HASCHEDULER_", "NO_COLOR"))}
        self._ours, theirs = pty.openpty()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "hascheduler", *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=hear_ctrl_c,  # noqa: PLW1509  # nothing that a thread may hold is touched
            cwd=ROOT,
            env={**clean, "COLUMNS": "80", "LINES": "40", "TERM": "xterm-256color", **variables},
        )
        os.close(theirs)
        self.shown = ""

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    async def interrupted(self) -> int:
        """Ctrl-C, and the status."""
        self._process.send_signal(signal.SIGINT)
        return await self.ended()

    async def until(self, text: str) -> None:
        """Reads until ``text`` was shown."""
        async with asyncio.timeout(_PATIENCE_S):
            while text not in self.shown:
                assert await self._read(), f"ended without {text!r}: {self.shown}"

    async def ended(self) -> int:
        """Reads what is left; the status."""
        async with asyncio.timeout(_PATIENCE_S):
            while await self._read():
                pass
            status = await asyncio.to_thread(self._process.wait)
        os.close(self._ours)
        return status

    async def _read(self) -> bool:
        try:
            read = await asyncio.to_thread(os.read, self._ours, 65_536)
        except OSError:  # how Linux says that the other side was closed
            return False
        self.shown += read.decode(errors="replace")
        return bool(read)


def hear_ctrl_c() -> None:
    """A job in the background of a shell does not hear Ctrl-C, and neither would its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
