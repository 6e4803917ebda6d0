"""SIGTERM during start-up, before the process has a loop that handles it."""

import signal
import sys
import threading


def exit_on_sigterm() -> None:
    """From now on the process ends where it is, until a loop takes the signal over.

    Without that, one that is the first of its container would not hear it: for that one the kernel has no default
    action, and the pod would be killed at the end of its grace.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _leave)


def _leave(number: int, _frame: object) -> None:
    sys.exit(128 + number)
