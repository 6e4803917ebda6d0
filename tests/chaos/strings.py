"""Strings on a process: it stops or dies at a write, its clocks are wrong, its stream is late, its loop hangs.

Each is pulled by a file in the control folder of the process, which it looks at while it runs."""

import asyncio
import json
import os
import signal
import time
from collections import deque
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from pymongo import monitoring

from hascheduler.clock import SystemClock
from hascheduler.model.values.instants import MonoMs, WallMs
from hascheduler.ports import Batch
from hascheduler.schema.replica import ReplicaStatus
from tests.mutants.everywhere import Around

CONTROL = "CHAOS_CONTROL"
"""The folder by whose files it is troubled while it runs."""
SINK = "CHAOS_EFFECTS"
"""The file that its handlers append to."""
NAME = "CHAOS_NAME"
"""As whom they do."""
BUG = "CHAOS_BUG"
"""What is planted in it, if anything is."""
LOG_TASKS = signal.SIGUSR1
"""To write to its log where each of its tasks waits."""


FAILPOINT = "failpoint"
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


class Failpoints:
    """Looks before and after each write whether it is the one that the file names."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def pass_by(self, write: str, when: When, about: str = "") -> None:
        # One check of a folder that is in memory, beside an exchange over the network.
        if not self._file.exists():
            return
        armed, at, ending = self._file.read_text().split(":")
        if (armed, at) == (write, when):
            self._file.with_name(WENT_OFF).write_text(about)
            self._file.unlink()
            os.kill(os.getpid(), _SIGNALS[Ending(ending)])

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


CLOCK = "clock"
_POLL_EVERY_S = 0.05


class SkewedClock:
    """`hascheduler.ports.Clock`. The file holds ``{"offset_ms": …, "rate": …}``: so much is added to the wall clock,
    and both clocks run at that rate from the moment on when it is first read. Without a file the wall clock is right,
    as one that has been set; the monotonic one, which can't be, keeps what it has gained."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._true = SystemClock()
        self._read_at_s = 0.0
        self._text = ""
        self._offset_ms = 0
        self._rate = 1.0
        self._gained_ms = self._wall_gained_ms = 0.0
        self._since_ms = self._true.mono_ms()

    def wall_ms(self) -> WallMs:
        self._read()
        return WallMs(self._true.wall_ms() + self._offset_ms + round(self._wall_gained_ms + self._ahead_ms()))

    def mono_ms(self) -> MonoMs:
        self._read()
        return MonoMs(self._true.mono_ms() + round(self._gained_ms + self._ahead_ms()))

    def _ahead_ms(self) -> float:
        """Since the file last changed."""
        return (self._true.mono_ms() - self._since_ms) * (self._rate - 1)

    def _read(self) -> None:
        now_s = time.monotonic()
        if now_s - self._read_at_s < _POLL_EVERY_S:
            return
        self._read_at_s = now_s
        try:
            text = self._file.read_text()
        except FileNotFoundError:
            text = "{}"
        if text == self._text:
            return
        wrong = json.loads(text)
        # A monotonic clock never goes back.
        self._gained_ms += self._ahead_ms()
        self._wall_gained_ms = self._wall_gained_ms + self._ahead_ms() if wrong else 0.0
        self._since_ms = self._true.mono_ms()
        self._text, self._offset_ms, self._rate = text, wrong.get("offset_ms", 0), wrong.get("rate", 1.0)


class SkewedBoard(Around):
    """`hascheduler.ports.ReplicaBoard`: MongoDB's clock is ahead by the file's ``database_ms``."""

    def __init__(self, board: Any, file: Path) -> None:
        super().__init__(board)
        self._file = file

    async def beat(self, status: ReplicaStatus) -> WallMs | None:
        database_ms: WallMs | None = await self._part.beat(status)
        text = self._file.read_text() if self._file.exists() else "{}"
        return None if database_ms is None else WallMs(database_ms + json.loads(text).get("database_ms", 0))


FAKETIME = "faketime"
FAKETIME_OFF = "+0"
_PLACES = (
    "/usr/lib/*/faketime/libfaketime.so.1",
    "/usr/lib/faketime/libfaketime.so.1",
    "/usr/local/lib/faketime/libfaketime.so.1",
)


def find_faketime() -> Path | None:
    return next((found for place in _PLACES for found in sorted(Path("/").glob(place[1:]))), None)


def why_no_faketime() -> str:
    """Empty where there is one."""
    return "" if find_faketime() else "a process with a wrong clock needs libfaketime (apt-get install libfaketime)"


def faketime_environment(file: Path) -> Mapping[str, str]:
    """For a process whose wall clock is off by what ``file`` says, read every second: ``+86400`` is a day ahead."""
    return {
        "LD_PRELOAD": str(find_faketime()),
        "FAKETIME_TIMESTAMP_FILE": str(file),
        "FAKETIME_CACHE_DURATION": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


STREAM = "stream"


class SlowSource:
    """`hascheduler.ports.ChangeSource`; the file holds the delay in milliseconds. Without one nothing is late."""

    def __init__(self, source: Any, file: Path) -> None:
        self._source = source
        self._file = file
        self.fetch = source.fetch

    async def open(self, resume: Any | None) -> "_SlowStream":
        return _SlowStream(await self._source.open(resume), self._file)


class _SlowStream:
    def __init__(self, stream: Any, file: Path) -> None:
        self._stream = stream
        self._file = file
        self._late: deque[tuple[float, Batch]] = deque()
        self._last: Batch | None = None
        self.snapshot = stream.snapshot
        self.close = stream.close

    async def next_batch(self, wait_ms: int) -> Batch:
        loop = asyncio.get_running_loop()
        until_s = loop.time() + wait_ms / 1_000
        while True:
            delay_s = self._delay_s()
            if self._late and self._late[0][0] + delay_s <= loop.time():
                self._last = self._late.popleft()[1]
                return self._last
            if not self._late and not delay_s:
                self._last = await self._stream.next_batch(max(0, round((until_s - loop.time()) * 1_000)))
                return self._last
            if loop.time() >= until_s and self._last is not None:
                return Batch([], self._last.resume, self._last.position)
            batch: Batch = await self._stream.next_batch(round(_POLL_EVERY_S * 1_000))
            if batch.changes:
                self._late.append((loop.time(), batch))
            elif self._last is None:
                self._last = batch

    def _delay_s(self) -> float:
        try:
            return float(self._file.read_text()) / 1_000
        except FileNotFoundError:
            return 0.0


HANG = "hang"


def hang_on_demand(replica: Any, file: Path) -> Any:
    """The stepper of ``replica`` takes no turn while there is that file."""
    inbox, is_asked = replica._inbox, file.exists
    wait = inbox.wait

    async def wait_or_hang(timeout_s: float) -> None:
        await wait(timeout_s)
        while True:
            if not is_asked():
                return
            await asyncio.sleep(_POLL_EVERY_S)

    inbox.wait = wait_or_hang
    return replica
