"""Run one attempt in a process of its own: start it, pass on its reports, and end it with all that it started.

::

    this process                                      the child (`hascheduler.processor.child`)
      request: function, job ──────── socket ────────►  imports the function and calls it
      progress, log lines, then one end ◄── socket ───  result, or what was raised and where
      life line ──────────── pipe, nothing is sent ──►  its end, however this process ends, kills the child's group

The child is a new interpreter, never a fork of this process, which has threads.

The child leads a process group of its own. It is reaped only after the last signal to the group: until then its number
can't be given to another process, so no signal ever hits a stranger. So this file waits for the exit itself, in a
thread that leaves the zombie in place, rather than through the event loop's own watcher.
"""

import asyncio
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import orjson

from hascheduler.errors import InvalidInput
from hascheduler.processor.attempts import HeldAttempt, StopReason
from hascheduler.processor.child import WAKE_SIGNAL
from hascheduler.processor.handlers import JobContext, ProcessHandler
from hascheduler.processor.outcomes import RESULT_BYTES_MAX, Failure, ReportedFailure


class ProcessGroup:
    """Owner of ``leader``, which was started in a session of its own.

    ``on_exit`` is called in the event loop, unless `close` was called before. If the exit can't be watched, the leader
    is killed and `RuntimeError` raised.
    """

    def __init__(self, leader: "subprocess.Popen[bytes]", on_exit: Callable[[], None] = lambda: None) -> None:
        self.leader = leader
        self.exited = asyncio.Event()
        self._on_exit = on_exit
        self._closed = False
        self._loop = asyncio.get_running_loop()
        try:
            threading.Thread(target=self._watch, name=f"exit of {leader.pid}", daemon=True).start()
        except RuntimeError:  # no room for another thread
            self.signal(signal.SIGKILL)
            leader.wait()
            raise

    def signal(self, number: signal.Signals, *, leader_only: bool = False) -> None:
        """Send the signal to what is left of the group."""
        if self._closed:
            return  # it may have been reaped
        with suppress(ProcessLookupError, PermissionError):  # all gone, or all of them another user's by now
            (os.kill if leader_only else os.killpg)(self.leader.pid, number)

    def close(self) -> None:
        """Release it; a leader that has not exited is reaped when it does."""
        self._closed = True
        if self.exited.is_set():
            self.leader.wait()

    def _watch(self) -> None:
        os.waitid(os.P_PID, self.leader.pid, os.WEXITED | os.WNOWAIT)
        try:
            self._loop.call_soon_threadsafe(self._exit)
        except RuntimeError:  # the loop is closed: no signals come any more
            self.leader.wait()

    def _exit(self) -> None:
        self.exited.set()
        if self._closed:
            self.leader.wait()
        else:
            self._on_exit()


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


GRACE_S = 2.0
"""The time from SIGTERM to SIGKILL; less than a drain gives to handlers that it stops."""
_GRACE_GIVEN_UP_S = 0.5
"""The grace if revoked or fenced: another processor may start the next attempt."""
_FIRST_WAKE_S = 0.05
"""The first wake-up after SIGTERM; each next one comes after twice as long."""
_EXIT_LIMIT_S = 1.0
"""How long to wait for the exit of a child that has reported its end."""
_KILLED_LIMIT_S = 5.0
_FRAME_BYTES_MAX = 2 * RESULT_BYTES_MAX
_READ_BYTES_MAX = 64 * 1024
_BOOTSTRAP = (
    "import sys, json; sys.path[:] = json.loads(sys.argv.pop()); "
    "from hascheduler.processor.child import main; main(sys.argv.pop())"
)

Frame = dict[str, Any]


class ProcessDied(Exception):
    """The handler's process ended without a report of its attempt's end."""


async def run_in_process(handler: ProcessHandler, job: JobContext, attempt: HeldAttempt) -> Any:
    """Return what the handler returns; raise `ReportedFailure` for what it raised, `ProcessDied` if its process died.

    A cancellation is SIGTERM, and SIGKILL after a grace; a second one ends the grace. When this returns or raises,
    nothing of the child's process group is left. A result that comes before the end of the grace is returned.
    """
    child = _Child(_request(handler, job), job)
    is_cancelled = False
    try:
        try:
            await child.reported()
            await child.exited(_EXIT_LIMIT_S)
        except asyncio.CancelledError:
            is_cancelled = True
            has_time = attempt.stop_reason in (StopReason.DRAINED, StopReason.TIMED_OUT, StopReason.CANCELLED)
            await child.terminate(GRACE_S if has_time else _GRACE_GIVEN_UP_S, cancelled=attempt.cancel_requested)
        finally:
            child.kill()
            await child.exited(_KILLED_LIMIT_S)
    finally:
        child.close()
    if child.end is not None and "result" in child.end:
        return child.end["result"]
    if is_cancelled:
        raise asyncio.CancelledError
    if child.end is not None:
        raise ReportedFailure(Failure(**child.end["failure"]))
    raise ProcessDied(child.how_it_died())


def _request(handler: ProcessHandler, job: JobContext) -> bytes:
    fields = {name: getattr(job, name) for name in JobContext.__slots__ if not name.startswith("_")}
    fields["labels"] = dict(job.labels)
    levels = {
        "level": logging.getLogger().level,
        "module_level": logging.getLogger(handler.module).getEffectiveLevel(),
    }
    request = {"module": handler.module, "name": handler.name, "job": fields, "log": levels}
    try:
        return orjson.dumps(request) + b"\n"
    except TypeError as error:
        raise InvalidInput(
            ("payload",), f"can't be passed to a process: {error}", "plain JSON values, integers of at most 64 bits"
        ) from None


