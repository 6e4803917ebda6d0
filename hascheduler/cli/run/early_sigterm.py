"""SIGTERM during start-up, before the process has a loop that handles it."""

import signal
import sys
import threading


def exit_on_sigterm() -> None:
    """Let SIGTERM end the process immediately, until a loop takes the signal over.

    Without that, process 1 of a container would ignore it: the kernel has no default action for that process, and the
    pod would be killed at the end of its grace period.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _leave)


def _leave(number: int, _frame: object) -> None:
    sys.exit(128 + number)
