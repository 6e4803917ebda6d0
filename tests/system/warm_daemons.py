"""Replicas and processors that begin with everything imported: to import it takes most of what a start takes.

They are real processes, each with an id, signals and an end of its own; only ``python -m hascheduler`` is not gone
through. Tests of that, of other releases and of what a user starts begin with an interpreter of their own.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import cast

from hascheduler.embedded.children import Daemon
from tests.warm import WarmProcess, warm

_MAIN = "from hascheduler.__main__ import main; main()"
_IMPORTED = (
    "hascheduler.__main__",
    "hascheduler.cli.run.whole_system",
    "hascheduler.assembly",
    "hascheduler.assembly_api",
    "hascheduler.assembly_processor",
    "hascheduler.api.app",
)


class _Forked:
    """`asyncio.subprocess.Process`, as far as a `Child` uses it."""

    def __init__(self, process: WarmProcess) -> None:
        self._process = process
        self._ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().add_reader(process.fileno(), self._end)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._ended.result() if self._ended.done() else None

    def send_signal(self, signal: int) -> None:
        self._process.send_signal(signal)

    async def wait(self) -> int:
        return await asyncio.shield(self._ended)

    def _end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._process.fileno())
        self._ended.set_result(self._process.wait())


async def start_warm_daemon(
    name: str, arguments: Sequence[str], log: Path, *, environment: Mapping[str, str], url: str, output: Path
) -> Daemon:
    """As `start_daemon`."""
    with ExitStack() as opened:
        nothing = os.open(os.devnull, os.O_RDONLY)
        opened.callback(os.close, nothing)
        outputs = [opened.enter_context(path.open("ab")).fileno() for path in (output, log)]
        process = warm(*_IMPORTED).start(_MAIN, *arguments, environment=environment, descriptors=[nothing, *outputs])
    return Daemon(name, cast(asyncio.subprocess.Process, _Forked(process)), log, output, url)
