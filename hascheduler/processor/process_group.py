"""A child process with all that it starts: signals to all of them, and the exit of the first.

The child leads a process group of its own. It is reaped only after the last signal to the group: until then its number
can't be given to another process, so no signal ever hits a stranger. Therefore this file waits for the exit by itself,
in a thread that leaves the zombie in place, rather than through the event loop's own watcher.
"""

import asyncio
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress


class ProcessGroup:
    """Owner of ``leader``, which was started in a session of its own. ``on_exit`` is called in the event loop, unless
    its maker has called `close` by then.

    Where the exit can't be watched, the leader is killed and a `RuntimeError` raised.
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
        """Let go of it; a leader that has not exited is reaped when it does."""
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
