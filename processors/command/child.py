"""One child process with all that it starts: its output is read as it comes, and it ends as a whole.

The child leads a session and a process group of its own. It is reaped only after the last signal to the group: until
then its number can't be given to another process, so no signal ever hits a stranger. Therefore this file waits for
the exit by itself, in a thread that leaves the zombie in place, rather than through the event loop's own watcher.
"""

import asyncio
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

from hascheduler.errors import InvalidInput, WorldError
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
        self._loop = asyncio.get_running_loop()
        self._exited = asyncio.Event()
        self._closed = False
        self.stdout, self.stderr = Capture(), Capture()
        self._process = _started(invocation)
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._readings = (_Reading(self._process.stdout, self.stdout), _Reading(self._process.stderr, self.stderr))
        try:
            threading.Thread(target=self._watch, name=f"exit of {self._process.pid}", daemon=True).start()
        except RuntimeError as error:  # no room for another thread: it must not run unwatched
            self.kill()
            self._exited.set()
            self.close()
            raise CommandFailed(f"can't be watched: {error}") from None

    async def exited(self) -> None:
        await self._exited.wait()

    async def terminate(self, grace_s: float) -> None:
        """SIGTERM to the group, and time for all of it to end: the leader by its exit, the others by their silence."""
        self._signal(signal.SIGTERM)
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                await self._exited.wait()
                await self._silent()

    def kill(self) -> None:
        """SIGKILL to what is left of the group."""
        self._signal(signal.SIGKILL)

    async def gone(self) -> None:
        """After `kill`: returns once the leader has ended and the output with it.

        A process that left the group may hold the output open: that is waited for only a moment. A leader that can't
        die is a `CommandFailed`.
        """
        try:
            async with asyncio.timeout(_KILLED_LIMIT_S):
                await self._exited.wait()
        except TimeoutError:
            raise CommandFailed(f"process {self._process.pid} was killed and is still there") from None
        with suppress(TimeoutError):
            async with asyncio.timeout(_SILENCE_LIMIT_S):
                await self._silent()

    def close(self) -> None:
        """Let go of all of it; what has not exited is reaped when it does."""
        self._closed = True
        for reading in self._readings:
            reading.close()
        if self._exited.is_set():
            self._process.wait()

    @property
    def exit_code(self) -> int:
        """After `close`; for a signal its negative number."""
        assert self._process.returncode is not None
        return self._process.returncode

    def _signal(self, number: signal.Signals) -> None:
        if self._closed:
            return  # it may have been reaped
        with suppress(ProcessLookupError, PermissionError):  # all gone, or all of them another user's by now
            os.killpg(self._process.pid, number)

    async def _silent(self) -> None:
        for reading in self._readings:
            await reading.ended.wait()

    def _watch(self) -> None:
        os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        try:
            self._loop.call_soon_threadsafe(self._on_exit)
        except RuntimeError:  # the loop is closed: no signals come any more
            self._process.wait()

    def _on_exit(self) -> None:
        self._exited.set()
        if self._closed:
            self._process.wait()


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
