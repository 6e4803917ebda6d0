"""The process of one attempt, which `hascheduler.processor.child_process` starts: run one handler and report its end.

SIGTERM raises `SystemExit` in the handler, so that its ``finally`` blocks run; SIGKILL follows after a grace. If the
processor ends in any way, the kernel kills the whole process group: the processor holds the only writing end of the
life line, and its closing is a signal here, which arrives even while foreign code holds the interpreter.
"""

import asyncio
import fcntl
import importlib
import logging
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import orjson
import structlog

from hascheduler.errors import InvalidInput
from hascheduler.model.values.redaction import kept_traceback
from hascheduler.processor.handlers import JobContext, ProcessHandler
from hascheduler.processor.outcomes import checked_percent, checked_result, failure_of, shown_text

_LOG_LENGTH_MAX = 8 * 1024
_STOPPED_STATUS = 128 + signal.SIGTERM
WAKE_SIGNAL = signal.SIGURG
"""Interrupts the system call that the handler is in, so that Python handles a pending SIGTERM.

A signal that arrives after Python's last check and before the call begins does not interrupt the call: a `time.sleep`
then takes its whole time (PEP 475 covers calls that have begun). Without a handler SIGURG does nothing.
"""


def main(fds: str) -> None:
    """Run the handler to its end; ``fds`` are those of the socket and the life line."""
    control, life = map(int, fds.split(","))
    for fd in (control, life):
        os.set_inheritable(fd, False)
    _die_with_the_other_end_of(life)
    link = _ProcessorLink(socket.socket(fileno=control))
    request = orjson.loads(link.request())
    sys.argv[:] = ["hascheduler-handler"]
    stop = _Stop()
    _send_logs(link, request["module"], request["log"])
    job = JobContext(
        **request["job"],
        _cancel_requested=link.was_cancelled,
        _stop_requested=lambda: stop.requested,
        _report=lambda percent, text: link.send({"progress": [checked_percent(percent), shown_text(text)]}),
    )
    structlog.contextvars.bind_contextvars(job=job.id, attempt=job.attempt)
    signal.signal(signal.SIGTERM, stop)
    signal.signal(WAKE_SIGNAL, lambda *_: None)
    try:
        function = import_handler(request["module"], request["name"])
        result = function(job)
        if asyncio.iscoroutine(result):
            result = asyncio.run(result)
        end = {"result": checked_result(result)}
    except Exception as error:
        end = {"failure": asdict(failure_of(error))}
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    link.send(end)


def import_handler(module: str, name: str) -> Callable[[JobContext], Any]:
    """Return the handler of that name; raise `InvalidInput` if the module, imported again, has something else there."""
    value: Any = importlib.import_module(module)
    for part in name.split("."):
        value = getattr(value, part, None)
    if isinstance(value, ProcessHandler):
        value = value.function
    if not callable(value):
        raise InvalidInput(("handler",), f"{module} has no function {name!r}", "a function of the module itself")
    function: Callable[[JobContext], Any] = value
    return function


class _Stop:
    """Owner of whether the handler must stop."""

    def __init__(self) -> None:
        self.requested = False

    def __call__(self, *_: object) -> None:
        self.requested = True
        raise SystemExit(_STOPPED_STATUS)


class _ProcessorLink:
    """Owner of the line to the processor; threads of the handler may report and log."""

    def __init__(self, own: socket.socket) -> None:
        self._socket = own
        self._lock = threading.RLock()  # a signal may come while its holder sends
        self._cancelled = False

    def request(self) -> bytes:
        read = bytearray()
        while not read.endswith(b"\n"):
            data = self._socket.recv(64 * 1024)
            if not data:
                raise SystemExit(_STOPPED_STATUS)
            read += data
        return bytes(read)

    def send(self, frame: dict[str, Any]) -> None:
        line = orjson.dumps(frame) + b"\n"
        with self._lock, suppress(OSError):  # the processor is gone, and so is this process in a moment
            self._socket.sendall(line)

    def was_cancelled(self) -> bool:
        """Return True if the processor sent a cancel, the only message after the request."""
        with suppress(BlockingIOError):
            self._cancelled = self._cancelled or bool(self._socket.recv(64, socket.MSG_DONTWAIT))
        return self._cancelled


class _LogFrames(logging.Handler):
    def __init__(self, link: _ProcessorLink) -> None:
        super().__init__()
        self._link = link

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = shown = record.getMessage()
            if record.exc_info:
                shown = f"{text}\n{kept_traceback(logging.Formatter().formatException(record.exc_info))}"
            plain = shown[:_LOG_LENGTH_MAX].encode("utf-8", "replace").decode()
            self._link.send({"log": [record.name[:200], record.levelno, plain]})
        except Exception:
            self.handleError(record)


def _send_logs(link: _ProcessorLink, module: str, levels: dict[str, int]) -> None:
    """Send log lines to the processor, which writes them with the job and the attempt beside its own."""
    root = logging.getLogger()
    root.handlers = [_LogFrames(link)]
    root.setLevel(levels["level"])
    logging.getLogger(module).setLevel(levels["module_level"])
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.processors.format_exc_info,
            structlog.processors.KeyValueRenderer(key_order=["event"]),
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )


def _die_with_the_other_end_of(life: int) -> None:
    """Have SIGKILL sent to this process group once no process holds the writing end of the pipe ``life``."""
    set_signal = getattr(fcntl, "F_SETSIG", None)
    if set_signal is None:  # not Linux: a thread does it, once it gets the interpreter
        threading.Thread(target=_kill_at_end_of, args=(life,), name="life line", daemon=True).start()
        return
    fcntl.fcntl(life, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(life, set_signal, signal.SIGKILL)
    fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([life], [], [], 0)[0]:  # it was closed before there was a signal for that
        os.killpg(0, signal.SIGKILL)


def _kill_at_end_of(life: int) -> None:
    os.read(life, 1)
    os.killpg(0, signal.SIGKILL)
