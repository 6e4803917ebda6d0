"""One child process with all that it starts: its output is read as it comes, and it ends as a whole."""

import asyncio
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

from hascheduler.errors import InvalidInput, WorldError
from hascheduler.processor.process_group import ProcessGroup
from processors.command.capture import Capture

_KILLED_LIMIT_S = 5.0
_SILENCE_LIMIT_S = 1.0
_READ_BYTES_MAX = 64 * 1024


class CommandFailed(WorldError):
    """It ran and did not succeed, or could not be started now."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """``executable`` is what runs; ``argv[0]`` is the name it is called by."""

    executable: str
    argv: Sequence[str]
    environment: Mapping[str, str]
    cwd: str
    stdin: str


class Child:
    """Started on construction, inside a running event loop. Its maker calls `kill`, `gone` and `close`."""

    def __init__(self, invocation: Invocation) -> None:
        self.stdout, self.stderr = Capture(), Capture()
        process = _started(invocation)
        assert process.stdout is not None
        assert process.stderr is not None
        self._readings = (_Reading(process.stdout, self.stdout), _Reading(process.stderr, self.stderr))
        try:
            self._group = ProcessGroup(process)
        except RuntimeError as error:
            for reading in self._readings:
                reading.close()
            raise CommandFailed(f"can't be watched: {error}") from None

    async def exited(self) -> None:
        await self._group.exited.wait()

    async def terminate(self, grace_s: float) -> None:
        """SIGTERM to the group, and time for all of it to end: the leader by its exit, the others by their silence."""
        self._group.signal(signal.SIGTERM)
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                await self.exited()
                await self._silent()

    def kill(self) -> None:
        """SIGKILL to what is left of the group."""
        self._group.signal(signal.SIGKILL)

    async def gone(self) -> None:
        """After `kill`: returns once the leader has ended and the output with it.

        A process that left the group may hold the output open: that is waited for only a moment. A leader that can't
        die is a `CommandFailed`.
        """
        try:
            async with asyncio.timeout(_KILLED_LIMIT_S):
                await self.exited()
        except TimeoutError:
            raise CommandFailed(f"process {self._group.leader.pid} was killed and is still there") from None
        with suppress(TimeoutError):
            async with asyncio.timeout(_SILENCE_LIMIT_S):
                await self._silent()

    def close(self) -> None:
        """Let go of all of it; what has not exited is reaped when it does."""
        for reading in self._readings:
            reading.close()
        self._group.close()

    @property
    def exit_code(self) -> int:
        """After `close`; for a signal its negative number."""
        assert self._group.leader.returncode is not None
        return self._group.leader.returncode

    async def _silent(self) -> None:
        for reading in self._readings:
            await reading.ended.wait()


class _Reading:
    """The owner of one end of a pipe, which reads it into ``capture`` until its end or until `close`.

    Not a transport of the event loop: those take a pipe over in an await, and where that is cancelled, it is unknown
    who has to close it.
    """

    def __init__(self, pipe: IO[bytes], capture: Capture) -> None:
        self._pipe = pipe
        self._capture = capture
        self._loop = asyncio.get_running_loop()
        self.ended = asyncio.Event()
        os.set_blocking(pipe.fileno(), False)
        self._loop.add_reader(pipe.fileno(), self._readable)

    def close(self) -> None:
        if not self.ended.is_set():
            self._loop.remove_reader(self._pipe.fileno())
            self._pipe.close()
            self.ended.set()

    def _readable(self) -> None:
        try:
            data = os.read(self._pipe.fileno(), _READ_BYTES_MAX)
        except BlockingIOError:
            return
        if data:
            self._capture.add(data)
        else:
            self.close()


def _started(invocation: Invocation) -> "subprocess.Popen[bytes]":
    if not os.path.isdir(invocation.cwd):
        raise InvalidInput(("payload", "cwd"), f"no directory {invocation.cwd!r} here", "a directory on the processor")
    with _stdin(invocation.stdin) as stdin:
        try:
            return subprocess.Popen(  # noqa: S603  # an argument list, of a program that was allowed
                invocation.argv,
                executable=invocation.executable,
                env=invocation.environment,
                cwd=invocation.cwd,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except (BlockingIOError, MemoryError) as error:
            raise CommandFailed(f"can't be started now: {error}") from None
        except OSError as error:
            raise InvalidInput(
                ("payload", "argv"), f"can't be started: {error.strerror}", "an executable file and arguments that fit"
            ) from None


def _stdin(text: str) -> IO[bytes]:
    """A file, as a writer into a pipe has to wait for a child that may never read."""
    file = tempfile.TemporaryFile()  # noqa: SIM115  # the caller closes it
    file.write(text.encode("utf-8", "replace"))
    file.seek(0)
    return file
