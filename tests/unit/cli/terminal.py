"""Runs the command line on a terminal, as a user sits before it: what is typed, and what is shown."""

import asyncio
import os
import pty
import signal

from tests.warm import warm

_PATIENCE_S = 60
_MAIN = "import sys; sys.argv[0] = 'hascheduler'; from hascheduler.__main__ import main; main()"
_IMPORTED = (
    "hascheduler.__main__",
    "hascheduler.cli.input.documents",
    "hascheduler.cli.input.values",
    "hascheduler.cli.jobs.events",
    "hascheduler.cli.replica",
    "hascheduler.cli.resources.apply",
    "hascheduler.cli.resources.named",
    "hascheduler.cli.schedules.actions",
    "hascheduler.cli.schedules.preview",
    "hascheduler.cli.simulate",
    "httpcore",
    "typer._adapters",
)
"""By the commands that are run here, some of it when they first need it."""


class Terminal:
    """One process on a terminal of 80 columns. Everything that it shows is in ``shown``, with its colours."""

    def __init__(self, *arguments: str, **variables: str) -> None:
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("HASCHEDULER_", "NO_COLOR"))}
        self._ours, theirs = pty.openpty()
        self._process = warm(*_IMPORTED).start(
            _MAIN,
            *arguments,
            environment={**clean, "COLUMNS": "80", "LINES": "40", "TERM": "xterm-256color", **variables},
            descriptors=[theirs] * 3,
        )
        os.close(theirs)
        self.shown = ""

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    async def interrupted(self) -> int:
        self._process.send_signal(signal.SIGINT)
        return await self.ended()

    async def until(self, text: str) -> None:
        async with asyncio.timeout(_PATIENCE_S):
            while text not in self.shown:
                assert await self._read(), f"ended without {text!r}: {self.shown}"

    async def ended(self) -> int:
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