class _Child:
    """A child process, started on construction in a running event loop. Its maker calls `kill`, `exited`, `close`."""

    def __init__(self, request: bytes, job: JobContext) -> None:
        self.end: Frame | None = None
        self._job = job
        ours, theirs = socket.socketpair()
        life_read, self._life = os.pipe()
        try:
            self._group = ProcessGroup(_started(theirs.fileno(), life_read), self._on_exit)
        except BaseException:
            ours.close()
            os.close(self._life)
            raise
        finally:
            theirs.close()
            os.close(life_read)
        self._channel = _Channel(ours, request, self._on_frame)

    async def reported(self) -> None:
        """Wait until the child has reported how its attempt ended, or can't any more."""
        await self._channel.ended.wait()

    async def exited(self, limit_s: float) -> None:
        """Wait until the process has exited, at most ``limit_s``."""
        # Not `asyncio.timeout`: in a task that was cancelled before, Python 3.11 lets its cancellation out.
        with suppress(TimeoutError):
            await asyncio.wait_for(self._group.exited.wait(), limit_s)

    async def terminate(self, grace_s: float, *, cancelled: bool) -> None:
        """Send SIGTERM to the group, and give the child time to end."""
        if cancelled:
            self._channel.note(b"cancelled\n")
        self._group.signal(signal.SIGTERM)
        wake_s = _FIRST_WAKE_S
        while not self._group.exited.is_set() and grace_s > 0:
            await self.exited(min(wake_s, grace_s))
            grace_s -= wake_s
            wake_s *= 2
            self._group.signal(WAKE_SIGNAL, leader_only=True)

    def kill(self) -> None:
        """Send SIGKILL to what is left of the group."""
        self._group.signal(signal.SIGKILL)

    def close(self) -> None:
        """Release it; a process that has not exited is reaped when it does."""
        self._channel.read_rest()
        self._channel.close()
        os.close(self._life)
        self._group.close()

    def how_it_died(self) -> str:
        """Return how the process died, after `close`."""
        if self._channel.problem:
            return self._channel.problem
        code = self._group.leader.returncode
        if code is None:
            return f"the handler's process {self._group.leader.pid} was killed but has not exited"
        if code >= 0:
            return f"the handler's process exited with status {code} and no result"
        why = "; the kernel does this when memory runs out" if -code == signal.SIGKILL else ""
        return f"the handler's process was killed by {signal_name(-code)}{why}"

    def _on_frame(self, frame: Frame) -> bool:
        """Take a frame, and return True if it was the last."""
        match frame:
            case {"progress": [percent, str(text)]}:
                self._job.progress(percent, text)
            case {"log": [str(name), int(level), str(text)]}:
                logging.getLogger(name).log(level, "%s", text)
            case {"result": _} | {"failure": _}:
                self.end = frame
                return True
        return False

    def _on_exit(self) -> None:
        # What it started may hold the socket open.
        self._channel.read_rest()
        self._channel.ended.set()


class _Channel:
    """Owner of this end of the socket: sends the request, then reads frames until the last one, the end, or `close`.

    It is not a transport of the event loop: those take a socket over in an await, and if that is cancelled, nobody
    knows who must close the socket.
    """

    def __init__(self, own: socket.socket, request: bytes, on_frame: Callable[[Frame], bool]) -> None:
        self._socket = own
        self._unsent = memoryview(request)
        self._on_frame = on_frame
        self._read = bytearray()
        self._loop = asyncio.get_running_loop()
        self._is_open = True
        self.ended = asyncio.Event()
        self.problem = ""
        own.setblocking(False)
        self._loop.add_reader(own, self._readable)
        self._loop.add_writer(own, self._writable)

    def note(self, line: bytes) -> None:
        """Send a note if there is room, and the child has its request."""
        if self._is_open and not self._unsent:
            with suppress(OSError):
                self._socket.send(line)

    def read_rest(self) -> None:
        while self._is_open and self._readable():
            pass

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self._socket.close()
            self.ended.set()

    def _writable(self) -> None:
        try:
            self._unsent = self._unsent[self._socket.send(self._unsent) :]
        except BlockingIOError:
            return
        except OSError:  # it has ended: its exit says more
            self._unsent = self._unsent[:0]
        if not self._unsent:
            self._loop.remove_writer(self._socket)

    def _readable(self) -> bool:
        """Read, and return True if there may be more."""
        try:
            data = self._socket.recv(_READ_BYTES_MAX)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self.close()
            return False
        self._read += data
        *lines, rest = self._read.split(b"\n")
        self._read = rest
        for line in lines:
            if self._is_last(line):
                self.close()
                return False
        if len(self._read) > _FRAME_BYTES_MAX:
            self.problem = f"the handler's process sent a frame of more than {_FRAME_BYTES_MAX} bytes"
            self.close()
        return self._is_open

    def _is_last(self, line: bytearray) -> bool:
        try:
            frame = orjson.loads(line)
            return isinstance(frame, dict) and self._on_frame(frame)
        except (ValueError, InvalidInput) as error:
            self.problem = f"the handler's process sent an unreadable frame: {error}"
            return True


def _started(control: int, life: int) -> "subprocess.Popen[bytes]":
    fds = f"{control},{life}"
    # -P: the directory it runs in takes no part in what is imported before the path is ours.
    arguments = [sys.executable, "-P", "-c", _BOOTSTRAP, fds, json.dumps(sys.path)]
    try:
        return subprocess.Popen(  # noqa: S603  # this interpreter, with fixed arguments
            arguments, stdin=subprocess.DEVNULL, pass_fds=(control, life), start_new_session=True
        )
    except OSError as error:
        raise ProcessDied(f"the handler's process can't be started: {error}") from None
