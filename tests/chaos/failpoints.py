"""Where a process stops or dies: right before a command goes to MongoDB, or right after its answer came.

A failpoint is a text such as ``journal.insert:before:die``: collection and command, when, and ``stop`` (SIGSTOP) or
``die`` (SIGKILL). ``transport.publish`` and ``delivery.ack`` are the two exchanges with the broker; ``work.start`` and
``work.finish`` what a processor asks of its store, which may send many of them as one command. It is armed by writing
it into the file `FILE` of the process' control folder, and goes off once: the file is removed first.
"""

import os
import signal
from collections.abc import Awaitable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from pymongo import monitoring

from hascheduler.errors import InvalidInput

FILE = "failpoint"
WENT_OFF = "went-off"
"""The file that then says what it was about, where that is known: a job's id."""

LEADER_WRITES = (
    "leases.update",
    "journal.insert",
    "schedules.update",
    "jobs.insert",
    "jobs.update",
    "verdicts.insert",
    "accounts.update",
    "replicas.findAndModify",
    "transport.publish",
)
PROCESSOR_WRITES = (
    "processors.update",
    "work.start",
    "jobs.findAndModify",
    "jobs.update",
    "work.finish",
    "delivery.ack",
)


class When(StrEnum):
    BEFORE = "before"
    AFTER = "after"


class Ending(StrEnum):
    STOP = "stop"
    DIE = "die"


_SIGNALS = {Ending.STOP: signal.SIGSTOP, Ending.DIE: signal.SIGKILL}


@dataclass(frozen=True, slots=True)
class Failpoint:
    write: str
    when: When
    ending: Ending

    def __str__(self) -> str:
        return f"{self.write}:{self.when}:{self.ending}"


def parse_failpoint(text: str) -> Failpoint:
    """What is none is an `InvalidInput`."""
    parts = text.split(":")
    try:
        write, when, ending = parts
        return Failpoint(write, When(when), Ending(ending))
    except ValueError:
        raise InvalidInput((FILE,), f"{text[:80]!r}", "such as journal.insert:before:die") from None


class Failpoints:
    """Looks before and after each write whether it is the one that the file names."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def pass_by(self, write: str, when: When, about: str = "") -> None:
        # One look at a folder that is in memory, beside an exchange over the network.
        if not self._file.exists():
            return
        failpoint = parse_failpoint(self._file.read_text().strip())
        if (failpoint.write, failpoint.when) == (write, when):
            self._file.with_name(WENT_OFF).write_text(about)
            self._file.unlink()
            os.kill(os.getpid(), _SIGNALS[failpoint.ending])

    async def around(self, write: str, exchange: Awaitable[Any], about: str = "") -> Any:
        self.pass_by(write, When.BEFORE, about)
        answer = await exchange
        self.pass_by(write, When.AFTER, about)
        return answer


class WatchedCommands(monitoring.CommandListener):
    """Passes by for each command of every client made from now on; the driver calls it on the way."""

    def __init__(self, failpoints: Failpoints) -> None:
        self._failpoints = failpoints
        self._under_way: dict[int, str] = {}

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        collection: Any = event.command.get(event.command_name)
        if isinstance(collection, str):
            write = self._under_way[event.request_id] = f"{collection}.{event.command_name}"
            self._failpoints.pass_by(write, When.BEFORE)

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        write = self._under_way.pop(event.request_id, None)
        if write is not None:
            self._failpoints.pass_by(write, When.AFTER)

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        self._under_way.pop(event.request_id, None)
