"""Makes a run the same however it is started: in the background, on a terminal, or with settings of hascheduler."""

import os
import signal

_NAMES_SERVERS = ("HASCHEDULER_MONGODB_URI", "HASCHEDULER_AMQP_URL")
_OF_TERMINALS = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "TZ")


def pytest_configure() -> None:
    for name in list(os.environ):
        if name in _OF_TERMINALS or (name.startswith("HASCHEDULER_") and name not in _NAMES_SERVERS):
            del os.environ[name]
    # A shell has its background jobs ignore Ctrl-C, and a process that ignores a signal hands that on to its children;
    # one that handles it does not. So this one goes on as before, and the processes that tests start hear it.
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
